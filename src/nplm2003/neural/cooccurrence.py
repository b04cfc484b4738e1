"""Word features that are not learnt: the leading singular vectors of co-occurrence counts (section 4.2, last claim).

The paper tried the first principal components of the co-occurrence frequencies of words, as latent semantic indexing
does with documents, and reports that such features did not work; it gives no more detail. Here:

- the counts of a word are those of the words up to `WINDOW` tokens before or after it in train, over the `COLUMNS`
  words that are most frequent there;
- a word's row holds log(1 + count), as is usual in latent semantic indexing;
- the mean row is taken off, and the left singular vectors of what remains are the features, largest value first, each
  with its largest element positive;
- every feature has the deviation `DEVIATION` over the words seen in train, that of a random start of C. A word that
  never occurs in train has no counts and stands at the mean of all others: 0.

The logarithm is chosen on validation, in short trainings on Brown: square roots of relative frequencies did worse, and
the more so the smaller their deviation; with the logarithm a deviation of 0.3 did as well as one of 0.1.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.vocabulary import TokenStore

WINDOW = 2
COLUMNS = 2000
DEVIATION = 0.1


def count_neighbours(ids: np.ndarray, size: int, columns: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """How often each word of V has each word of `columns` within `window` tokens: float32, shape (|V|, len(columns)).

    `ids`: a stream of word ids, shape (tokens,); `size`: |V|; `columns`: different ids.
    """
    place = np.full(size, -1)
    place[columns] = np.arange(len(columns))
    counts = np.zeros((size, len(columns)), dtype=np.float32)
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        for word, neighbour in ((left, right), (right, left)):
            column = place[neighbour]
            cells = word[column >= 0].astype(np.int64) * len(columns) + column[column >= 0]
            cell, count = np.unique(cells, return_counts=True)
            counts.flat[cell] += count
    return counts


def svd_features(store: TokenStore, features: int) -> Tensor:
    """Features of every word from the co-occurrence counts of train: float32, shape (|V|, `features`).

    Raises UserError where the counts have fewer components than that.
    """
    seen = np.flatnonzero(store.train_counts)
    frequent = seen[np.argsort(-store.train_counts[seen], kind="stable")][:COLUMNS]
    counts = torch.from_numpy(count_neighbours(store["train"], store.size, frequent))[torch.from_numpy(seen)]
    rows = counts.log1p()
    rows -= rows.mean(dim=0)
    # The right singular vectors are the eigenvectors of the small matrix of the columns' products.
    squares, right = torch.linalg.eigh((rows.T @ rows).double())
    squares, right = squares.flip(0)[:features], right.flip(1)[:, :features]
    enough = int((squares > 1e-6 * squares[0]).sum())  # float32 products: smaller ones are rounding
    if enough < features:
        raise UserError(
            f"the co-occurrence counts of {store.folder} have {enough} components, fewer than the {features} features "
            "asked for: ask for fewer, or let the features be learnt"
        )
    left = (rows.double() @ right) / squares.sqrt()  # columns of length 1 and mean 0
    left *= left.gather(0, left.abs().argmax(dim=0, keepdim=True)).sign()
    result = torch.zeros(store.size, features)
    result[torch.from_numpy(seen)] = (left * (DEVIATION * len(seen) ** 0.5)).float()
    return result
