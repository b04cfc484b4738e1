"""The tutorial runs from top to bottom and prints what its page shows; the notebook is the same page."""

from __future__ import annotations

import re
from codeop import compile_command
from pathlib import Path

import pytest
from run_tutorial import BLOCK, IMAGES, NOTEBOOK, PAGE, compare, differs, notebook, rewrite, run

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_shows_what_its_code_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert compare(TEXT, run(TEXT)) == []
    drawn = {path.name for path in tmp_path.rglob("*.png")}
    shown = set(re.findall(r"\]\(images/([^)]+)\)", TEXT))
    assert drawn == shown == {path.name for path in IMAGES.glob("tutorial-*")}


def test_the_notebook_is_the_page() -> None:
    assert NOTEBOOK.read_text(encoding="utf-8") == notebook(TEXT), "run python docs/run_tutorial.py --write"


def test_the_links_of_the_page_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (PAGE.parent / link).exists(), link


@pytest.mark.parametrize(
    ("shown", "printed", "found"),
    [
        ("valid 100.0 nats\n", "valid  101.9 nats\n", False),  # 2 % of 100; white space is free
        ("valid 100.0 nats\n", "valid 102.1 nats\n", True),
        ("cosine 0.97", "cosine 0.98", False),  # one in the last place
        ("cosine 0.07", "cosine 0.09", True),
        ("cosine 0.01", "cosine -0.01", True),
        ("1,234 tokens", "1,235 tokens", True),  # a count
        ("dog 0.50, cat 0.40", "cat 0.50, dog 0.40", True),
        ("1 2.0", "1", True),
        ("perplexity inf", "perplexity 9.0", True),
    ],
)
def test_numbers_may_differ_by_rounding_and_nothing_else_may(shown: str, printed: str, found: bool) -> None:
    assert differs(shown, printed) == found


PAGE_OF_ONE_BLOCK = "# One\n\n```python\nvalue = 3\nprint(value)\n```\n\nAnd\n\n```python\nassert value == 3\n```\n"


def test_what_is_written_is_what_is_compared() -> None:
    written = rewrite(PAGE_OF_ONE_BLOCK, run(PAGE_OF_ONE_BLOCK))
    assert written == PAGE_OF_ONE_BLOCK.replace("```\n\nAnd", "```\n\n```text\n3\n```\n\nAnd")
    assert rewrite(written, run(written)) == written
    assert compare(written, run(written)) == []
    other = written.replace("value = 3", "value = 4").replace("== 3", "== 4")
    assert compare(other, run(other)) == ["tutorial.md, block at line 3 prints something else:\n4\n"]


def test_a_traceback_names_the_line_of_the_page() -> None:
    with pytest.raises(AssertionError) as caught:
        list(run(PAGE_OF_ONE_BLOCK.replace("== 3", "== 4")))
    assert (Path(caught.traceback[-1].path).name, caught.traceback[-1].lineno + 1) == ("tutorial.md", 11)


PAGE_WITH_CORPUS = (
    f"<!-- corpus {'0' * 64} -->\n\n```python\nprint(1)\n```\n\n"
    "```python\nfrom nplm2003.corpora.embedded import open_embedded\n\nprint(2)\n```\n"
)


def test_a_page_of_another_corpus_only_has_to_run() -> None:
    """After the corpus is read, numbers are compared where it is the page's own."""
    written = rewrite(PAGE_WITH_CORPUS, run(PAGE_WITH_CORPUS))
    assert compare(written, run(written)) == []
    wrong = written.replace("text\n2", "text\n3")
    assert len(compare(wrong, run(wrong))) == 1
    of_other_corpus = re.sub(r"corpus [0-9a-f]+", "corpus " + "0" * 64, wrong)
    assert compare(of_other_corpus, run(of_other_corpus)) == []
    both_wrong = of_other_corpus.replace("text\n1", "text\n4")
    assert len(compare(both_wrong, run(both_wrong))) == 1


def test_the_blocks_can_be_pasted_into_python() -> None:
    """An interactive Python ends a compound statement at its first empty line, and there alone."""
    for block in BLOCK.finditer(TEXT):
        statement: list[str] = []
        for line in [*block["code"].splitlines(), ""]:
            statement.append(line)
            if compile_command("\n".join(statement), symbol="single"):
                statement = []
        assert statement == []
