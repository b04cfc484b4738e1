"""Output layers: how the rows of O turn z into a distribution over V, exactly normalised.

| name       | P(w given z)                                     | rows of O                      | products     |
|------------|--------------------------------------------------|--------------------------------|--------------|
| `words`    | softmax of y = z O' over all words (the paper's) | one for each word              | |V|          |
| `classes`  | P(class of w) P(w in its class), a softmax each  | words by class, then classes   | sqrt |V|     |
| `adaptive` | the same, by classes of how frequent words are   | the same                       | |V| / 5      |
| `tree`     | a product of binary decisions down to w          | one for each node, |V| - 1     | log |V|      |

The second is Goodman's (2001), the last Morin and Bengio's (2005). Both take word classes that were learnt from train:
words that follow the same contexts should share decisions. The tree is a Huffman tree of the classes by their counts in
train, and in each leaf of it one of the words of the class. The third is the adaptive softmax of Grave and others
(2017), all words with as many features: a frequent word is a class of its own, the rest make two classes.

All methods take O (rows, K) and z (B, K); `descend` is an objective (`nplm2003.neural.objectives`).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from nplm2003.errors import UserError
from nplm2003.neural.objectives import softmax

BLOCK = 256  # words whose logits are computed at a time when tokens are scored


class Output(Protocol):
    """What a network asks of its output layer."""

    rows: int

    def start(self, counts: np.ndarray) -> Tensor:
        """Biases (rows,) that make every distribution the add-one unigram of `counts` (|V|,), where W and U are 0."""

    def descend(self, O: Tensor, z: Tensor, targets: Tensor, rate: float) -> tuple[float, Tensor]:
        """Move O for the exact negative log-likelihood of `targets` (B,); return it, in nats, and its gradient by z."""

    def log_probabilities(self, O: Tensor, z: Tensor, targets: Tensor) -> Tensor:
        """log P(target), shape (B,)."""

    def distribution(self, O: Tensor, z: Tensor) -> Tensor:
        """log P(w) of every word, shape (B, |V|)."""


class Words:
    """One softmax over all words."""

    def __init__(self, vocabulary: int) -> None:
        self.rows = vocabulary

    def start(self, counts: np.ndarray) -> Tensor:
        """See `Output`."""
        return _log_share(np.asarray(counts) + 1.0)

    def descend(self, O: Tensor, z: Tensor, targets: Tensor, rate: float) -> tuple[float, Tensor]:
        """See `Output`."""
        return softmax(O, z, targets, rate)

    def log_probabilities(self, O: Tensor, z: Tensor, targets: Tensor) -> Tensor:
        """See `Output`. BLOCK words at a time: their logits stay in the cache, and memory does not grow with |V|."""
        y_target, Z = z.new_empty(len(z)), z.new_zeros(len(z))
        block_of, place = targets // BLOCK, (targets % BLOCK).unsqueeze(1)
        kept = z.new_empty(BLOCK * len(z))  # all blocks use the same memory
        for block, rows in enumerate(O.split(BLOCK)):
            y = torch.mm(z, rows.T, out=kept[: len(z) * len(rows)].view(len(z), len(rows)))
            y_of = y.gather(1, place.clamp(max=len(rows) - 1)).squeeze(1)
            y_target = torch.where(block_of == block, y_of, y_target)
            Z += y.exp_().sum(dim=1)
        if bool((torch.isfinite(Z) & (Z > 0)).all()):
            return y_target - Z.log()
        # Logits too large or too small for their exponentials: shifted by the largest, all at a time.
        return self.distribution(O, z).gather(1, targets.unsqueeze(1)).squeeze(1)

    def distribution(self, O: Tensor, z: Tensor) -> Tensor:
        """See `Output`."""
        return torch.log_softmax(z @ O.T, dim=1)


class Classes:
    """A softmax over word classes, and one over the words of the class, where there are several."""

    def __init__(self, class_of: np.ndarray) -> None:
        sizes = np.bincount(class_of)
        alone = sizes[class_of] == 1
        by_class = np.argsort(class_of, kind="stable")
        by_class = by_class[~alone[by_class]]  # the word of each row; the rows of the classes follow
        self.number, self.rows = len(sizes), len(by_class) + len(sizes)
        self.class_of = torch.from_numpy(class_of.astype(np.int64))
        row_of = len(by_class) + class_of.astype(np.int64)  # of a word that is alone: that of its class
        row_of[by_class] = np.arange(len(by_class))
        self.row_of = torch.from_numpy(row_of)
        self.bounds = [0, *np.cumsum(np.where(sizes > 1, sizes, 0)).tolist()]

    def start(self, counts: np.ndarray) -> Tensor:
        """See `Output`."""
        weights = np.asarray(counts) + 1.0
        by_row = np.empty(self.rows)
        by_row[self.row_of.numpy()] = weights
        by_row[-self.number :] = np.bincount(self.class_of.cpu().numpy(), weights)
        groups = [by_row[begin:end] for begin, end in itertools.pairwise([*self.bounds, self.rows])]
        return torch.cat([_log_share(group) for group in groups if len(group)])

    def _groups(self, targets: Tensor) -> tuple[Tensor, Tensor, list[tuple[int, int, int]]]:
        """The order that sorts `targets` (B,) by class, the classes, and (class, begin, end) of each in that order."""
        self.class_of, self.row_of = self.class_of.to(targets.device), self.row_of.to(targets.device)
        classes = self.class_of[targets]
        order = classes.argsort()
        present, sizes = classes[order].unique_consecutive(return_counts=True)
        ends = list(itertools.accumulate(sizes.tolist()))
        return order, classes, list(zip(present.tolist(), [0, *ends], ends, strict=False))

    def _in_class(
        self, O: Tensor, z: Tensor, targets: Tensor, groups: Sequence[tuple[int, int, int]]
    ) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """For each class with several words: its examples (sorted by class), its rows of O, log P in it, and the places
        of the targets in it."""
        rows_of_targets = self.row_of[targets]
        for group, begin, end in groups:
            first, last = self.bounds[group], self.bounds[group + 1]
            if last > first:
                rows, part = O[first:last], slice(begin, end)
                log_p = torch.log_softmax(z[part] @ rows.T, dim=1)
                yield part, rows, log_p, (rows_of_targets[part] - first).unsqueeze(1)

    @torch.no_grad()
    def descend(self, O: Tensor, z: Tensor, targets: Tensor, rate: float) -> tuple[float, Tensor]:
        """See `Output`."""
        order, classes, groups = self._groups(targets)
        nats, dz = softmax(O[-self.number :], z, classes, rate)
        z, targets = z[order], targets[order]
        dz_words = torch.zeros_like(z)
        total = z.new_zeros(())
        with _float32_products():
            for part, rows, log_p, place in self._in_class(O, z, targets, groups):
                total -= log_p.gather(1, place).sum()
                by_y = log_p.exp_().scatter_add_(1, place, -torch.ones_like(place, dtype=z.dtype))
                dz_words[part] = by_y @ rows
                rows.addmm_(by_y.T, z[part], alpha=-rate)
        return nats + float(total), dz.index_add_(0, order, dz_words)

    def log_probabilities(self, O: Tensor, z: Tensor, targets: Tensor) -> Tensor:
        """See `Output`."""
        order, classes, groups = self._groups(targets)
        found = Words(self.number).log_probabilities(O[-self.number :], z, classes)
        in_class = torch.zeros_like(found)
        with _float32_products():
            for part, _, log_p, place in self._in_class(O, z[order], targets[order], groups):
                in_class[part] = log_p.gather(1, place).squeeze(1)
        return found.index_add_(0, order, in_class)

    def distribution(self, O: Tensor, z: Tensor) -> Tensor:
        """See `Output`."""
        heads = torch.log_softmax(z @ O[-self.number :].T, dim=1)
        words = [
            torch.log_softmax(z @ O[begin:end].T, dim=1) + heads[:, group : group + 1]
            for group, (begin, end) in enumerate(itertools.pairwise(self.bounds))
            if end > begin
        ]
        return torch.cat([*words, heads], dim=1).index_select(1, self.row_of.to(z.device))


class Tree:
    """Binary decisions from the root to the word: at a node with logit s, sigmoid(s) is the probability to go right."""

    def __init__(self, class_of: np.ndarray, counts: np.ndarray) -> None:
        weights = np.asarray(counts) + 1.0
        self.rows = len(class_of) - 1
        self._right_share = np.empty(self.rows)
        nodes = itertools.count()
        groups = [np.flatnonzero(class_of == group).tolist() for group in range(int(class_of.max()) + 1)]
        leaves = [self._huffman([(float(weights[w]), [[w, []]]) for w in words], nodes) for words in groups]
        _, words = self._huffman(leaves, nodes)
        depth = max((len(path) for _, path in words), default=1) or 1
        paths, signs = np.zeros((len(class_of), depth), dtype=np.int64), np.zeros((len(class_of), depth))
        for word, path in words:
            for level, (node, sign) in enumerate(reversed(path)):
                paths[word, level], signs[word, level] = node, sign
        self.paths, self.signs = torch.from_numpy(paths), torch.from_numpy(signs).float()  # sign 0: beyond the leaf

    def _huffman(self, parts: list[tuple[float, Any]], nodes: Iterator[int]) -> tuple[float, Any]:
        """Join subtrees, (weight, [[word, path from the leaf upwards], ...]) each, by Huffman's rule."""
        heap = [(weight, number, words) for number, (weight, words) in enumerate(parts)]
        heapq.heapify(heap)
        for number in itertools.count(len(heap)):
            if len(heap) == 1:
                break
            right_weight, _, right = heapq.heappop(heap)
            left_weight, _, left = heapq.heappop(heap)
            node = next(nodes)
            self._right_share[node] = right_weight / (left_weight + right_weight)
            for sign, words in ((1.0, right), (-1.0, left)):
                for _, path in words:
                    path.append((node, sign))
            heapq.heappush(heap, (left_weight + right_weight, number, left + right))
        weight, _, words = heap[0]
        return weight, words

    def start(self, counts: np.ndarray) -> Tensor:
        """See `Output`; the counts are those that the tree was made of."""
        return torch.from_numpy(np.log(self._right_share / (1 - self._right_share))).float()

    def _decisions(self, O: Tensor, z: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Nodes (B, D) above the targets, the sign of the way down at each, their rows of O (B, D, K), z O' there."""
        self.paths, self.signs = self.paths.to(z.device), self.signs.to(z.device, z.dtype)
        signs = self.signs[targets]
        deepest = int((signs != 0).sum(dim=1).max())
        nodes, signs = self.paths[targets][:, :deepest], signs[:, :deepest]
        rows = O.index_select(0, nodes.flatten()).view(*nodes.shape, -1)
        return nodes, signs, rows, torch.bmm(rows, z.unsqueeze(2)).squeeze(2)

    @torch.no_grad()
    def descend(self, O: Tensor, z: Tensor, targets: Tensor, rate: float) -> tuple[float, Tensor]:
        """See `Output`."""
        nodes, signs, rows, s = self._decisions(O, z, targets)
        nats = -float((logsigmoid(signs * s) * signs.abs()).sum())
        by_s = signs * (torch.sigmoid(signs * s) - 1)
        dz = torch.bmm(by_s.unsqueeze(1), rows).squeeze(1)
        by_rows = (by_s.unsqueeze(2) * z.unsqueeze(1)).view(-1, z.shape[1])
        O.index_add_(0, nodes.flatten(), by_rows, alpha=-rate)
        return nats, dz

    def log_probabilities(self, O: Tensor, z: Tensor, targets: Tensor) -> Tensor:
        """See `Output`."""
        _, signs, _, s = self._decisions(O, z, targets)
        return (logsigmoid(signs * s) * signs.abs()).sum(dim=1)

    def distribution(self, O: Tensor, z: Tensor) -> Tensor:
        """See `Output`."""
        s, signs = z @ O.T, self.signs.to(z.device, z.dtype)
        found = torch.zeros(len(z), len(signs), dtype=z.dtype, device=z.device)
        for level in range(signs.shape[1]):
            sign = signs[:, level]
            found = found + logsigmoid(sign * s[:, self.paths[:, level].to(z.device)]) * sign.abs()
        return found


def frequency_classes(counts: np.ndarray) -> np.ndarray:
    """The classes (|V|,) of the adaptive softmax: one for each word of the eighth that is most frequent in train, one
    for the rest of the more frequent half, one for the other half."""
    rank = np.argsort(np.argsort(-np.asarray(counts), kind="stable"))
    size = len(rank)
    clusters = np.where(rank < size // 2, size, size + 1)
    return np.unique(np.where(rank < size // 8, rank, clusters), return_inverse=True)[1]


def make_output(name: str, vocabulary: int, class_of: np.ndarray | None, counts: np.ndarray) -> Output:
    """The output layer of this name for |V| words with `counts` (|V|,) in train; `classes` and `tree` have `class_of`
    (|V|,)."""
    if (name in ("words", "adaptive")) != (class_of is None):
        needed = "needs word classes" if class_of is None else "takes no word classes"
        raise UserError(f"the output layer {name!r} {needed}")
    if class_of is None:
        return Words(vocabulary) if name == "words" else Classes(frequency_classes(counts))
    return Classes(class_of) if name == "classes" else Tree(class_of, counts)


@contextmanager
def _float32_products() -> Iterator[None]:
    """Products in float32, whatever the preset says.

    Rounded ones are compiled for every new shape first, and those of a class have one of their own every time.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _log_share(weights: np.ndarray) -> Tensor:
    """log of the share of each weight in their sum."""
    return torch.from_numpy(np.log(weights / weights.sum())).float()
