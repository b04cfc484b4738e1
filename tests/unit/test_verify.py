"""Committed results are told apart from what no longer follows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from synthetic import ROOT, SMALL, in_parts, make_study, small_study

from nplm2003.cli import main
from nplm2003.files import read_json, write_json
from nplm2003.outcomes import Outcomes
from nplm2003.scoring import SPLITS, Scores, write_scores
from nplm2003.tables import TABLES
from nplm2003.verify import difference, verify_scores, verify_tables


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A made-up study with its tables; a copy of it, without scores and tokens, is what is committed."""
    folder = tmp_path / "results"
    study = make_study(folder, small_study(), SMALL)
    (folder / "tables").mkdir()
    outcomes = Outcomes(study, folder)
    for table, tabulate in TABLES.items():
        tabulate(outcomes, folder / "tables" / ("table1" if table == "rows" else table))
    return folder


@pytest.fixture
def reference(results: Path) -> Path:
    folder = results.parent / "reference"
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns("*.npy", "vocabulary.tsv"))
    return folder


@pytest.mark.parametrize("corpus", ["brown", "reuters"])
def test_the_committed_tables_follow(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # the published tables are named from there
    findings = dict(verify_tables(Path("results/reference") / corpus))
    assert len(findings) >= 7
    assert {name: wrong for name, wrong in findings.items() if wrong is not None} == {}


def test_what_was_made_of_the_scores_follows(results: Path, reference: Path) -> None:
    findings = dict([*verify_tables(reference), *verify_scores(reference, results)])
    assert set(findings.values()) == {None}
    assert {"tables/table1.csv", "top40/MLP5/seed1/evaluation.json", "top40/uncertainty.json"} <= set(findings)


def test_a_changed_number_is_found(results: Path, reference: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, evaluation = reference / "tables" / "runs.csv", reference / "top40" / "MLP7" / "seed1" / "evaluation.json"
    lines = table.read_text(encoding="utf-8").split("\n")
    lines[1] = lines[1].replace("MLP5,1,", "MLP5,1,9")
    table.write_text("\n".join(lines), encoding="utf-8")
    content = read_json(evaluation)
    content["perplexity"]["test"] *= 1 + 1e-6
    write_json(evaluation, content)
    assert main(["verify", "--reference", str(reference), "--results", str(results)]) == 1
    output = capsys.readouterr()
    said = dict(line.split(": ", 1) for line in output.out.splitlines())
    assert said["tables/runs.csv"].startswith("[0].train is '9150.0")
    assert said["top40/MLP7/seed1/evaluation.json"].startswith("perplexity.test is 296.000")
    assert said["top40/MLP5/seed1/evaluation.json"] == "follows"
    assert "uncertainty.json does not belong to the scores of MLP7" in said["tables/table1.csv"]
    assert "files of " in output.err and "do not follow any more" in output.err


def test_changed_scores_are_found(results: Path, reference: Path) -> None:
    folder = results / "top40" / "kneser-ney-5" / "seed0" / "scores"
    scores = Scores(folder)
    values = {split: scores[split].copy() for split in SPLITS}
    values["test"][0] -= 1
    more = {"model": scores.model, "seed": scores.seed, "vocabulary": scores.vocabulary, "provenance": {}}
    write_scores(folder, in_parts(values), **more)
    findings = dict(verify_scores(reference, results))
    wrong = {name for name, each in findings.items() if each is not None}
    assert "top40/kneser-ney-5/seed0/evaluation.json" in wrong and "top40/MLP5/seed1/evaluation.json" not in wrong


def test_differences_by_hand() -> None:
    assert difference({"a": [1, "2.5"]}, {"a": [1 + 1e-12, "2.50"]}) is None
    assert difference({"a": [1, 2]}, {"a": [1, 2 + 1e-6]}) == "a[1] is 2, and now 2.000001"
    assert difference([1], [1, 2]) == "it has 1 entries, and now 2"
    assert difference({"a": {"b": 1}}, {"a": {"c": 1}}) == "a has b, and now c"
    assert difference({"a": None}, {"a": ""}) == "a is None, and now ''"
