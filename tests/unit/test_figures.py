"""Figures: each one is drawn for a full study and for a bare one, shows the numbers, and is the same every time."""

from __future__ import annotations

import importlib
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from synthetic import NO_SWEEPS, ROOT, SMALL, class_based_study, make_study, row, small_study

from nplm2003.errors import UserError
from nplm2003.figures import FIGURES, figures_of, plot
from nplm2003.neighbours import principal_plane
from nplm2003.outcomes import Outcomes


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    folder = tmp_path_factory.mktemp("made up")
    return Outcomes(make_study(folder, small_study(), SMALL), folder)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """One n-gram on a text of the user's: no network, no mixture, no published table, one policy."""
    folder = tmp_path_factory.mktemp("bare")
    study = small_study()
    study.update(published=None, rows=[row("kneser-ney-5", "kneser-ney", order=5)], policy_models=["kneser-ney-5"])
    study.update(policies=study["policies"][:1], **NO_SWEEPS)
    return Outcomes(make_study(folder, study, SMALL), folder)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def draw(name: str, outcomes: Outcomes) -> Figure:
    module, function = FIGURES[name]
    return getattr(importlib.import_module(f"nplm2003.figures.{module}"), function)(outcomes)


def points(figure: Figure, panel: int) -> set[tuple[float, float]]:
    """Every point of every line of a panel, rounded."""
    return {
        (round(float(x), 3), round(float(y), 1))
        for line in figure.axes[panel].lines
        for x, y in zip(np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata()), strict=True)
    }


def texts(figure: Figure) -> str:
    found: list[Any] = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return " ".join(text.get_text() for text in found)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_as_png_and_svg(name: str, outcomes: Outcomes, tmp_path: Path) -> None:
    plot(name, outcomes, tmp_path / "figure")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "figure.svg").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "figure.svg"]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_for_a_study_with_one_row(name: str, bare: Outcomes, tmp_path: Path) -> None:
    plot(name, bare, tmp_path / "figure")
    assert (tmp_path / "figure.png").stat().st_size > 2_000


def test_the_same_results_give_the_same_bytes(outcomes: Outcomes, tmp_path: Path) -> None:
    for name in ("order", "word-features"):
        plot(name, outcomes, tmp_path / "first")
        plot(name, outcomes, tmp_path / "second")
        for suffix in ("png", "svg"):
            assert (tmp_path / f"first.{suffix}").read_bytes() == (tmp_path / f"second.{suffix}").read_bytes()


def test_listing_the_figures_loads_no_matplotlib() -> None:
    code = "import sys; import nplm2003.figures; sys.exit(bool({'matplotlib', 'pandas'} & set(sys.modules)))"
    source = str(Path(__file__).parents[2] / "src")
    assert subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"]).returncode == 0


@pytest.mark.parametrize("name", FIGURES)
def test_every_caption_says_how_to_read_the_figure_and_which_files_it_is_from(name: str) -> None:
    caption = (ROOT / "workflow" / "report" / f"{name}.rst").read_text(encoding="utf-8")
    assert re.search(r"^From: .*``[\w./*]+\.(json|csv|npy|py)``", caption, re.MULTILINE), caption


def test_models_stand_at_the_years_of_their_methods(outcomes: Outcomes) -> None:
    figure = draw("extended", outcomes)
    drawn = {(x, round(y)) for x, y in points(figure, 0)}
    assert {(1995, 353), (2003, 250), (2003, 226), (2012, 220), (2012, 208)} <= drawn
    assert all(name in texts(figure).split() for name in ("lstm", "all", "kneser-ney-5", "MLP6"))


def test_models_far_above_the_others_stand_at_the_edge_with_their_numbers(tmp_path: Path) -> None:
    study = small_study()
    add_k, unsmoothed = row("add-k-3", "add-k", order=3), row("unsmoothed", "maximum-likelihood", order=3)
    study["extended_rows"] += [add_k, unsmoothed]
    far = {"add-k-3": (60.0, 1600.0, 1500.0), "unsmoothed": (7.0, math.inf, math.inf)}
    figure = draw("extended", Outcomes(make_study(tmp_path, study, SMALL | far), tmp_path))
    assert "add-k-3: 1,500" in texts(figure) and "unsmoothed: infinite" in texts(figure)
    assert max(figure.axes[0].get_ylim()) < 500


def test_a_study_of_infinite_perplexities_says_so(tmp_path: Path) -> None:
    study = {**small_study(), **NO_SWEEPS, "published": None, "policy_models": ["ml"]}
    study["rows"] = [row("ml", "maximum-likelihood", order=3)]
    outcomes = Outcomes(make_study(tmp_path, study, {"ml": (7.0, math.inf, math.inf)}), tmp_path)
    assert "infinite" in texts(draw("extended", outcomes))


def test_names_of_models_never_cover_each_other(outcomes: Outcomes) -> None:
    figure = draw("extended", outcomes)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].texts]
    assert len(boxes) > 4
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_rows_show_our_value_and_the_published_one(outcomes: Outcomes) -> None:
    figure = draw("rows-against-paper", outcomes)
    x = {x for x, _ in points(figure, 1)}
    for ours in (250, 226, 296, 320, 336, 353.1):
        assert any(abs(value - ours) < 0.1 for value in x)
    for published in (279, 259, 293, 336, 321):
        assert published in x
    assert "networks, paper preset" in texts(figure)


def test_order_joins_networks_that_differ_in_the_order_only(outcomes: Outcomes) -> None:
    figure = draw("order", outcomes)
    assert {(3, 296.0), (5, 250.0), (3, 293.0), (5, 279.0), (3, 336.0)} <= points(figure, 1)
    assert "h = 50, m = 30, direct, modern" in texts(figure)
    assert "direct, paper" not in texts(figure)  # a single order says nothing of the order


def test_classes_stand_beside_the_published_ones_and_the_best_word_ngram(tmp_path: Path) -> None:
    study, perplexities = class_based_study()
    make_study(tmp_path, study, perplexities)
    outcomes = Outcomes(tmp_path / "study.json", tmp_path)
    figure = draw("classes", outcomes)
    ours, published = {(500, 320.0), (1000, 310.0), (500, 321.0)}, {(500, 326.0), (1000, 335.0), (500, 327.0)}
    assert ours | published <= points(figure, 0)
    lines = [list(line.get_xdata()) for line in figure.axes[0].lines]
    assert [500, 1000] in lines  # of one order, by the number of classes
    assert {y for _, y in points(figure, 1)} >= {353.1}  # best word n-gram on validation
    assert {"classes, n = 3", "classes, n = 4", "kneser-ney-5", "published"} <= {
        text.get_text() for legend in figure.legends for text in legend.get_texts()
    }
    plot("classes", outcomes, tmp_path / "classes")
    # Two orders make a line of the figure of the order; one alone says nothing of it.
    assert "500 word classes" in texts(draw("order", outcomes))
    assert "1000 word classes" not in texts(draw("order", outcomes))


def test_policies_show_every_policy_and_the_default_in_bold(outcomes: Outcomes) -> None:
    figure = draw("policies", outcomes)
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text().split()[0] for label in labels] == ["top40", "freq3"]
    assert [label.get_fontweight() for label in labels] == ["bold", "normal"]


def test_a_study_has_the_figures_of_its_sweeps_alone() -> None:
    study = small_study()
    assert set(figures_of(study)) == set(FIGURES)
    study["sweeps"] = [point for point in study["sweeps"] if point["sweep"] == "train"]
    assert [name for name in figures_of(study) if name.startswith("sweep")] == ["sweep-train"]


def test_sweeps_show_every_point_at_its_setting(outcomes: Outcomes) -> None:
    order = draw("sweep-order", outcomes)
    assert {(3, 296.0), (5, 250.0), (5, 353.1)} == points(order, 1)
    assert "network, h = 50, m = 30, direct, modern" in texts(order) and "Kneser-Ney" in texts(order)
    hidden = draw("sweep-hidden", outcomes)
    assert {(25, 310.0), (50, 270.0)} < points(hidden, 0)
    # An n-gram has no hidden units: a level line from the first place to the last.
    assert points(hidden, 0) - {(25, 310.0), (50, 270.0)} == {(25, 332.0), (50, 332.0)}
    train = draw("sweep-train", outcomes)
    assert points(train, 1) == {(1400, 300.0), (2800, 250.0), (2800, 353.1)}
    assert train.axes[0].get_xscale() == train.axes[0].get_yscale() == "log"
    policy = draw("sweep-policy", outcomes)
    assert points(policy, 1) == {(353.1, 0), (353.1, 1)}
    assert [label.get_text() for label in policy.axes[0].get_yticklabels()] == ["top40", "freq3"]


def test_learning_curves_mark_the_epoch_that_was_kept(outcomes: Outcomes) -> None:
    figure = draw("learning-curves", outcomes)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["modern preset", "paper preset"]
    kept = [
        line.get_xdata()[0] for line in figure.axes[1].lines if line.get_marker() == "o" and len(line.get_xdata()) == 1
    ]
    assert kept == [10]


def test_the_ways_to_train_a_network_stand_on_one_axis_of_seconds(outcomes: Outcomes) -> None:
    # MLP5 under both presets has the most ways; its epochs took 60 seconds each.
    figure = draw("training-time", outcomes)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "n = 5, h = 50, m = 30, direct"
    assert [list(line.get_xdata())[:3] for line in axes.lines] == [[60, 120, 180]] * 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["MLP5", "MLP5-paper"]


def test_missing_learning_curve_is_named(tmp_path: Path) -> None:
    outcomes = Outcomes(make_study(tmp_path, small_study(), SMALL), tmp_path)
    (tmp_path / "top40" / "MLP7" / "seed1" / "learning_curve.csv").unlink()
    with pytest.raises(UserError, match=r"MLP7.seed1.learning_curve.csv does not exist"):
        plot("learning-curves", outcomes, tmp_path / "figure")
    assert not list(tmp_path.glob("*figure*"))


def test_mixture_curve_runs_from_the_trigram_to_the_network(outcomes: Outcomes) -> None:
    figure = draw("mixture-weight", outcomes)
    assert {(0.0, 352.0), (1.0, 270.0)} <= points(figure, 0)
    assert {(0.0, 336.0), (1.0, 250.0)} <= points(figure, 1)
    # The network gives every token more than the trigram does, so all the weight is learnt to be its own.
    learnt = [
        line for line in figure.axes[0].lines if line.get_marker() == "o" and line.get_markerfacecolor() != "white"
    ]
    assert learnt[0].get_xdata()[0] == pytest.approx(1, abs=0.01)


def test_frequency_bars_add_up_to_the_ratio_of_the_perplexities(outcomes: Outcomes) -> None:
    figure = draw("word-frequency", outcomes)
    bars = [patch.get_height() for patch in figure.axes[1].patches]  # type: ignore[attr-defined]
    assert sum(bars) == pytest.approx(math.log(250 / 336), abs=1e-4)


def test_several_seeds_are_one_line_in_every_legend(tmp_path: Path) -> None:
    study = small_study()
    for each in study["rows"]:
        each["seeds"] = [1, 2, 3] if each["kind"] in ("network", "mixture") else [0]
    outcomes = Outcomes(make_study(tmp_path, study, SMALL), tmp_path)
    curves, weights, order, words = (
        draw(name, outcomes) for name in ("learning-curves", "mixture-weight", "order", "word-frequency")
    )
    assert len(curves.axes[1].lines) == 3 * 3  # MLP5-paper: validation, train and the epoch kept, of each seed
    assert [text.get_text() for text in curves.legends[1].texts] == ["MLP5", "MLP7"]
    assert [text.get_text() for text in weights.legends[0].texts] == ["MLP5", "weight 0.5", "learnt on validation"]
    # Perplexities of the seeds are 250, 252.5 and 255, at n = 5; their mean stands in the figures.
    assert (1.0, 252.5) in points(weights, 1) and (5, 252.5) in points(order, 1)
    bars = [patch.get_height() for patch in words.axes[1].patches]  # type: ignore[attr-defined]
    assert sum(bars) == pytest.approx(np.mean(np.log([250, 252.5, 255])) - math.log(336), abs=1e-4)


def test_claims_show_the_effect_the_published_one_and_the_verdict(outcomes: Outcomes) -> None:
    figure = draw("claims", outcomes)
    x = {x for x, _ in points(figure, 0)}
    # Claim 1: MLP6 against Kneser-Ney, 226 / 353.1, published 252 / 312; claim 2a: MLP5 against MLP7.
    for effect in (226 / 353.1, 252 / 312, 250 / 296, 279 / 293):
        assert any(abs(value - 100 * (effect - 1)) < 0.02 for value in x), effect
    assert [label.get_text()[:2].strip() for label in figure.axes[0].get_yticklabels()] == ["1", "2a", "4"]
    assert "holds" in texts(figure)


def test_word_map_always_labels_the_listed_words(outcomes: Outcomes) -> None:
    figure = draw("word-features", outcomes)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert {"cat", "dog", "bedroom", "room"} <= set(shown)
    assert "<rare>" not in shown


@settings(deadline=None)
@given(st.integers(3, 30), st.integers(1, 8), st.integers(0, 1000))
def test_principal_plane_holds_the_most_variance_and_ignores_signs(k: int, m: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(k, m))
    plane = principal_plane(vectors)
    singular = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)[:2]
    assert np.linalg.norm(plane, axis=0) == pytest.approx(np.pad(singular, (0, 2 - len(singular))), abs=1e-8)
    assert plane.mean(axis=0) == pytest.approx([0, 0], abs=1e-8)
