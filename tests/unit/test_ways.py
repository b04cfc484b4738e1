"""What the ways to train one network cost, by answers computed by hand."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import MODERN, PAPER, SMALL, make_study, small_study

from nplm2003.outcomes import CURVE, Outcomes, Row, Run
from nplm2003.plan import ways_to_train
from nplm2003.ways import WITHIN, reference_of, seconds_until, way_records

PRESETS = {
    "modern": {"objective": "sampled-softmax"},
    "exact": {"objective": "softmax"},
    "paper": {"objective": "softmax"},
}


def write_curve(folder: Path, perplexities: Sequence[float], seconds: Sequence[float]) -> None:
    best = perplexities.index(min(perplexities))
    with (folder / "learning_curve.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, CURVE)
        writer.writeheader()
        for index, (perplexity, each) in enumerate(zip(perplexities, seconds, strict=True)):
            line = {"epoch": index + 1, "examples": 100 * (index + 1), "rate": 1, "train_perplexity": perplexity}
            writer.writerow(line | {"valid_perplexity": perplexity, "seconds": each, "best": int(index == best)})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    write_curve(tmp_path, [400.0, 200.0, 100.0, 110.0], [10, 20, 30, 40])
    return Run({"model": "MLP9"}, 1, tmp_path, {})


@pytest.mark.parametrize(
    ("perplexity", "seconds"),
    [
        (400.0, 10),  # reached with the first epoch,
        (1000.0, 10),  # of which nothing more is known
        (200.0, 30),
        (282.842712474619, 20),  # 400 / sqrt 2: halfway between 400 and 200, so halfway through the second epoch
        (100.0, 60),
        (99.9, None),  # never; that validation rises again afterwards changes nothing
    ],
)
def test_seconds_until_a_perplexity(run: Run, perplexity: float, seconds: float | None) -> None:
    assert seconds_until(run.learning_curve(), perplexity) == (
        None if seconds is None else pytest.approx(seconds, rel=1e-12)
    )


def network(model: str, preset: str, valid: float, outputs: str = "words") -> Row:
    settings = {"model": model, "kind": "network", "preset": preset, "outputs": outputs}
    return Row(settings, [Run(settings, 1, Path(), {"perplexity": {"valid": valid}})], None)


def test_the_reference_is_the_best_exact_softmax_over_all_words() -> None:
    sampled, paper, exact = network("a", "modern", 90), network("b", "paper", 120), network("c", "exact", 100)
    classes = network("d", "exact", 80, "classes")
    assert reference_of([sampled, paper, exact, classes], PRESETS) is exact
    assert reference_of([sampled, classes], PRESETS) is classes  # without one, the best there is
    assert reference_of([], PRESETS) is None


def test_every_way_has_its_seconds_and_its_distance_from_the_reference(tmp_path: Path) -> None:
    study = small_study()
    study["presets"] = {"paper": PAPER, "modern": MODERN | {"objective": "sampled-softmax", "noise_words": 20}}
    outcomes = Outcomes(make_study(tmp_path, study, SMALL), tmp_path)
    assert [row["model"] for row in ways_to_train(study)] == ["MLP5", "MLP5-paper"]
    write_curve(tmp_path / "top40" / "MLP5" / "seed1", [300.0, 150.0], [7, 8])
    write_curve(tmp_path / "top40" / "MLP5-paper" / "seed1", [400.0, 200.0, 100.0], [10, 20, 30])
    reference, (modern, paper) = way_records(outcomes)
    assert reference is not None and reference.model == "MLP5-paper"
    assert (modern["seconds"], paper["seconds"]) == (15, 60)
    assert [modern[f"seconds_{percent}"] for percent in WITHIN] == [None] * 5  # 150 is 50 % above 100
    assert paper["seconds_1"] == pytest.approx(30 + 30 * 0.98564, rel=1e-5)  # log2(200 / 101)
    assert (paper["valid_percent"], paper["test_percent"]) == (0, 0)
    change = 100 * (270 / 340 - 1)
    assert modern["valid_percent"] == pytest.approx(change, rel=1e-6)


def test_a_study_without_networks_has_no_ways(tmp_path: Path) -> None:
    study = small_study()
    study["rows"] = [row for row in study["rows"] if row["kind"] not in ("network", "mixture")]
    study |= {"extended_rows": [], "sweep_rows": [], "sweeps": []}
    outcomes = Outcomes(make_study(tmp_path, study, SMALL), tmp_path)
    assert way_records(outcomes) == (None, [])
