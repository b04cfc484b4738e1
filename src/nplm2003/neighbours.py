"""Nearest neighbours of words in the feature space C that a network has learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nplm2003.errors import UserError
from nplm2003.files import read_array
from nplm2003.outcomes import Outcomes, Run
from nplm2003.vocabulary import TokenStore

# The words of the two sentences of the paper's introduction ("The cat is walking in the bedroom", "A dog was running
# in a room"), the pairs that the paper hopes to see close together, and a few more of other kinds.
WORDS = ("cat", "dog", "bedroom", "room", "walking", "running", "the", "a", "is", "was", "in", "three")
LENGTH = 8  # neighbours per word
ENOUGH = 30  # a word seen less often than this has hardly left its random start: it is no one's neighbour


def read_features(run: Run, store: TokenStore) -> np.ndarray:
    """C of a trained network: float32, shape (|V|, m)."""
    path = run.folder / "features.npy"
    if not path.is_file():
        raise UserError(f"{path} does not exist: train {run.model} with seed {run.seed} first")
    features = read_array(path)
    if len(features) != store.size:
        raise UserError(f"{path} has {len(features):,} words, its tokens {store.size:,}: train {run.model} again")
    return features


def nearest(features: np.ndarray, word: int, among: np.ndarray, length: int = LENGTH) -> list[tuple[int, float]]:
    """The `length` ids of `among` nearest to `word` by the cosine of their features, with the cosines.

    `features`: shape (|V|, m), taken from their mean over `among` (a direction that all words share says nothing of
    them); `among`: ids, shape (k,).
    """
    centred = features - features[among].mean(axis=0)
    norms = np.linalg.norm(centred, axis=1)
    cosines = centred[among] @ centred[word] / np.maximum(norms[among] * norms[word], 1e-12)
    order = np.argsort(-cosines, kind="stable")
    return [(int(among[i]), float(cosines[i])) for i in order if among[i] != word][:length]


def principal_directions(vectors: np.ndarray) -> np.ndarray:
    """The first two principal components of `vectors` (k, m) as directions: shape (2, m), signs made definite.

    Those that `vectors` have not, being too few or in too few dimensions, are 0.
    """
    _, _, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    plane = np.zeros((2, vectors.shape[1]))
    plane[: len(directions)] = directions[:2]
    # A singular vector has no sign of its own: let its largest element be positive.
    return plane * (np.sign(np.take_along_axis(plane, np.abs(plane).argmax(axis=1)[:, None], axis=1)) + 0.0)


def principal_plane(vectors: np.ndarray) -> np.ndarray:
    """Coordinates of `vectors` (k, m) on their first two principal components: shape (k, 2)."""
    return (vectors - vectors.mean(axis=0)) @ principal_directions(vectors).T


def listed_words(store: TokenStore, words: Sequence[str] = WORDS) -> list[str]:
    """`words`, and for each that the vocabulary lacks one frequent word more, so that every corpus has a full list."""
    known = set(store.words)
    missing = sum(word not in known for word in words)
    frequent = (
        store.words[i]
        for i in np.argsort(-store.train_counts, kind="stable")
        if len(store.words[i]) > 3 and store.words[i].isalpha() and store.words[i] not in words
    )
    return [*words, *(word for word, _ in zip(frequent, range(missing), strict=False))]


def neighbour_records(outcomes: Outcomes) -> tuple[Run | None, list[dict[str, Any]]]:
    """The best run of the network that is best on validation, and one record per listed word.

    Records hold `word`, `train_count` and `neighbours`. A word that the vocabulary lacks keeps its line, which says so.
    """
    network = outcomes.best("network")
    if network is None:
        return None, []
    run = network.best_run
    store = TokenStore(outcomes.folder / "tokens")
    features = read_features(run, store)
    among = np.flatnonzero(store.train_counts >= ENOUGH)
    among = among[among != 0]  # the merged symbol is no word
    ids = {word: i for i, word in enumerate(store.words)}
    records = []
    for word in listed_words(store):
        if word in ids:
            found = nearest(features, ids[word], among)
            text = ", ".join(f"{store.words[i]} {cosine:.2f}" for i, cosine in found)
            records.append({"word": word, "train_count": int(store.train_counts[ids[word]]), "neighbours": text})
        else:
            records.append({"word": word, "train_count": None, "neighbours": "(not in the vocabulary)"})
    return run, records
