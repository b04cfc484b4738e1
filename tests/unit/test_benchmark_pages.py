"""What the pages of benchmarks say follows from the committed measurements."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


def script(name: str) -> ModuleType:
    """A script of benchmarks/, which are no part of the package."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))  # where it finds the others
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def projection() -> ModuleType:
    return script("projection")


def test_a_stage_is_carried_on_with_the_slope_of_its_last_two_sizes(projection: ModuleType) -> None:
    points = [(10.0, 1.0), (100.0, 2.0), (1000.0, 200.0)]  # the last step: tenfold size, a hundredfold cost
    assert projection.slope(points) == pytest.approx(2)
    assert projection.seconds_at(points, 10_000) == pytest.approx(20_000)
    flat = [(10.0, 1.0), (100.0, 1.0)]
    assert projection.seconds_at(flat, 1000) == pytest.approx(10)  # every token must be read


def test_memory_has_a_part_that_stays_and_one_that_grows(projection: ModuleType) -> None:
    assert projection.mebibytes_at([(1.0, 0.0), (10.0, 25.0), (100.0, 70.0)], 1000) == pytest.approx(20 + 0.5 * 1000)
    assert projection.mebibytes_at([(10.0, 3.0), (100.0, 2.0)], 1000) == 2


def test_what_is_too_large_is_named(projection: ModuleType) -> None:
    lines = [
        {"stage": stage, "size": size, "mebibytes": memory}
        for stage, memories in {"small": ("10", "10"), "large": ("100", "1000")}.items()
        for size, memory in zip(("1e6", "1e7"), memories, strict=True)
    ]
    assert projection.too_large(lines).splitlines() == [
        "- for 14 million (AP News) words by no stage.",
        "- for 1 billion words by `large`.",  # 98 GiB
        "- for 100 billion words by `large`.",
    ]


def test_the_projection_is_the_one_that_the_measurements_give(projection: ModuleType) -> None:
    assert (ROOT / "docs" / "growth.md").read_text(encoding="utf-8") == projection.page(projection.RESULTS)


def test_the_cost_of_sampling_is_the_one_that_the_tables_give() -> None:
    quality = script("quality")
    assert quality.signed(quality.gap_percent(99, 100)) == "−1.00"
    text = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert quality.table(mixtures=False) in text
    assert quality.table(mixtures=True) in text
    assert quality.penalty_table() in text
