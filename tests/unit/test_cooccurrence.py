"""Co-occurrence counts by hand, and what features made of them must be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm2003.neural.cooccurrence import DEVIATION, WINDOW, count_neighbours, svd_features
from nplm2003.vocabulary import TokenStore


def test_counts_by_hand() -> None:
    # 1 2 1 3: within two tokens 1 and 2 meet twice, 1 and 3 once, 2 and 3 once, and 1 meets itself, from both ends.
    counts = count_neighbours(np.array([1, 2, 1, 3], dtype=np.uint16), 4, np.array([1, 2, 3]), window=2)
    assert counts.tolist() == [[0, 0, 0], [2, 2, 1], [2, 0, 1], [1, 1, 0]]
    # The columns are the words asked for, in their order; the next token alone is another window.
    assert count_neighbours(np.array([1, 2, 1, 3]), 4, np.array([3, 1]), window=1).tolist() == [
        [0, 0],
        [1, 0],
        [0, 2],
        [0, 1],
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 4))
def test_counts_are_symmetric_and_complete(stream: list[int], window: int) -> None:
    counts = count_neighbours(np.array(stream), 6, np.arange(6), window)
    assert np.array_equal(counts, counts.T)
    # Every pair of places closer than the window, from both ends.
    assert counts.sum() == 2 * sum(max(len(stream) - distance, 0) for distance in range(1, window + 1))


def test_features_are_singular_vectors(tiny_store: TokenStore) -> None:
    m = 5
    features = svd_features(tiny_store, m).numpy()
    seen = np.flatnonzero(tiny_store.train_counts)
    assert features.shape == (tiny_store.size, m) and features.dtype == np.float32
    assert not features[tiny_store.train_counts == 0].any()
    # Uncorrelated, with mean 0 and one deviation for all.
    covariance = np.cov(features[seen].T, bias=True)
    np.testing.assert_allclose(covariance, DEVIATION**2 * np.eye(m), atol=1e-6)
    np.testing.assert_allclose(features[seen].mean(axis=0), 0, atol=1e-6)
    # Another way: NumPy's decomposition of the whole matrix.
    frequent = seen[np.argsort(-tiny_store.train_counts[seen], kind="stable")]
    counts = count_neighbours(tiny_store["train"], tiny_store.size, frequent, WINDOW)[seen]
    rows = np.log1p(counts)
    left = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[0][:, :m]
    cosines = (left * features[seen]).sum(axis=0) / np.linalg.norm(features[seen], axis=0)
    assert np.abs(cosines) == pytest.approx(1, abs=1e-4)
    assert (np.take_along_axis(features, np.abs(features).argmax(axis=0)[None], axis=0) > 0).all()


def test_words_that_are_used_alike_stand_together(tiny_store: TokenStore) -> None:
    features = svd_features(tiny_store, 5).numpy()

    def cosine(one: str, other: str) -> float:
        a, b = (features[tiny_store.words.index(word)] for word in (one, other))
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    assert cosine("cat", "dog") > 0.5 > cosine("cat", "sees")
    assert cosine("the", "every") > 0.5 > cosine("the", "cat")
