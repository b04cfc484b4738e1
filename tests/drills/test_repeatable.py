"""The same seed gives the same bits at a given number of threads, and the same perplexity at another."""

from __future__ import annotations

import pytest
from faults import Record, run
from stages import Study

from nplm2003.files import read_json

TOLERANCE = 1e-3  # relative, of a perplexity, across numbers of threads


def test_threads(study: Study, record: Record) -> None:
    perplexities = {}
    for threads in (1, 2):
        trained = []
        for run_number in (1, 2):
            output = f"/threads-{threads}-{run_number}"
            run(*study.command("network", output=output), "--threads", str(threads))
            folder = study.folder / output.strip("/")
            trained.append((folder / "weights.pt").read_bytes())
            perplexities[threads] = read_json(folder / "training.json")["valid_perplexity"]
        assert trained[0] == trained[1]
    assert perplexities[2] == pytest.approx(perplexities[1], rel=TOLERANCE)
    difference = abs(perplexities[2] / perplexities[1] - 1)
    record(
        "the same training again, and on another number of threads",
        "one seed, twice with one thread and twice with two",
        f"weights.pt has the same bytes at a number of threads; from 1 to 2 the validation perplexity moves by "
        f"{difference:.1e} of itself (stated tolerance: {TOLERANCE:g})",
        "nothing",
    )
