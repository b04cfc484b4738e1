"""The score file: where every language model of the study ends.

A *score* is the natural-log probability a model gives one token of a split in its context. For every model and seed
there is one folder with

- `train.npy`, `valid.npy`, `test.npy`: `float32`, one value per token of the split, in stream order;
- `scores.json`: which model and seed this is, the fingerprint of the vocabulary, the number of tokens and the checksum
  of each split, and the provenance (commit, configuration, versions) of the run that made it.

Every model scores exactly the same tokens: every token of every split, the context reaching back over the split
boundary. Only the first tokens of train have a shorter history (each model documents what stands there).

A probability of 0 has the score -inf, and the perplexity of its split is infinite. It is a bug in every model but those
that say that they have such probabilities: `scores.json` then says so too (`"impossible": true`), and what reads them
takes them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nplm2003.errors import UserError
from nplm2003.files import (
    array_checksum,
    read_array,
    read_object,
    require_checksum,
    write_array_in_parts,
    write_json,
)

SPLITS = ("train", "valid", "test")
FORMAT = 2
METADATA = {
    "format": FORMAT,
    "model": str,
    "seed": int,
    "vocabulary": str,
    "tokens": dict.fromkeys(SPLITS, int),
    "checksums": dict.fromkeys(SPLITS, str),
    "provenance": dict,
}


class Scores:
    """The scores of one model on the three splits, opened read-only and memory-mapped.

    Attributes: `folder`; `metadata`, the content of `scores.json`; `vocabulary`, the fingerprint of the vocabulary.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        path = self.folder / "scores.json"
        if not path.is_file():
            raise UserError(f"{self.folder} holds no scores.json: name the scores folder of a model that was scored")
        self.metadata: dict[str, Any] = read_object(path, METADATA)
        self.vocabulary: str = self.metadata["vocabulary"]

    @property
    def model(self) -> str:
        """The name of the model, as in the configuration."""
        return self.metadata["model"]

    @property
    def impossible(self) -> bool:
        """Whether tokens may have probability 0, a score of -inf."""
        return self.metadata.get("impossible") is True

    @property
    def seed(self) -> int:
        """The seed of the run; 0 for models that draw nothing."""
        return self.metadata["seed"]

    def __getitem__(self, split: str) -> np.ndarray:
        """Natural-log probabilities of `split`: float32, shape (tokens,), at most 0; finite where not `impossible`."""
        path = self.folder / f"{split}.npy"
        scores = read_array(path)
        if scores.shape != (self.metadata["tokens"][split],):
            raise UserError(
                f"{path} holds {scores.shape} scores, its scores.json says {self.metadata['tokens'][split]}"
            )
        if scores.dtype != np.float32 or not _sound(scores, self.impossible) or (scores > 0).any():
            raise UserError(f"{path} does not hold log-probabilities (float32, finite, at most 0): score it again")
        require_checksum(path, array_checksum(scores), self.metadata["checksums"][split])
        return scores


def write_scores(
    folder: Path | str,
    scores: Mapping[str, Iterable[np.ndarray]],
    *,
    model: str,
    seed: int,
    vocabulary: str,
    provenance: Mapping[str, Any],
    impossible: bool = False,
) -> None:
    """Write the scores of one model; `scores.json` comes last, so a folder that has it is complete.

    `scores` maps each of the three splits to its natural-log probabilities, shape (tokens,), in parts that follow each
    other in stream order: no more than one is in memory. A score that is not finite or above 0 is a bug in the model
    that made it and is refused; of a model that may call a token `impossible`, -inf is not.
    """
    # From here on the folder is incomplete until its scores.json is back.
    (Path(folder) / "scores.json").unlink(missing_ok=True)
    paths = {split: Path(folder) / f"{split}.npy" for split in SPLITS}
    tokens = {
        split: write_array_in_parts(path, _checked(scores[split], f"{model}, {split}", impossible), np.float32)
        for split, path in paths.items()
    }
    write_json(
        Path(folder) / "scores.json",
        {
            "format": FORMAT,
            "model": model,
            "seed": seed,
            "vocabulary": vocabulary,
            **({"impossible": True} if impossible else {}),
            "tokens": tokens,
            "checksums": {split: array_checksum(read_array(path)) for split, path in paths.items()},
            "provenance": dict(provenance),
        },
    )


def _sound(scores: np.ndarray, impossible: bool) -> bool:
    """Whether all scores are finite, or -inf where that may be."""
    return bool((np.isfinite(scores) | (impossible & np.isneginf(scores))).all())


def _checked(parts: Iterable[np.ndarray], name: str, impossible: bool) -> Iterator[np.ndarray]:
    for values in parts:
        if values.ndim != 1 or not _sound(values, impossible):
            raise ValueError(f"{name}: scores must be finite and one per token")
        if values.size and values.max() > 1e-4:  # float32 rounding of log 1, no more
            raise ValueError(f"{name}: a log-probability above 0 ({values.max():.3g})")
        yield np.minimum(values, 0)


def require_same_tokens(*all_scores: Scores) -> None:
    """Refuse to compare or mix models that did not score the same tokens of the same vocabulary."""
    first = all_scores[0]
    for other in all_scores[1:]:
        if other.vocabulary != first.vocabulary or other.metadata["tokens"] != first.metadata["tokens"]:
            raise UserError(
                f"{first.folder} and {other.folder} were scored on different vocabularies or splits "
                f"({first.vocabulary[:12]}, {first.metadata['tokens']} against {other.vocabulary[:12]}, "
                f"{other.metadata['tokens']}): they cannot be compared or mixed; use one vocabulary policy"
            )
