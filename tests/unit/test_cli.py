"""The command line: help that teaches, errors of one line, and one network from text to perplexity."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nplm2003 import cli
from nplm2003.cli import build_parser, main
from nplm2003.errors import UserError
from nplm2003.files import read_json, write_json
from nplm2003.neural.preset import Preset

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "pytorch_lightning", "matplotlib", "pandas", "nltk", "kenlm", "typst", "snakemake")


def stages() -> dict[str, argparse.ArgumentParser]:
    """Every sub-command and its parser."""
    actions = build_parser()._actions
    found: dict[str, argparse.ArgumentParser] = next(
        action.choices for action in actions if isinstance(action, argparse._SubParsersAction)
    )
    return found


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; nothing on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.endswith("\n"), err
    return err.rstrip("\n")


# --- help ------------------------------------------------------------------------------------------------------------


def test_every_stage_of_the_workflow_is_there() -> None:
    assert set(stages()) >= {
        *("fetch", "build-tokens", "cut-tokens"),
        *("build-lmplz", "estimate-kneser-ney", "score-kneser-ney", "estimate-interpolated", "score-interpolated"),
        *("estimate-smoothed", "score-smoothed"),
        *("learn-classes", "estimate-class-based", "score-class-based"),
        *("train", "score", "mix", "evaluate"),
        *("tabulate-rows", "tabulate-policies", "tabulate-timings", "plot", "write-paper"),
    }


@pytest.mark.parametrize("stage", stages())
def test_help_teaches(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([stage, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: nplm2003 {stage}")
    parser = stages()[stage]
    assert parser.description and len(parser.description) > 60
    assert f"example:\n  nplm2003 {stage} " in text
    for action in parser._actions:
        assert action.help, f"{stage}: {action.dest} is not explained"
    assert max(len(line) for line in text.splitlines()) <= 120


@pytest.mark.parametrize("stage", stages())
def test_the_example_is_a_valid_command(stage: str) -> None:
    example = (stages()[stage].epilog or "").split("example:\n")[1].replace("\\\n", " ")
    assert example.split()[0] == "nplm2003"
    assert build_parser().parse_args(example.split()[1:]).run


def test_help_of_every_stage_loads_nothing_heavy() -> None:
    program = f"""
import sys
from nplm2003.cli import build_parser, main
for arguments in (["--help"], ["--version"], *([stage, "--help"] for stage in {list(stages())!r})):
    try:
        main(arguments)
    except SystemExit as ended:
        assert ended.code == 0, arguments
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr


def test_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nplm2003", "evaluate", "--tokens", "none", "--scores", "none", "--output", "none"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 1
    assert done.stdout == "" and done.stderr.startswith("nplm2003: error: none holds no scores.json")
    assert done.stderr.count("\n") == 1


# --- errors ----------------------------------------------------------------------------------------------------------


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> list[str]:
    """The arguments of a stage that does nothing but raise `error`."""

    def run(options: argparse.Namespace) -> None:
        raise error

    def register(subparsers: Any) -> None:
        subparsers.add_parser("fail").set_defaults(run=run)

    monkeypatch.setattr(cli, "REGISTER", (register,))
    return ["fail"]


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (UserError("x.txt is empty: name a text"), 1, "nplm2003: error: x.txt is empty: name a text"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 1, "nplm2003: error: "),
        (OSError(28, "No space left on device"), 1, "nplm2003: error: [Errno 28] No space left on device"),
        (UserError("two\nlines"), 1, "nplm2003: error: two lines"),
        (MemoryError("of 9 TB"), 1, "nplm2003: error: the memory is not enough (of 9 TB): ask for less"),
        (KeyboardInterrupt(), 130, "nplm2003: interrupted; "),
    ],
)
def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, line: str
) -> None:
    assert main(raising(monkeypatch, error)) == status
    assert only_line(capsys).startswith(line)


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        main(raising(monkeypatch, ZeroDivisionError()))


@pytest.mark.parametrize("arguments", [[], ["trian"], ["train", "--hidden", "many"]])
def test_a_wrong_command_shows_how_it_is_used(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: nplm2003" in capsys.readouterr().err


# --- one network from text to perplexity -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, make_preset: Callable[..., Preset], invented_text: Callable[..., str]) -> Path:
    """A folder (with a space in its name) that holds a text and two presets."""
    folder = tmp_path / "my study"
    folder.mkdir()
    (folder / "text.txt").write_text(invented_text(200), encoding="utf-8")
    presets = {
        "quick": make_preset(rate=0.5, reduction="mean", epochs_direct=2).as_dict(),
        "broken": {"rate": 1.0},
    }
    write_json(folder / "study.json", {"presets": presets})
    return folder


def build_arguments(folder: Path, tokens: str, size: int) -> list[str]:
    return [
        *("build-tokens", "--corpus", "mine", "--source", "text", "--file", str(folder / "text.txt")),
        *("--train", "800", "--valid", "200", "--policy", "small", "--count-on", "stream"),
        *("--cut", "rank", "--size", str(size), "--output", str(folder / tokens)),
    ]


def train_arguments(folder: Path, **changes: str) -> list[str]:
    options = {
        "tokens": str(folder / "tokens"),
        "order": "3",
        "hidden": "4",
        "features": "3",
        "preset-file": str(folder / "study.json"),
        "preset": "quick",
        "seed": "7",
        "output": str(folder / "network"),
    }
    return ["train", "--direct", *(part for key, value in (options | changes).items() for part in (f"--{key}", value))]


def test_train_score_evaluate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens, scores, evaluation = (str(folder / name) for name in ("tokens", "scores", "evaluation.json"))
    assert main(build_arguments(folder, "tokens", 30)) == 0
    assert main(train_arguments(folder)) == 0
    assert "best epoch" in capsys.readouterr().err
    network = ["--network", str(folder / "network"), "--model", "mine"]
    assert main(["score", "--tokens", tokens, *network, "--output", scores]) == 0
    assert main(["evaluate", "--tokens", tokens, "--scores", scores, "--output", evaluation]) == 0

    result, training = read_json(evaluation), read_json(folder / "network" / "training.json")
    statistics = read_json(folder / "tokens" / "corpus.json")
    assert (result["model"], result["seed"]) == ("mine", 7)
    assert result["tokens"] == statistics["tokens"]
    assert result["vocabulary"] == training["vocabulary"] == statistics["fingerprint"]
    assert result["perplexity"]["valid"] == pytest.approx(training["valid_perplexity"], rel=1e-5)
    assert 1 < result["perplexity"]["valid"] < 30  # better than a uniform guess over |V| = 30
    # How the network was made stands beside its numbers, and the folders of this machine do not.
    assert result["provenance"]["configuration"]["preset"]["rate"] == 0.5
    assert str(folder) not in json.dumps(result)

    # Scores of one vocabulary are not evaluated on the tokens of another.
    assert main(build_arguments(folder, "other tokens", 25)) == 0
    capsys.readouterr()
    other = str(folder / "other tokens")
    assert main(["evaluate", "--tokens", other, "--scores", scores, "--output", str(folder / "none.json")]) == 1
    assert "was scored on other tokens than" in only_line(capsys)
    assert not (folder / "none.json").exists()
    assert main(["score", "--tokens", other, *network, "--output", str(folder / "none")]) == 1
    assert "was trained on other tokens than" in only_line(capsys)
    assert not (folder / "none").exists()

    # A damaged file is one line.
    path = folder / "scores" / "valid.npy"
    path.write_bytes(path.read_bytes()[:-4])
    assert main(["evaluate", "--tokens", tokens, "--scores", scores, "--output", str(folder / "none.json")]) == 1
    assert "valid.npy" in only_line(capsys)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"preset": "quik"}, ["no preset 'quik'", "quick"]),
        ({"preset": "broken"}, ["preset broken", "missing"]),
        ({"preset-file": "none.json"}, ["none.json"]),
        ({"order": "1"}, ["order >= 2"]),
        ({"hidden": "-1"}, ["hidden >= 0"]),
        ({"processes": "2"}, ["--processes above 1 needs --parallel"]),
        ({"parallel": "data"}, ["--processes above 1 needs --parallel"]),
        ({"tokens": "no tokens"}, ["no tokens holds no corpus.json"]),
    ],
)
def test_bad_training_options_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], said: list[str]
) -> None:
    assert main(build_arguments(folder, "tokens", 30)) == 0
    capsys.readouterr()
    assert main(train_arguments(folder, **changes)) == 1
    line = only_line(capsys)
    assert all(part in line for part in said), line
    assert not (folder / "network").exists()


def test_a_seed_is_positive(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(train_arguments(folder, seed="-1"))
    assert "--seed: '-1' is not a whole number of at least 1" in capsys.readouterr().err


def test_a_network_that_sees_nothing_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(build_arguments(folder, "tokens", 30)) == 0
    capsys.readouterr()
    arguments = [part for part in train_arguments(folder, hidden="0") if part != "--direct"]
    assert main(arguments) == 1
    assert "--hidden 0 needs --direct" in only_line(capsys)


def test_an_output_that_cannot_be_written_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("no folder")
    assert main(build_arguments(folder, "file/tokens", 30)) == 1
    assert "nplm2003: error: " in only_line(capsys)


def test_rebuilt_tokens_are_equal(folder: Path) -> None:
    for name in ("one", "two"):
        assert main(build_arguments(folder, name, 30)) == 0
    assert np.array_equal(np.load(folder / "one" / "train.npy"), np.load(folder / "two" / "train.npy"))
