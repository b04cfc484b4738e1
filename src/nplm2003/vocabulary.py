"""From a stream of words to token ids on disk: the vocabulary policy, the split, and the token store.

The vocabulary is closed (section 4 of the paper): the words a policy keeps, and one merged symbol for all the others.
A token store is a folder with

- `train.npy`, `valid.npy`, `test.npy`: the ids, `uint16` (`uint32` above 65,536 words), one per token;
- `vocabulary.tsv`: `id`, `word`, `train`, `stream` (counts); id 0 is the merged symbol, then by falling count on what
  the policy counts, equal counts in the order of the words' code points;
- `corpus.json`: the statistics, the policy and the provenance; written last, so a folder that has it is complete.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nplm2003.corpora import Corpus, Mark, Passage
from nplm2003.errors import UserError
from nplm2003.files import read_json, write_array, write_json, write_text
from nplm2003.scoring import SPLITS

RARE = "<rare>"  # not <unk>: lmplz refuses that word
MERGED_ID = 0
FORMAT = 1
COUNT_ON = ("stream", "train")
CUTS = ("rank", "frequency")

# What the Penn Treebank splits off a word: n't, 's, 'll, 're, 've, 'd, 'm, and the apostrophe of a plural possessive.
_CLITIC = re.compile(r"(.+?)(n't|'s|'ll|'re|'ve|'d|'m|(?<=s)')", re.IGNORECASE)


@dataclass(frozen=True)
class Policy:
    """Which words the vocabulary holds.

    `count_on`: count words on the whole "stream" or on "train" alone. `cut`: "rank" keeps the most frequent words,
    `size` being |V| with the merged symbol; "frequency" keeps words seen more than `size` times. `lowercase`,
    `split_clitics` ("don't" -> "do", "n't") and `marks` (a symbol where a paragraph or text ends) change the stream.
    """

    name: str
    count_on: str
    cut: str
    size: int
    lowercase: bool = False
    marks: bool = False
    split_clitics: bool = False

    def __post_init__(self) -> None:
        if self.count_on not in COUNT_ON:
            raise UserError(f"policy {self.name}: count_on is {self.count_on!r}; it is one of {', '.join(COUNT_ON)}")
        if self.cut not in CUTS:
            raise UserError(f"policy {self.name}: cut is {self.cut!r}; it is one of {', '.join(CUTS)}")
        least = 2 if self.cut == "rank" else 0
        if self.size < least:
            raise UserError(f"policy {self.name}: size is {self.size}; a {self.cut} cut needs at least {least}")

    @property
    def reserved(self) -> frozenset[str]:
        """The symbols that the text itself may not hold."""
        return frozenset([RARE, *(mark.value for mark in Mark)] if self.marks else [RARE])

    def normalize(self, word: str) -> tuple[str, ...]:
        """The tokens that one word of the text becomes: itself, lower-cased or not, or itself and its clitic."""
        if self.lowercase:
            word = word.lower()
        if self.split_clitics and (match := _CLITIC.fullmatch(word)):
            return match.groups()
        return (word,)


@dataclass(frozen=True)
class Split:
    """How a stream is cut: train first, then valid, then test (section 4). All counts of tokens (int) or all fractions
    of the stream (float); `test` None means the rest. What stands beyond test is left out of everything."""

    train: int | float
    valid: int | float
    test: int | float | None = None

    def sizes(self, total: int) -> tuple[int, int, int]:
        """Tokens of train, valid and test for a stream of `total` tokens."""
        shares = [self.train, self.valid] if self.test is None else [self.train, self.valid, self.test]
        if len({type(share) for share in shares}) > 1:
            raise UserError(f"the split {shares} mixes token counts and fractions: give all as one kind")
        if isinstance(self.train, float) and sum(shares) > 1 + 1e-9:
            raise UserError(f"the split {shares} adds up to more than 1: fractions of the stream cannot")
        scale = total if isinstance(self.train, float) else 1
        ends = [round(sum(shares[: n + 1]) * scale) for n in range(len(shares))]
        if self.test is None:
            ends.append(total)
        sizes = (ends[0], ends[1] - ends[0], ends[2] - ends[1])
        if ends[1] > total or ends[2] > total:
            raise UserError(
                f"the split asks for {max(ends[1:]):,} tokens of a stream that has {total:,}: ask for less, "
                "or give fractions"
            )
        for split, size in zip(SPLITS, sizes, strict=True):
            if size < 1:
                raise UserError(f"the split leaves {split} no tokens of the {total:,} of the stream: change its shares")
        return sizes


class _Encoder:
    """First pass: words -> provisional ids, in order of first occurrence, held as 4 bytes a token."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.reserved = policy.reserved
        self.ids = array("I")
        self.types: dict[str, int] = {}
        # What each word of the text becomes, so that normalisation costs once per type and not per token.
        self._known: dict[str, tuple[int, ...]] = {}

    def read(self, corpus: Corpus) -> list[int]:
        """Read all parts of `corpus`; return the number of tokens of each."""
        from tqdm import tqdm

        sizes = []
        # disable=None: a bar on a terminal, nothing in a log.
        with tqdm(desc="tokens", unit=" tokens", unit_scale=True, disable=None) as bar:
            for part in corpus.parts:
                start = len(self.ids)
                for piece in part():
                    before = len(self.ids)
                    if isinstance(piece, Passage):
                        self._read(piece)
                    elif self.policy.marks:
                        self.ids.append(self.types.setdefault(piece.value, len(self.types)))
                    bar.update(len(self.ids) - before)
                sizes.append(len(self.ids) - start)
        return sizes

    def _read(self, passage: Passage) -> None:
        known, ids = self._known, self.ids
        for word in passage.words:
            if word not in known:
                known[word] = self._learn(word, passage.where)
            ids.extend(known[word])

    def _learn(self, word: str, where: str) -> tuple[int, ...]:
        symbols = self.policy.normalize(word)
        for symbol in symbols:
            if symbol in self.reserved or symbol.split() != [symbol]:
                raise UserError(
                    f"{where}, token {len(self.ids) + 1:,} of the stream is {symbol!r}: a reserved symbol or white "
                    "space cannot be a word; replace it in the text"
                )
        return tuple(self.types.setdefault(symbol, len(self.types)) for symbol in symbols)


def _cut(policy: Policy, words: list[str], counts: np.ndarray) -> list[int]:
    """The provisional ids of the words that `policy` keeps, in the order of their final ids (from 1)."""
    seen = np.flatnonzero(counts).tolist()
    order = sorted(seen, key=lambda i: (-counts[i], words[i]))
    kept = order[: policy.size - 1] if policy.cut == "rank" else [i for i in order if counts[i] > policy.size]
    if policy.cut == "rank" and len(kept) < policy.size - 1:
        raise UserError(
            f"policy {policy.name}: a rank cut to {policy.size:,} needs {policy.size - 1:,} words, the "
            f"{policy.count_on} has {len(order):,}: choose a size of at most {len(order) + 1:,}"
        )
    if not kept:
        raise UserError(f"policy {policy.name}: no word occurs more than {policy.size:,} times: choose a smaller size")
    return kept


def build_tokens(
    corpus: Corpus, name: str, policy: Policy, split: Split | None, folder: Path, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """Read `corpus`, cut its vocabulary and write the token store `folder`; returns the content of `corpus.json`.

    `name` is the corpus's name in the configuration. `split` cuts a corpus of one part and is None for one that comes
    as train, valid and test. Nothing is written when the input is refused.
    """
    encoder = _Encoder(policy)
    sizes = encoder.read(corpus)
    if split is not None:
        sizes = list(split.sizes(sizes[0]))
    words = list(encoder.types)
    read = len(encoder.ids)
    ends = np.cumsum(sizes)
    stream = np.frombuffer(encoder.ids, dtype=np.uintc)[: ends[-1]]
    counts = {
        "stream": np.bincount(stream, minlength=len(words)),
        "train": np.bincount(stream[: sizes[0]], minlength=len(words)),
    }
    kept = _cut(policy, words, counts[policy.count_on])

    size = len(kept) + 1
    final = np.zeros(len(words), dtype=np.uint16 if size <= 1 << 16 else np.uint32)
    final[kept] = np.arange(1, size)
    # Count of every word of V; what is not kept falls on id 0.
    vocabulary = [RARE, *(words[i] for i in kept)]
    train = np.bincount(final, weights=counts["train"], minlength=size).astype(np.int64)
    whole = np.bincount(final, weights=counts["stream"], minlength=size).astype(np.int64)
    arrays = {split: final[part] for split, part in zip(SPLITS, np.split(stream, ends[:-1]), strict=True)}

    stream_types = int(np.count_nonzero(counts["stream"]))
    statistics = {
        "format": FORMAT,
        "corpus": name,
        "source": corpus.source,
        "licence": corpus.licence,
        "checksum": corpus.checksum,
        "policy": asdict(policy),
        "stream_tokens": len(stream),
        "unused_tokens": read - len(stream),
        "stream_types": stream_types,
        "vocabulary_size": size,
        "tokens": {split: len(ids) for split, ids in arrays.items()},
        "merged_share": {split: float(np.mean(ids == 0)) for split, ids in arrays.items()},
        "merged_types": stream_types - len(kept),
        "unseen_types": int(np.count_nonzero(train == 0)),
        "unseen_share": {split: float(np.mean(train[arrays[split]] == 0)) for split in ("valid", "test")},
        "fingerprint": _fingerprint(vocabulary, arrays),
        "provenance": dict(provenance),
    }

    # From here on the folder is incomplete until its corpus.json is back.
    (folder / "corpus.json").unlink(missing_ok=True)
    for split_name, ids in arrays.items():
        write_array(folder / f"{split_name}.npy", ids)
    rows = "".join(f"{i}\t{word}\t{train[i]}\t{whole[i]}\n" for i, word in enumerate(vocabulary))
    write_text(folder / "vocabulary.tsv", f"id\tword\ttrain\tstream\n{rows}")
    write_json(folder / "corpus.json", statistics)
    return statistics


def _fingerprint(vocabulary: list[str], arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over the words of V and the ids of the three splits: equal exactly where scores can be compared."""
    digest = hashlib.sha256("\n".join(vocabulary).encode())
    for split in SPLITS:
        digest.update(f"\n{split} {len(arrays[split])}\n".encode())
        digest.update(np.ascontiguousarray(arrays[split], dtype=arrays[split].dtype.newbyteorder("<")).data)
    return digest.hexdigest()


class TokenStore:
    """A token store, opened read-only and memory-mapped.

    Attributes: `folder`; `statistics`, the content of `corpus.json`; `fingerprint`, of the vocabulary and ids; `size`,
    |V| with the merged symbol. `store["valid"]` gives the ids of a split.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        path = self.folder / "corpus.json"
        if not path.is_file():
            raise UserError(f"{self.folder} holds no corpus.json: name the output folder of `nplm2003 build-tokens`")
        self.statistics: dict[str, Any] = read_json(path)
        if self.statistics.get("format") != FORMAT:
            raise UserError(f"{path}: token format {self.statistics.get('format')!r} is not {FORMAT}; build it again")
        self.fingerprint: str = self.statistics["fingerprint"]
        self.size: int = self.statistics["vocabulary_size"]

    def __getitem__(self, split: str) -> np.ndarray:
        """The token ids of `split`, read-only: uint16 or uint32, shape (tokens,)."""
        path = self.folder / f"{split}.npy"
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
        if ids.shape != (self.statistics["tokens"][split],):
            raise UserError(f"{path} does not hold the tokens that its corpus.json says: run build-tokens again")
        return ids

    @cached_property
    def _rows(self) -> list[list[str]]:
        text = (self.folder / "vocabulary.tsv").read_text(encoding="utf-8")
        return [line.split("\t") for line in text.split("\n")[1:-1]]

    @cached_property
    def words(self) -> list[str]:
        """The words of V in order of their ids; the first is the merged symbol."""
        return [row[1] for row in self._rows]

    @cached_property
    def train_counts(self) -> np.ndarray:
        """How often each word of V occurs in train: int64, shape (|V|,)."""
        return np.array([row[2] for row in self._rows], dtype=np.int64)

    def history(self, split: str, length: int) -> np.ndarray:
        """The up to `length` ids that stand before `split` in the stream, in stream order; none before train."""
        if length < 1 or split == "train":
            return self["train"][:0]
        before = SPLITS[: SPLITS.index(split)]
        return np.concatenate([self[name][-length:] for name in before])[-length:]
