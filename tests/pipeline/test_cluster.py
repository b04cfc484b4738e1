"""The study on a cluster, as far as it shows without one: what is planned, and what a scheduler is asked for."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_study import TABLES, Clone, make_clone, place_lmplz

ROWS = 100
# A scheduler that runs a script at once; the first script it is given it refuses.
QSUB = """\
#!/bin/sh
echo "$@" >>"$0.log"
for script; do :; done
if [ "$(wc -l <"$0.log")" = 1 ]; then exit 1; fi
"$script" >"$0.out" 2>&1 &
echo 7
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, invented_text: Callable[..., str]) -> Clone:
    """A copy of the repository in which nothing has run."""
    return make_clone(tmp_path_factory.mktemp("cluster") / "a clone", invented_text(320))


def test_a_sweep_of_100_rows_is_planned_in_seconds_and_shares_what_it_can(clone: Clone) -> None:
    before = clone.planned("all")
    # Hidden layers of 1 to 100 units; every second row has an output layer that needs the word classes.
    outputs = {0: "words\t", 1: "tree\t6"}
    networks = "".join(
        f"\nh{row}\t\tmlp\t5\t{row}\t3\tno\t\tlearnt\t{outputs[row % 2]}\tpaper\t1\tno" for row in range(1, ROWS + 1)
    )
    points = "".join(f"\nhidden\t\t\th{row}" for row in range(1, ROWS + 1))
    start = time.monotonic()
    with (
        clone.changed(
            "config/tiny/networks.tsv", TABLES["networks"].rstrip("\n"), TABLES["networks"].rstrip("\n") + networks
        ),
        clone.changed("config/tiny/sweeps.tsv", TABLES["sweeps"].rstrip("\n"), TABLES["sweeps"].rstrip("\n") + points),
    ):
        planned = clone.planned("all", "--profile", "profiles/slurm")
    seconds = time.monotonic() - start
    print(f"{sum(planned.values())} jobs planned in {seconds:.1f} s")
    # The new rows, and the figure of the new sweep; no vocabulary, n-gram or table of classes is built twice.
    new = {"train_network": ROWS, "score_network": ROWS, "evaluate_scores": ROWS, "plot_sweep-hidden": 1}
    assert planned == {rule: before.get(rule, 0) + new.get(rule, 0) for rule in {**before, **new}}
    assert planned["build_tokens"] == 2 and planned["learn_classes"] == 1
    assert seconds < 60  # about 5 on an idle machine


def test_small_jobs_are_grouped_and_networks_stay_on_their_own(clone: Clone) -> None:
    output = clone.tiny("all", "--profile", "profiles/slurm", "--dry-run")
    groups = re.findall(r"Group job (\w+)", output)
    # Eleven networks, scored four at a time.
    assert sorted(groups) == ["classes", "ngrams", "results", "scoring", "scoring", "scoring", "tokens"]
    alone = re.findall(r"^Job \d+: (.*)$", output, flags=re.MULTILINE)
    assert sum(job.startswith("Training ") for job in alone) == 11
    # The rest runs where Snakemake does.
    assert {job.split()[0] for job in alone} == {"Training", "Finding", "Writing", "All"}


def test_any_scheduler_gets_scripts_with_their_threads_memory_and_time(clone: Clone, tmp_path: Path) -> None:
    place_lmplz(clone)
    qsub = tmp_path / "qsub"
    qsub.write_text(QSUB, encoding="utf-8")
    qsub.chmod(0o755)
    target = "results/tiny/rank30/kneser-ney-2/seed0/evaluation.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        clone.tiny(target, "--profile", "profiles/cluster-generic", "--seconds-between-status-checks", "1")
    assert (clone.folder / target).is_file()
    calls = (tmp_path / "qsub.log").read_text(encoding="utf-8").splitlines()
    asked = [re.search(r"-pe smp (\d+) -l h_vmem=(\d+)M,h_rt=0:(\d+):0 ", call).groups() for call in calls]
    # One vocabulary, tried again with twice the memory; the n-gram estimated, then scored; its evaluation.
    assert asked == [("1", "1000", "5"), ("1", "2000", "5"), ("1", "1000", "4"), ("1", "500", "1")]
