"""The n-gram rows on Brown under the default policy (whole stream, top 16,383, no marks), pinned to 0.1."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from kenlm_tools import require_lmplz
from synthetic import all_scores

from nplm2003.corpora.brown import open_brown
from nplm2003.corpora.fetch import DATASETS, fetch
from nplm2003.evaluation import perplexity
from nplm2003.ngram.counts import NgramCounts
from nplm2003.ngram.interpolated import InterpolatedTrigram, TrigramCounts, estimate
from nplm2003.ngram.kneser_ney import KneserNey
from nplm2003.ngram.kneser_ney import estimate as estimate_kneser_ney
from nplm2003.ngram.smoothed import SmoothedNgram
from nplm2003.ngram.smoothed import estimate as estimate_smoothed
from nplm2003.scoring import SPLITS
from nplm2003.vocabulary import Policy, Split, TokenStore, build_tokens


@pytest.fixture(scope="module")
def brown(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    beside = Path(__file__).parents[3] / "shared" / "data"
    mirror = os.environ.get("NPLM2003_MIRROR") or (str(beside) if beside.is_dir() else None)
    if mirror is None:
        pytest.skip("THE BROWN N-GRAMS ARE NOT TESTED: set NPLM2003_MIRROR to a folder that holds corpora/brown.zip")
    folder = tmp_path_factory.mktemp("brown")
    fetch(DATASETS["brown"], folder / "brown.zip", mirror)
    policy = Policy("top16383", "stream", "rank", 16_383)
    build_tokens(open_brown(folder / "brown.zip"), "brown", policy, Split(800_000, 200_000), folder / "tokens", {})
    return TokenStore(folder / "tokens")


def test_interpolated_trigram(brown: TokenStore) -> None:
    counts = TrigramCounts(brown["train"], brown.size)
    model = InterpolatedTrigram(counts, estimate(counts, brown)[0])
    measured = [perplexity(all_scores(model.score(brown, split))) for split in SPLITS]
    assert measured == pytest.approx([32.8, 350.1, 330.5], abs=0.1)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("maximum-likelihood", [7.2, math.inf, math.inf]),
        ("add-k", [56.3, 1568.3, 1538.5]),
        ("katz", [30.1, 378.1, 357.2]),
        ("absolute-discounting", [20.6, 405.2, 379.5]),
    ],
)
def test_older_smoothing(brown: TokenStore, kind: str, expected: list[float]) -> None:
    counts = NgramCounts(brown["train"], brown.size, 3)
    parameters = estimate_smoothed(kind, counts, brown)
    # The vocabulary leaves out rare words, so that Good-Turing says nothing of how many there are.
    assert parameters.get("fallback_orders", []) == ([1] if kind == "katz" else [])
    model = SmoothedNgram(kind, counts, parameters)
    measured = [perplexity(all_scores(model.score(brown, split))) for split in SPLITS]
    assert measured == pytest.approx(expected, abs=0.1)
    for context in (brown.history("valid", 2), brown.history("test", 2)):
        assert model.distribution(context).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("order", "expected"), [(3, [22.6, 331.2, 314.1]), (5, [8.4, 328.6, 311.5])])
def test_kneser_ney(brown: TokenStore, tmp_path: Path, order: int, expected: list[float]) -> None:
    description = estimate_kneser_ney(brown, order, require_lmplz(), tmp_path / "model.arpa")
    assert description["fallback"] is False
    model = KneserNey(tmp_path / "model.arpa", brown)
    assert [perplexity(all_scores(model.score(split))) for split in SPLITS] == pytest.approx(expected, abs=0.1)
    # The reserved </s> is small, and V has the rest.
    for context in (brown.history("test", order - 1), brown["train"][:0]):
        assert model.reserved_mass(context) < 1e-5
        assert model.distribution(context).sum() == pytest.approx(1, abs=1e-5)
    assert model.distribution(brown.history("valid", order - 1)).sum() == pytest.approx(1, abs=1e-6)
