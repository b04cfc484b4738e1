"""Faults of whole runs of the workflow: killed, started twice, under a wrong clock, in a folder with a hostile name."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # Snakemake brings it
import pytest
from faults import Record, contents
from tiny_study import Clone, make_clone, place_lmplz

pytestmark = pytest.mark.slow

RESULTS = Path("results/tiny")
TINY = ("--configfile", "config/tiny/study.yaml")
SEED = 2003
# A folder and a text that a shell would run, were it ever given their names as they are.
HOSTILE = 'a; touch pwned & $(touch pwned) `touch pwned` "q" | * # ~'
HOSTILE_TEXT = 'data/it\'s $(touch pwned); `touch pwned` "x" & y.txt'
MAIN = RESULTS / "rank30"
WHOLE = ("all", "explorer")
# Every kind of rule: the command of the package that it runs, or its name; and a file that one of the kind makes.
KINDS = {
    "build-tokens": MAIN / "tokens/corpus.json",
    "cut-tokens": RESULTS / "rank30-train-1-2/tokens/corpus.json",
    "estimate-kneser-ney": MAIN / "kneser-ney-3/seed0/model.arpa",
    "score-kneser-ney": MAIN / "kneser-ney-3/seed0/scores/scores.json",
    "estimate-interpolated": MAIN / "interpolated-trigram/seed0/weights.json",
    "score-interpolated": MAIN / "interpolated-trigram/seed0/scores/scores.json",
    "estimate-smoothed": MAIN / "katz-3/seed0/smoothing.json",
    "score-smoothed": MAIN / "katz-3/seed0/scores/scores.json",
    "learn-classes": MAIN / "classes/6/classes.tsv",
    "estimate-class-based": MAIN / "classes-6-3/seed0/model.arpa",
    "score-class-based": MAIN / "classes-6-3/seed0/scores/scores.json",
    "train": MAIN / "MLP7/seed1/weights.pt",
    "score": MAIN / "MLP7/seed1/scores/scores.json",
    "score-oov": MAIN / "MLP1-oov/seed1/scores/scores.json",
    "mix": MAIN / "MLP2/seed1/scores/scores.json",
    "evaluate": MAIN / "MLP7/seed1/evaluation.json",
    "bootstrap": MAIN / "uncertainty.json",
    "tabulate": RESULTS / "tables/runs.csv",
    "plot": RESULTS / "figures/order.png",
    "write-paper": RESULTS / "paper.pdf",
    "write_report": RESULTS / "report.html",
    "write_preset": RESULTS / "presets/modern.json",
    "add-sentence": MAIN / "MLP1/seed1/added-sentence.json",
    "write-explorer": RESULTS / "explorer.html",
    "write_study": RESULTS / "study.json",
    "write_configuration": RESULTS / "configuration.json",
}


@pytest.fixture(scope="module")
def text(invented_text: Callable[..., str]) -> str:
    return invented_text(320)


def make_study(folder: Path, text: str) -> Clone:
    """A copy of the repository with the tiny study, its text under a hostile name."""
    clone = make_clone(folder, text)
    place_lmplz(clone)
    (folder / "data" / "a tiny text.txt").rename(folder / HOSTILE_TEXT)
    study = folder / "config" / "tiny" / "study.yaml"
    study.write_text(study.read_text().replace("data/a tiny text.txt", json.dumps(HOSTILE_TEXT)))
    return clone


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory, text: str) -> tuple[Clone, Clone]:
    """The tiny study in a folder with a plain name and in one with a hostile name, of the same source."""
    folder = tmp_path_factory.mktemp("workflow")
    return make_study(folder / "undisturbed", text), make_study(folder / HOSTILE, text)


@pytest.fixture(scope="module")
def undisturbed(clones: tuple[Clone, Clone]) -> Clone:
    """The tiny study, run to its end without any fault."""
    clones[0].tiny(*WHOLE)
    return clones[0]


@pytest.fixture(scope="module")
def expected(undisturbed: Clone) -> dict[str, str]:
    """What the undisturbed study holds."""
    return contents(undisturbed.folder / RESULTS)


def jobs_of(snakemake: subprocess.Popen[str]) -> Iterator[tuple[psutil.Process, str]]:
    """The processes of this Snakemake that run a rule now, each with the kind of the rule."""
    try:
        children = psutil.Process(snakemake.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        if words[1:3] == ["-m", "nplm2003"]:
            name = words[3]
            yield child, next((kind for kind in ("tabulate", "plot") if name.startswith(kind)), name)
        elif "--report" in words and words[1:3] == ["-m", "snakemake"]:
            yield child, "write_report"
        elif "--target-jobs" in words:
            yield child, words[words.index("--target-jobs") + 1].partition(":")[0]


def is_at_work(process: psutil.Process) -> bool:
    """Whether a process has not ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill_all(snakemake: subprocess.Popen[str]) -> None:
    """What a power cut does: Snakemake and all that it runs end at once."""
    os.killpg(snakemake.pid, signal.SIGKILL)
    snakemake.communicate(timeout=60)


def kill_in(snakemake: subprocess.Popen[str], left: Counter[str], draw: random.Random) -> set[str] | None:
    """Wait until a rule of a kind that is left runs, and a random time more; kill everything.

    Returns the kinds that were at work then, which may be none; None where all the work ended before.
    """
    while snakemake.poll() is None:
        found = [(process, kind) for process, kind in jobs_of(snakemake) if left[kind] > 0]
        if found:
            process, _ = found[0]
            end = time.monotonic() + draw.uniform(0, 1)
            while time.monotonic() < end and is_at_work(process):
                time.sleep(0.01)
            killed = {kind for _, kind in jobs_of(snakemake)}
            kill_all(snakemake)
            return killed
        time.sleep(0.02)
    output, _ = snakemake.communicate()
    assert snakemake.returncode == 0, output
    return None


@pytest.fixture(scope="module")
def killed(clones: tuple[Clone, Clone], request: pytest.FixtureRequest) -> tuple[Clone, Counter[str], str]:
    """The tiny study in a folder with a hostile name, killed in every kind of rule and taken up again each time.

    Returns it with how often each kind was killed, and what Snakemake said to the first who went on.
    """
    kills = request.config.getoption("--kills")
    _, clone = clones
    left, done = Counter(dict.fromkeys(KINDS, kills)), Counter[str]()
    draw, said, work = random.Random(SEED), "", list(WHOLE)
    for attempt in range(10 * kills * len(KINDS)):
        # The first run locks the folder, as any does. The others do not: to unlock each time would take minutes.
        options = ["--nolock"] if attempt else []
        kinds = kill_in(clone.start(*work, *options, *TINY), left, draw)
        if not attempt:
            said = clone.tiny(*WHOLE, status=1)
            clone.tiny("--unlock")
        done.update(kinds or ())
        left.subtract(kinds or ())
        if not +left:
            break
        # Kinds whose rules ended before they could be killed are run once more, one rule at a time.
        if kinds is None or len(work) > 1:
            work = [str(KINDS[next(iter(+left))]), "--force"]
    # `all` does not ask for files between rules where what was made of them is there: those are named.
    clone.tiny(*WHOLE, *KINDS.values(), "--nolock")
    return clone, done, said


def test_a_kill_in_every_kind_of_rule_loses_nothing(
    killed: tuple[Clone, Counter[str], str], expected: dict[str, str], record: Record
) -> None:
    clone, done, _ = killed
    assert set(done) >= set(KINDS)
    assert contents(clone.folder / RESULTS) == expected
    for kind in KINDS:
        record(
            f"kill -9 in {kind}",
            f"Snakemake and all its processes killed at a random moment (seed {SEED}) while {kind} ran, {done[kind]} "
            "time(s); then the same command again",
            "the rerun ends with status 0",
            f"nothing: all {len(expected)} results have the bytes of an undisturbed run, but for seconds",
        )


def test_a_stale_lock_says_how_to_unlock(killed: tuple[Clone, Counter[str], str], record: Record) -> None:
    (line,) = (line for line in killed[2].splitlines() if "--unlock" in line)
    record("stale lock", "the run was killed; then the same command again", line.strip(), "nothing: see the kills")


def test_nothing_is_executed_from_names(killed: tuple[Clone, Counter[str], str], record: Record) -> None:
    clone, _, _ = killed
    assert list(clone.folder.parent.rglob("pwned*")) == []
    record(
        "shell metacharacters in paths and configuration values",
        f"the study in a folder named {HOSTILE}, on a text named {HOSTILE_TEXT}",
        "it runs to its end; no command in a name was executed",
        "nothing: the results are those of a study in a folder with a plain name",
    )


def test_two_runs_at_once(undisturbed: Clone, expected: dict[str, str], record: Record) -> None:
    first = undisturbed.start("figures", "--forcerun", "plot_order", "plot_claims", *TINY)
    while not any(jobs_of(first)) and first.poll() is None:
        time.sleep(0.02)
    said = undisturbed.tiny("all", status=1)
    output, _ = first.communicate(timeout=600)
    assert first.returncode == 0, output
    undisturbed.tiny("all")
    assert contents(undisturbed.folder / RESULTS) == expected
    (line,) = (line for line in said.splitlines() if "cannot be locked" in line)
    record(
        "two runs at once in one folder",
        "a second Snakemake while the first draws figures",
        line.strip(),
        "nothing: the first ends with status 0, all results as before",
    )


def test_a_clock_that_was_set_back(undisturbed: Clone, expected: dict[str, str], record: Record) -> None:
    files = [path for path in (undisturbed.folder / RESULTS / "rank30").rglob("*") if path.is_file()]
    dates = {path: path.stat().st_mtime for path in files}
    for path, date in dates.items():
        os.utime(path, (date + 86_400, date + 86_400))
    evaluation = RESULTS / "rank30" / "MLP1" / "seed1" / "evaluation.json"
    said = undisturbed.tiny(evaluation, "--force", status=1)
    (line,) = {line for line in said.splitlines() if "clock skew" in line}
    for path, date in dates.items():
        if path.exists():
            os.utime(path, (date, date))
    undisturbed.tiny(evaluation)
    undisturbed.tiny("all")
    assert contents(undisturbed.folder / RESULTS) == expected
    record(
        "clock set back by a day",
        "all results of a policy dated a day ahead; then an evaluation by force",
        line,
        "nothing: what the job wrote is removed; with the right dates a rerun gives the results as before",
    )


def test_a_flipped_bit_of_scores_under_the_workflow(
    undisturbed: Clone, expected: dict[str, str], record: Record
) -> None:
    folder = RESULTS / "rank30" / "MLP1" / "seed1"
    scores = undisturbed.folder / folder / "scores" / "valid.npy"
    before, date = scores.read_bytes(), scores.stat().st_mtime
    damaged = bytearray(before)
    damaged[-3] ^= 1
    scores.write_bytes(damaged)
    os.utime(scores, (date, date))  # a bit that rots leaves the date alone
    said = undisturbed.tiny(folder / "evaluation.json", "--force", status=1)
    (line,) = {line for line in said.splitlines() if line.startswith("nplm2003: error: ")}
    assert "valid.npy is damaged" in line
    scores.unlink()
    undisturbed.tiny(folder / "evaluation.json")
    undisturbed.tiny("all")
    assert contents(undisturbed.folder / RESULTS) == expected
    record(
        "bit of a score file flipped under the workflow",
        "the lowest byte of one score, the date of the file kept; its evaluation by force",
        line,
        "nothing: the file removed, a rerun gives the results as before",
    )
