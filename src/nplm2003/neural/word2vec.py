"""A start for C: the word vectors of word2vec, learnt from train alone; the network then goes on to learn them.

The paper starts C at random. Here it starts where skip-gram with negative sampling ends (Mikolov, Sutskever, Chen,
Corrado and Dean 2013, "Distributed representations of words and phrases and their compositionality", equation 4): for
every token w of train, and every token c up to `WINDOW` before or after it, v(w) and the second vectors u are moved to
raise

    log sigmoid(u(c) v(w)) + sum over k in N of log sigmoid(-u(k) v(w)),

where N are `NOISE_WORDS` words drawn in proportion to their count in train to the power 0.75, and frequent words are
left out at random (their `t` is `SUBSAMPLING`). The window of each token is drawn from 1 to `WINDOW`, as by their
program. Gensim does it, in one thread and with the seed of the training: the same seed gives the same vectors.

The mean vector is taken off, and all vectors are multiplied by one number, so that their deviation is `DEVIATION`, that
of a random start of C. A word that never occurs in train has no vector and stands at the mean of all others: 0.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nplm2003.vocabulary import TokenStore

WINDOW = 5
NOISE_WORDS = 5
SUBSAMPLING = 1e-3
EPOCHS = 5
DEVIATION = 0.1
LONGEST = 10_000  # tokens: gensim leaves out what a longer sentence has beyond


def word2vec_features(store: TokenStore, features: int, seed: int) -> Tensor:
    """Features of every word from word2vec on train: float32, shape (|V|, `features`)."""
    from gensim.models import Word2Vec

    ids = store["train"].tolist()
    model = Word2Vec(
        [ids[start : start + LONGEST] for start in range(0, len(ids), LONGEST)],
        vector_size=features,
        sg=1,
        window=WINDOW,
        negative=NOISE_WORDS,
        sample=SUBSAMPLING,
        epochs=EPOCHS,
        min_count=1,
        workers=1,
        seed=seed,
    )
    vectors = model.wv.vectors - model.wv.vectors.mean(axis=0)
    result = np.zeros((store.size, features), dtype=np.float32)
    result[model.wv.index_to_key] = vectors * (DEVIATION / vectors.std())
    return torch.from_numpy(result)
