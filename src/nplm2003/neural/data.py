"""Token ids to batches of (contexts, targets)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from nplm2003.vocabulary import MERGED_ID, TokenStore

STRETCH = 64  # mini-batches that the training loader hands out at a time
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


def training_loader(windows: Windows, batch: int, seed: int) -> DataLoader[Stretch]:
    """The loader of the training split: no worker processes, since indexing an array is cheaper than copying one."""
    return DataLoader(
        Stretches(windows, batch), batch_size=None, sampler=EpochOrder(len(windows), batch * STRETCH, seed)
    )


def stream_loader(windows: Windows, batch: int, every: int = 1) -> DataLoader[tuple[Tensor, Tensor]]:
    """The loader of every token of a split, or every second, third, ..., in stream order."""
    return DataLoader(windows, batch_size=None, sampler=StreamOrder(len(windows), batch, every))
