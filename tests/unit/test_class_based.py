"""Class-based n-grams: a class n-gram through KenLM, and the word within its class."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kenlm_tools import require_lmplz
from synthetic import all_scores

from nplm2003.cli import main
from nplm2003.ngram.class_based import ClassBased, ClassStream, log_within_class
from nplm2003.ngram.classes import learn, write_classes
from nplm2003.ngram.kneser_ney import FALLBACK_DISCOUNTS, KneserNey, estimate
from nplm2003.scoring import SPLITS, Scores
from nplm2003.vocabulary import Split, TokenStore


@pytest.fixture(scope="module")
def lmplz() -> Path:
    return require_lmplz()


@pytest.fixture(scope="module")
def store(build_store: Callable[..., TokenStore], invented_text: Callable[..., str]) -> TokenStore:
    """Three words occur in test alone."""
    return build_store(f"{invented_text(250)} {'new newer newest ' * 30}", Split(1200, 200), 43)


@pytest.fixture(scope="module")
def class_of(store: TokenStore) -> np.ndarray:
    return learn(store["train"], store.size, 8)[0]


def estimated(store: TokenStore, class_of: np.ndarray, order: int, lmplz: Path, folder: Path) -> ClassBased:
    estimate(ClassStream(store, class_of), order, lmplz, folder / "model.arpa")
    return ClassBased(folder / "model.arpa", store, class_of)


def test_within_a_class_by_hand() -> None:
    """Class 0: words seen 3, 0 and 0 times, so 4/6, 1/6, 1/6. Class 1: 1 and 4 times, so 2/7, 5/7."""
    values = np.exp(log_within_class(np.array([3, 1, 0, 4, 0]), np.array([0, 1, 0, 1, 0])))
    assert values == pytest.approx([4 / 6, 2 / 7, 1 / 6, 5 / 7, 1 / 6])


@pytest.mark.parametrize("order", [3, 4, 5])
def test_sums_to_one(store: TokenStore, class_of: np.ndarray, order: int, lmplz: Path, tmp_path: Path) -> None:
    model = estimated(store, class_of, order, lmplz, tmp_path)
    draw = np.random.default_rng(order)
    unseen = int(np.flatnonzero(store.train_counts == 0)[0])
    contexts = [store["train"][:0], store["train"][:1], store["train"][-order:], np.array([unseen, 1]), [unseen] * 4]
    contexts += [draw.integers(0, store.size, order - 1) for _ in range(10)]
    for context in (np.asarray(each, dtype=np.int64) for each in contexts):
        values = model.distribution(context)
        assert values.shape == (store.size,) and values.min() > 0
        assert values.sum() == pytest.approx(1, abs=1e-5)


def test_the_product_of_both_factors(store: TokenStore, class_of: np.ndarray, lmplz: Path, tmp_path: Path) -> None:
    model = estimated(store, class_of, 3, lmplz, tmp_path)
    classes = KneserNey(tmp_path / "model.arpa", ClassStream(store, class_of))
    counts = store.train_counts
    context = store["valid"][:2]
    of_class = classes.distribution(class_of[context])
    for word in (0, 5, store.size - 1):
        mates = class_of == class_of[word]
        within = (counts[word] + 1) / (counts[mates].sum() + mates.sum())
        assert model.distribution(context)[word] == pytest.approx(of_class[class_of[word]] * within)


def test_scores_are_those_of_the_stream(store: TokenStore, class_of: np.ndarray, lmplz: Path, tmp_path: Path) -> None:
    model = estimated(store, class_of, 4, lmplz, tmp_path)
    before: list[int] = []
    for split in SPLITS:
        ids = store[split].tolist()
        stream, scores = [*before, *ids], all_scores(model.score(split))
        assert len(scores) == len(ids)
        for t in [*range(6), len(ids) - 1]:
            end = len(before) + t
            context = np.array(stream[max(0, end - 3) : end], dtype=np.int64)
            assert scores[t] == pytest.approx(math.log(model.distribution(context)[ids[t]]), abs=1e-6)
        before = ids[-3:]


def test_commands(store: TokenStore, lmplz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, model, scores = tmp_path / "classes.tsv", tmp_path / "a model" / "model.arpa", tmp_path / "scores"
    write_classes(store, 8, table)
    given = ["--tokens", str(store.folder), "--classes", str(table)]
    assert main(["estimate-class-based", *given, "--order", "3", "--lmplz", str(lmplz), "--output", str(model)]) == 0
    description = json.loads(model.with_suffix(".json").read_text())
    assert (description["order"], description["classes"], description["vocab_pad"]) == (3, 8, 9)
    # Eight frequent classes: no class is seen once, twice, three or four times.
    assert description["fallback"] is True and 1 in description["fallback_orders"]
    assert description["discounts"]["1"] == list(FALLBACK_DISCOUNTS)

    scoring = ["--model-file", str(model), "--model", "classes-8-3", "--output", str(scores)]
    assert main(["score-class-based", *given, *scoring]) == 0
    written = Scores(scores)
    assert (written.model, written.vocabulary) == ("classes-8-3", store.fingerprint)
    assert written.metadata["provenance"]["configuration"]["classes"] == 8
    uniform = math.log(store.size)
    assert -uniform < written["test"].mean() < 0

    capsys.readouterr()
    write_classes(store, 7, table)
    capsys.readouterr()
    assert main(["score-class-based", *given, *scoring]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "was not estimated on the classes of" in line
