"""A training preset: every choice that is not the network's shape, as plain values that a configuration can hold."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from nplm2003.errors import UserError

CHOICES = {
    "objective": ("softmax", "sampled-softmax", "noise-contrastive"),
    "reduction": ("sum", "mean"),
    "schedule": ("hyperbolic", "cosine"),
    "bias_start": ("zero", "unigram"),
    "matmul": ("highest", "medium"),
}
COUNTS = ("batch", "epochs_direct", "epochs_without_direct", "patience", "valid_every")  # whole numbers from 1
AMOUNTS = ("noise_power", "self_normalisation", "rate", "rate_decay", "weight_decay", "dropout")  # numbers from 0
LARGEST = 10_000_000  # of any whole number
STEEPEST = 2.0  # power of the counts: that of a count of a billion is still a number


@dataclass(frozen=True)
class Preset:
    """How a network is trained.

    - `objective`: the cost. "softmax" is exact; "sampled-softmax" estimates it from the distinct ones of `noise_words`
      words, drawn anew for every batch in proportion to (count in train + 1)^`noise_power`; "noise-contrastive" learns
      to tell them from the next word (`nplm2003.neural.objectives`).
    - `self_normalisation`: alpha of a penalty alpha (log Z)^2 on the sum Z of e^y, for the two softmax objectives.
    - `batch`: examples per update (the paper's K); `reduction`: their gradients are summed ("sum": K of the paper's
      updates at once) or averaged ("mean").
    - `rate`, `schedule`: the learning rate and how it falls. "hyperbolic" is the paper's eps_0 / (1 + rate_decay t),
      t in examples; "cosine" falls to 0 along half a cosine over all epochs.
    - `weight_decay`: after each update parameters are multiplied by 1 - rate x weight_decay, once per example when
      gradients are summed; never the biases b and d (section 2).
    - `dropout`: the share of x and of a that is dropped in training.
    - `bias_start`: b starts at 0 ("zero") or at the log of the add-one unigram probabilities of train ("unigram").
    - `epochs_direct`, `epochs_without_direct`: the most epochs, for networks with and without direct connections.
    - `patience`: stop after so many epochs without a better validation perplexity. The best epoch is kept.
    - `valid_every`: validation after an epoch reads every token of valid (1), or every second (2), ...; tables take no
      number from there.
    - `matmul`: "highest" (float32 products) or "medium" (products may round their factors to bfloat16 where the
      hardware is faster at it, also in validation and for scores of train; sums, weights and scores of valid and
      test stay float32).
    """

    objective: str
    noise_words: int
    noise_power: float
    self_normalisation: float
    batch: int
    reduction: str
    rate: float
    schedule: str
    rate_decay: float
    weight_decay: float
    dropout: float
    bias_start: str
    epochs_direct: int
    epochs_without_direct: int
    patience: int
    valid_every: int
    matmul: str

    def __post_init__(self) -> None:
        """Raise UserError where a value is none that training knows."""
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise UserError(f"{name} is {getattr(self, name)!r}; it is one of {', '.join(known)}")
        for name in COUNTS:
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= LARGEST:  # a bool is an int too
                raise UserError(f"{name} is {value!r}; it is a whole number from 1 to {LARGEST:,}")
        words = self.noise_words
        if type(words) is not int or not 0 <= words <= LARGEST or (words > 0) != self.sampled:
            wanted = f"a whole number from 1 to {LARGEST:,}" if self.sampled else "0"
            raise UserError(f"noise_words is {words!r}; with the objective {self.objective} it is {wanted}")
        for name in AMOUNTS:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < math.inf:
                raise UserError(f"{name} is {value!r}; it is a number of at least 0")
        if self.self_normalisation and self.objective == "noise-contrastive":
            raise UserError(
                f"self_normalisation is {self.self_normalisation!r}; noise-contrastive estimation does it by itself: 0"
            )
        if self.noise_power > STEEPEST:
            raise UserError(f"noise_power is {self.noise_power!r}; it is a number from 0 to {STEEPEST:g}")
        if self.dropout >= 1:
            raise UserError(f"dropout is {self.dropout!r}; it is a share below 1")

    @property
    def sampled(self) -> bool:
        """Whether the cost is an estimate from noise words, its gradients those of a few rows."""
        return self.objective != "softmax"

    def epochs(self, direct: bool) -> int:
        """The most epochs a network trains."""
        return self.epochs_direct if direct else self.epochs_without_direct

    def rate_at(self, examples: int, total: int) -> float:
        """The learning rate after `examples` of `total` examples."""
        if self.schedule == "cosine":
            return self.rate * 0.5 * (1 + math.cos(math.pi * min(examples / total, 1.0)))
        return self.rate / (1 + self.rate_decay * examples)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a checkpoint or a JSON file."""
        return asdict(self)
