"""The write-up builds from the results alone, says what they say, and is the same every time."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

import pytest
from synthetic import NO_SWEEPS, ROOT, SMALL, make_study, row, small_study

from nplm2003.errors import UserError
from nplm2003.figures import FIGURES, plot
from nplm2003.outcomes import Outcomes
from nplm2003.paper import needed, write_paper
from nplm2003.study import table_file
from nplm2003.tables import TABLES, tabulate_timings

typst = pytest.importorskip("typst", reason="typst typesets the write-up")
SOURCE = ROOT / "paper" / "main.typ"


def make_results(folder: Path, *, full: bool) -> Path:
    """Everything the write-up reads: of the small study, or of one n-gram on a text without published numbers."""
    study = small_study()
    if not full:
        study.update(name="mine", title="My own text", corpus={"source": "text"}, published=None, **NO_SWEEPS)
        study["policy_models"] = ["kneser-ney-5"]
        study["rows"] = [row("kneser-ney-5", "kneser-ney", order=5)]
    outcomes = Outcomes(make_study(folder, study, SMALL), folder)
    for name, tabulate in TABLES.items():
        tabulate(outcomes, folder / "tables" / table_file(study, name))
    tabulate_timings(folder / "benchmarks", folder / "tables" / "timings.csv")
    for name in FIGURES:
        plot(name, outcomes, folder / "figures" / name)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("results") / "made up", full=True)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("results") / "mine", full=False)


def words_of(results: Path) -> str:
    """The words of the write-up, figures aside: typst can write a document as HTML, which is text."""
    root = Path(os.path.commonpath([SOURCE.parent, results]))
    inputs = {"results": f"/{results.relative_to(root)}"}
    page = typst.compile(str(SOURCE), root=str(root), format="html", sys_inputs=inputs)
    page = re.sub(r"<svg.*?</svg>|<style.*?</style>|<img[^>]*>", " ", page.decode(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_paper_is_a_pdf_and_the_same_every_time(results: Path, tmp_path: Path) -> None:
    write_paper(results, SOURCE, tmp_path / "first.pdf")
    write_paper(results, SOURCE, tmp_path / "second.pdf")
    content = (tmp_path / "first.pdf").read_bytes()
    assert content.startswith(b"%PDF") and len(content) > 50_000
    assert content == (tmp_path / "second.pdf").read_bytes()


def test_paper_builds_for_a_study_with_one_row(bare: Path, tmp_path: Path) -> None:
    write_paper(bare, SOURCE, tmp_path / "paper.pdf")
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_paper_says_what_the_results_say(results: Path) -> None:
    words = words_of(results)
    # Best network on validation: MLP5 (270); best n-gram: Kneser-Ney (332, test 353.1); 226 / 353.1 = 0.64.
    assert "the best network (MLP5) reaches a test perplexity of 250.0" in words
    assert "the best n-gram (kneser-ney-5) 353.1" in words
    assert "The best mixture (MLP6) reaches 226.0, 36.0 % lower than the best n-gram" in words
    assert "Of 9 targets fixed before the runs, 7 were met" in words
    assert "hold, 0 do not, 0 stay undecided, and 8 could not be tested here" in words
    assert "MLP6 against kneser-ney-5" in words
    assert "the paper’s has 1,181,041 tokens of 47,578 types" in words
    assert "Brown corpus [" in words
    assert "every point is one run, with the first seed" in words


def test_paper_of_another_text_makes_no_claim_about_brown(bare: Path) -> None:
    words = words_of(bare)
    assert "No published number exists for it" in words
    assert "The study trains no network" in words
    for claim in ("1,181,041", "Brown corpus", "the best network", "The best mixture", "one thing varies"):
        assert claim not in words


@pytest.mark.parametrize("name", needed(small_study()))
def test_missing_piece_is_named(name: str, results: Path, tmp_path: Path) -> None:
    place = results / name
    moved = place.rename(place.with_name("moved"))
    try:
        with pytest.raises(UserError, match=re.escape(name)):
            write_paper(results, SOURCE, tmp_path / "paper.pdf")
    finally:
        moved.rename(place)
    assert not list(tmp_path.iterdir())


def test_broken_results_give_one_line_and_no_pdf(results: Path, tmp_path: Path) -> None:
    for name, damage, said in (
        ("study.json", json.dumps({"title": "no rows", "table": "table1", "sweeps": []}), "it has no name"),
        ("tables/claims.csv", "no,claims\n1,2\n", "cannot be typeset"),
    ):
        path = results / name
        content = path.read_text(encoding="utf-8")
        try:
            path.write_text(damage, encoding="utf-8")
            with pytest.raises(UserError, match=said) as caught:
                write_paper(results, SOURCE, tmp_path / "paper.pdf")
        finally:
            path.write_text(content, encoding="utf-8")
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_source_holds_no_measured_number() -> None:
    """A decimal number in the text of the source would be one that no results file stands behind."""
    body = SOURCE.read_text(encoding="utf-8").split("// --- abstract")[1]
    found = set(re.findall(r"(?<![\w.])\d+\.\d+(?!\d*(?:pt|em|cm|fr))", body))
    assert found <= {"0.5"}, f"numbers in the text: {found}"  # 0.5 is the weight of the paper's mixtures


def test_commands_write_the_same_files(results: Path, tmp_path: Path) -> None:
    from nplm2003.commands import results as commands

    parser = argparse.ArgumentParser()
    commands.register(parser.add_subparsers())
    study = ["--study", str(results / "study.json")]

    def run(*arguments: str) -> None:
        options = parser.parse_args(arguments)
        options.run(options)

    for table in TABLES:
        where = [] if table == "departures" else ["--results", str(results)]
        run(f"tabulate-{table}", *study, *where, "--output", str(tmp_path / table))
        stem = results / "tables" / table_file({"table": "table1"}, table)
        for suffix in ("csv", "md", "tex", "html"):
            assert (tmp_path / f"{table}.{suffix}").read_text() == Path(f"{stem}.{suffix}").read_text()
    intervals = results / "top40" / "uncertainty.json"
    run("bootstrap", *study, "--results", str(results), "--output", str(tmp_path / "uncertainty.json"))
    drawn = json.loads((tmp_path / "uncertainty.json").read_text(encoding="utf-8"))
    assert drawn.pop("provenance")["configuration"] == {"study": "brown"}
    assert drawn == json.loads(intervals.read_text(encoding="utf-8"))
    run("tabulate-timings", "--benchmarks", str(results / "benchmarks"), "--output", str(tmp_path / "timings.csv"))
    assert (tmp_path / "timings.csv").read_text() == (results / "tables" / "timings.csv").read_text()
    run("plot", "order", *study, "--results", str(results), "--output", str(tmp_path / "order"))
    assert (tmp_path / "order.svg").read_bytes() == (results / "figures" / "order.svg").read_bytes()
    run("write-paper", "--results", str(results), "--source", str(SOURCE), "--output", str(tmp_path / "paper.pdf"))
    assert (tmp_path / "paper.pdf").is_file()
    folder = results / "top40" / "MLP5" / "seed1"
    tokens = ["--tokens", str(results / "top40" / "tokens")]
    run("evaluate", "--scores", str(folder / "scores"), *tokens, "--output", str(tmp_path / "evaluation.json"))
    assert (tmp_path / "evaluation.json").read_text() == (folder / "evaluation.json").read_text()
    with pytest.raises(UserError, match="scored on other tokens"):
        tokens = ["--tokens", str(results / "freq3" / "tokens")]
        run("evaluate", "--scores", str(folder / "scores"), *tokens, "--output", str(tmp_path / "other.json"))


def test_every_caption_of_the_report_is_there() -> None:
    captions = {path.stem for path in (ROOT / "workflow" / "report").glob("*.rst")}
    needed = {*FIGURES, *TABLES, "timings", "paper", "workflow"}
    assert captions == needed
