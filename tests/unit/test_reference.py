"""Copying the small results to where they are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nplm2003.reference import LIMIT, copy_results


def write(folder: Path, files: dict[str, str]) -> list[Path]:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return [folder / name for name in files]


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_the_main_tables_stand_at_the_top_as_well(tmp_path: Path) -> None:
    files = {"tables/table1.csv": "rows", "tables/timings.csv": "seconds", "p/MLP1/seed1/evaluation.json": "{}"}
    written, first = write(tmp_path / "results", files), ("tables/table1.csv", "tables/timings.csv")
    assert copy_results(written, tmp_path / "results", tmp_path / "reference", first) == []
    assert contents(tmp_path / "reference") == {**files, "table1.csv": "rows", "timings.csv": "seconds"}


def test_what_was_there_before_is_gone(tmp_path: Path) -> None:
    write(tmp_path / "reference", {"p/MLP99/seed1/evaluation.json": "old"})
    copy_results(write(tmp_path / "results", {"study.json": "new"}), tmp_path / "results", tmp_path / "reference")
    assert contents(tmp_path / "reference") == {"study.json": "new"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reference", "results"]


def test_large_files_are_left_out_and_named(tmp_path: Path) -> None:
    files = write(tmp_path / "results", {"report.html": "x" * LIMIT, "paper.pdf": "x" * (LIMIT - 1)})
    assert copy_results(files, tmp_path / "results", tmp_path / "reference") == ["report.html"]
    assert list(contents(tmp_path / "reference")) == ["paper.pdf"]


def test_nothing_changes_when_a_file_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "reference", {"study.json": "old"})
    files = write(tmp_path / "results", {"study.json": "new"})
    with pytest.raises(FileNotFoundError):
        copy_results([*files, tmp_path / "results" / "zzz.json"], tmp_path / "results", tmp_path / "reference")
    assert contents(tmp_path / "reference") == {"study.json": "old"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reference", "results"]
