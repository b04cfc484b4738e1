"""Token ids to batches of (contexts, targets)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from nplm2003.vocabulary import MERGED_ID, TokenStore

STRETCH = 64  # mini-batches that the training loader hands out at a time
HISTORY = 1024  # words that a network with a state reads before the first token of a split
Stretch = list[tuple[Tensor, Tensor]]  # contexts (B, n-1) and targets (B,) of each


class Windows(Dataset[tuple[Tensor, Tensor]]):
    """Every token of one split with the n - 1 tokens before it.

    The context of the first tokens reaches back over the split boundary; before the first token of train stands the
    merged symbol (an unknown word), so that all tokens of all splits are predicted. Indexed by an array of positions,
    one whole batch at a time.
    """

    def __init__(self, store: TokenStore, split: str, order: int) -> None:
        history = store.history(split, order - 1)
        padding = np.full(order - 1 - len(history), MERGED_ID, dtype=history.dtype)
        self.stream = np.concatenate([padding, history, store[split]])
        self.back = np.arange(order - 1, 0, -1) - 1  # offsets of w_{t-1}, ..., w_{t-n+1} from the window's start
        self.order = order

    def __len__(self) -> int:
        return len(self.stream) - (self.order - 1)

    def __getitem__(self, positions: np.ndarray) -> tuple[Tensor, Tensor]:
        """Contexts (B, n-1), the most recent word first, and targets (B,), both int64, of the given positions (B,)."""
        contexts = self.stream[positions[:, None] + self.back]
        targets = self.stream[positions + (self.order - 1)]
        return torch.from_numpy(contexts.astype(np.int64)), torch.from_numpy(targets.astype(np.int64))


class Stretches(Dataset[Stretch]):
    """Windows indexed by the positions of up to STRETCH mini-batches of `batch` examples at a time."""

    def __init__(self, windows: Windows, batch: int) -> None:
        self.windows, self.batch = windows, batch

    def __getitem__(self, positions: np.ndarray) -> Stretch:
        contexts, targets = self.windows[positions]
        return list(zip(contexts.split(self.batch), targets.split(self.batch), strict=True))


class EpochOrder(Sampler[np.ndarray]):
    """Batches of positions, shuffled anew every epoch by a generator seeded with (seed, epoch).

    The order depends on nothing else, so a training that was stopped and resumed sees the same batches.
    """

    def __init__(self, length: int, batch: int, seed: int) -> None:
        self.length, self.batch, self.seed, self.epoch = length, batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.length // self.batch)

    def __iter__(self) -> Iterator[np.ndarray]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.length)
        for start in range(0, self.length, self.batch):
            yield order[start : start + self.batch]


class StreamOrder(Sampler[np.ndarray]):
    """Batches of positions 0, `every`, 2 `every`, ... in stream order."""

    def __init__(self, length: int, batch: int, every: int = 1) -> None:
        self.length, self.step, self.every = length, batch * every, every

    def __len__(self) -> int:
        return -(-self.length // self.step)

    def __iter__(self) -> Iterator[np.ndarray]:
        for start in range(0, self.length, self.step):
            yield np.arange(start, min(start + self.step, self.length), self.every)


class Pieces(Dataset[tuple[Tensor, Tensor]]):
    """The tokens of one split for a network that reads the stream word by word: the words read, and those that follow.

    Cut into pieces of `length` words. The first word that is read is the last one before the split, the merged symbol
    before train; `history` (1, words) is what stands before that one, or None.
    """

    def __init__(self, store: TokenStore, split: str, length: int) -> None:
        before = store.history(split, HISTORY)
        if not len(before):
            before = np.array([MERGED_ID])
        self.stream, self.length = store[split], length
        self.read = np.concatenate([before[-1:], self.stream[:-1]])
        self.history = torch.from_numpy(before[None, :-1].astype(np.int64)) if len(before) > 1 else None

    def __len__(self) -> int:
        return len(self.stream)

    def __getitem__(self, positions: np.ndarray) -> tuple[Tensor, Tensor]:
        """Words read (S, T) and words that follow (S T,), int64, at the positions (S, T), or (T,) of one stream."""
        read, follow = (words[positions].astype(np.int64) for words in (self.read, self.stream))
        return torch.from_numpy(np.atleast_2d(read)), torch.from_numpy(follow.ravel())


class PieceStretches(Dataset[Stretch]):
    """Pieces of several streams, by the positions (k, S, T) of k of them."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def __getitem__(self, positions: np.ndarray) -> Stretch:
        return [self.pieces[each] for each in positions]


class PieceOrder(EpochOrder):
    """Positions of the pieces of train, read as `streams` streams side by side that start at equal distances.

    Where the first of them starts is drawn anew for every epoch; a stream that comes to the end of train goes on at its
    beginning. Up to a piece of each stream is left out of an epoch.
    """

    def __init__(self, length: int, streams: int, piece: int, seed: int) -> None:
        super().__init__(length, STRETCH, seed)
        self.streams, self.piece = streams, piece
        self.steps = length // (streams * piece)

    def __len__(self) -> int:
        return -(-self.steps // STRETCH)

    def __iter__(self) -> Iterator[np.ndarray]:
        first = np.random.default_rng((self.seed, self.epoch)).integers(self.length)
        starts = first + np.arange(self.streams) * (self.length // self.streams)
        positions = starts[:, None] + np.arange(self.piece)  # (S, T)
        for begin in range(0, self.steps, STRETCH):
            steps = np.arange(begin, min(begin + STRETCH, self.steps)) * self.piece
            yield (steps[:, None, None] + positions) % self.length


def streams_of(pieces: Pieces, batch: int) -> int:
    """How many streams make a mini-batch of `batch` words, or nearly; no more than there is text for."""
    return max(1, min(batch // pieces.length, len(pieces) // pieces.length))


def examples_of(data: Windows | Pieces, batch: int) -> int:
    """The examples of one epoch."""
    if isinstance(data, Windows):
        return len(data)
    update = streams_of(data, batch) * data.length
    return len(data) // update * update


def training_loader(data: Windows | Pieces, batch: int, seed: int) -> DataLoader[Stretch]:
    """The loader of the training split: no worker processes, since indexing an array is cheaper than copying one."""
    if isinstance(data, Pieces):
        order = PieceOrder(len(data), streams_of(data, batch), data.length, seed)
        return DataLoader(PieceStretches(data), batch_size=None, sampler=order)
    return DataLoader(Stretches(data, batch), batch_size=None, sampler=EpochOrder(len(data), batch * STRETCH, seed))


def stream_loader(data: Windows | Pieces, batch: int, every: int = 1) -> DataLoader[tuple[Tensor, Tensor]]:
    """The loader of every token of a split, or every second, third, ..., in stream order; pieces have all of them."""
    order = StreamOrder(len(data), batch, every) if isinstance(data, Windows) else StreamOrder(len(data), data.length)
    return DataLoader(data, batch_size=None, sampler=order)
