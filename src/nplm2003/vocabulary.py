"""From a stream of words to token ids on disk: the vocabulary policy, the split, and the token store.

The vocabulary is closed (section 4 of the paper): the words a policy keeps, and one merged symbol for all the others.
A token store is a folder with

- `train.npy`, `valid.npy`, `test.npy`: the ids, `uint16` (`uint32` above 65,536 words), one per token;
- `vocabulary.tsv`: `id`, `word`, `train`, `stream` (counts); id 0 is the merged symbol, then by falling count on what
  the policy counts, equal counts in the order of the words' code points; symbols for marks, numbers and proper nouns
  are words like any other;
- `corpus.json`: the statistics, the policy and the provenance; written last, so a folder that has it is complete.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nplm2003.corpora import Corpus, Mark, Passage
from nplm2003.errors import UserError
from nplm2003.files import (
    array_checksum,
    read_array,
    read_object,
    require_checksum,
    write_array,
    write_json,
    write_text,
)
from nplm2003.normalisation import NUMERIC_FORMS, PROPER, case_is_forced, numeric_form, proper_nouns
from nplm2003.scoring import SPLITS

RARE = "<rare>"  # not <unk>: lmplz refuses that word
MERGED_ID = 0
FORMAT = 2
COUNT_ON = ("stream", "train")
CUTS = ("rank", "frequency")

# What tables and figures read of corpus.json.
STATISTICS = {
    "source": str,
    "licence": str,
    "checksum": str,
    "stream_tokens": int,
    "stream_types": int,
    "merged_types": int,
    "vocabulary_size": int,
    "documents": ({"read": int, "kept": int, "skipped": {str: int}}, None),
    "tokens": dict.fromkeys(SPLITS, int),
    "merged_share": dict.fromkeys(SPLITS, float),
    "unseen_types": int,
    "unseen_share": dict.fromkeys(("valid", "test"), float),
    "fingerprint": str,
}
STORE = {
    **STATISTICS,
    "format": FORMAT,
    "checksums": dict.fromkeys((*SPLITS, "vocabulary"), str),
    "policy": dict,
    "provenance": dict,
}

# What the Penn Treebank splits off a word: n't, 's, 'll, 're, 've, 'd, 'm, and the apostrophe of a plural possessive.
_CLITIC = re.compile(r"(.+?)(n't|'s|'ll|'re|'ve|'d|'m|(?<=s)')", re.IGNORECASE)


@dataclass(frozen=True)
class Policy:
    """Which words the vocabulary holds.

    `count_on`: count words on the whole "stream" or on "train" alone. `cut`: "rank" keeps the most frequent words,
    `size` being |V| with the merged symbol; "frequency" keeps words seen more than `size` times. `lowercase`,
    `split_clitics` ("don't" -> "do", "n't"), `numbers` (a symbol for each numeric form), `proper_nouns` (one symbol for
    them all; both in `nplm2003.normalisation`) and `marks` (a symbol where a paragraph or text ends) change the stream.
    """

    name: str
    count_on: str
    cut: str
    size: int
    lowercase: bool = False
    marks: bool = False
    split_clitics: bool = False
    numbers: bool = False
    proper_nouns: bool = False

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
        symbols = [RARE]
        symbols += [mark.value for mark in Mark] if self.marks else []
        symbols += NUMERIC_FORMS if self.numbers else []
        symbols += [PROPER] if self.proper_nouns else []
        return frozenset(symbols)

    def normalize(self, word: str) -> tuple[str, ...]:
        """The tokens that one word of the text becomes: the symbol of its numeric form; or itself, lower-cased or not,
        and its clitic. Where proper nouns become a symbol the case is kept: `merge` needs it, and lowers it."""
        if self.numbers and (symbol := numeric_form(word)):
            return (symbol,)
        if self.lowercase and not self.proper_nouns:
            word = word.lower()
        if self.split_clitics and (match := _CLITIC.fullmatch(word)):
            return match.groups()
        return (word,)

    def merge(self, forms: Sequence[tuple[str, bool]], counts: Sequence[int]) -> list[str]:
        """The word of the vocabulary that each form stands for, a form being a normalised word and whether its place
        may have given it its capitals; `counts` says how often each was seen."""
        if not self.proper_nouns:
            return [form for form, _ in forms]
        proper = proper_nouns((form, forced, count) for (form, forced), count in zip(forms, counts, strict=True))
        return [PROPER if form.lower() in proper else self._cased(form) for form, _ in forms]

    def _cased(self, form: str) -> str:
        return form.lower() if self.lowercase else form


@dataclass(frozen=True)
class Split:
    """How a stream is cut: train first, then valid, then test (section 4). All counts of tokens (int) or all fractions
    of the stream (float); `test` None means the rest. What stands beyond test is left out of everything."""

    train: int | float
    valid: int | float
    test: int | float | None = None

    def shares(self) -> list[int | float]:
        """The shares that are given; refuses those that go with no stream."""
        shares = [self.train, self.valid] if self.test is None else [self.train, self.valid, self.test]
        if len({type(share) for share in shares}) > 1:
            raise UserError(f"the split {shares} mixes token counts and fractions: give all as one kind")
        if isinstance(self.train, float) and sum(shares) > 1 + 1e-9:
            raise UserError(f"the split {shares} adds up to more than 1: fractions of the stream cannot")
        return shares

    def sizes(self, total: int) -> tuple[int, int, int]:
        """Tokens of train, valid and test for a stream of `total` tokens."""
        shares = self.shares()
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
    """First pass: words -> ids of forms, in order of first occurrence, held as 4 bytes a token.

    A form is a normalised word and whether its place may have given it its capitals (see `Policy.merge`); the latter
    is always False where the policy does not ask for proper nouns.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.reserved = policy.reserved
        self.ids = array("I")
        self.forms: dict[tuple[str, bool], int] = {}
        # What each word of the text becomes, so that normalisation costs once per type and not per token.
        self._known: dict[tuple[str, bool], tuple[int, ...]] = {}

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
                        self.ids.append(self.forms.setdefault((piece.value, False), len(self.forms)))
                    bar.update(len(self.ids) - before)
                sizes.append(len(self.ids) - start)
        return sizes

    def _read(self, passage: Passage) -> None:
        known, ids = self._known, self.ids
        forced = case_is_forced(passage.words) if self.policy.proper_nouns else repeat(False)
        for word in zip(passage.words, forced, strict=False):
            if word not in known:
                known[word] = self._learn(*word, passage.where)
            ids.extend(known[word])

    def _learn(self, word: str, forced: bool, where: str) -> tuple[int, ...]:
        symbols = self.policy.normalize(word)
        for symbol in symbols:
            # A symbol that normalisation has put there does not stand in the word itself.
            written = symbol.lower() if self.policy.lowercase else symbol
            if (written in self.reserved and written in word.lower()) or symbol.split() != [symbol]:
                raise UserError(
                    f"{where}, token {len(self.ids) + 1:,} of the stream is {symbol!r}: a reserved symbol or white "
                    "space cannot be a word; replace it in the text"
                )
        return tuple(self.forms.setdefault((symbol, forced), len(self.forms)) for symbol in symbols)


def _cut(policy: Policy, words: list[str], counts: np.ndarray) -> list[int]:
    """The places in `words` of those that `policy` keeps, in the order of their final ids (from 1)."""
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
    read = len(encoder.ids)
    ends = np.cumsum(sizes)
    stream = np.frombuffer(encoder.ids, dtype=np.uintc)[: ends[-1]]
    parts = {"stream": stream, "train": stream[: sizes[0]]}
    forms = {part: np.bincount(ids, minlength=len(encoder.forms)) for part, ids in parts.items()}
    # Several forms of a word fall together; words stand in order of their first occurrence.
    places: dict[str, int] = {}
    merged = policy.merge(list(encoder.forms), forms[policy.count_on].tolist())
    place = np.array([places.setdefault(word, len(places)) for word in merged])
    words = list(places)
    counts = {part: _regroup(place, count, len(words)) for part, count in forms.items()}
    kept = _cut(policy, words, counts[policy.count_on])

    size = len(kept) + 1
    final = np.zeros(len(words), dtype=np.uint16 if size <= 1 << 16 else np.uint32)
    final[kept] = np.arange(1, size)
    # Count of every word of V; what is not kept falls on id 0.
    vocabulary = [RARE, *(words[i] for i in kept)]
    train = _regroup(final, counts["train"], size)
    whole = _regroup(final, counts["stream"], size)
    ids = final[place]
    arrays = {split: ids[part] for split, part in zip(SPLITS, np.split(stream, ends[:-1]), strict=True)}

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
        "merged_types": stream_types - len(kept),
        "vocabulary_size": size,
        "documents": corpus.documents and corpus.documents.report(),
    }
    return _write_store(folder, statistics, vocabulary, (train, whole), arrays, provenance)


def _write_store(
    folder: Path,
    statistics: Mapping[str, Any],
    vocabulary: list[str],
    counts: tuple[np.ndarray, np.ndarray],
    arrays: Mapping[str, np.ndarray],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Write a token store; `statistics` get those of the three splits. `counts`: of every word in train and the stream.

    Returns the content of `corpus.json`.
    """
    train, stream = counts
    reserved = Policy(**statistics["policy"]).reserved
    symbols = {word: number for number, word in enumerate(vocabulary) if word in reserved and word != RARE}
    rows = "".join(f"{i}\t{word}\t{train[i]}\t{stream[i]}\n" for i, word in enumerate(vocabulary))
    table = f"id\tword\ttrain\tstream\n{rows}"
    complete = {
        **statistics,
        "tokens": {split: len(ids) for split, ids in arrays.items()},
        "checksums": {
            **{split: array_checksum(ids) for split, ids in arrays.items()},
            "vocabulary": _text_checksum(table),
        },
        "merged_share": {split: float(np.mean(ids == MERGED_ID)) for split, ids in arrays.items()},
        "symbol_share": {
            word: {split: float(np.mean(ids == number)) for split, ids in arrays.items()}
            for word, number in symbols.items()
        },
        "unseen_types": int(np.count_nonzero(train == 0)),
        "unseen_share": {split: float(np.mean(train[arrays[split]] == 0)) for split in ("valid", "test")},
        "fingerprint": _fingerprint(vocabulary, arrays),
        "provenance": dict(provenance),
    }
    # From here on the folder is incomplete until its corpus.json is back.
    (folder / "corpus.json").unlink(missing_ok=True)
    for split, ids in arrays.items():
        write_array(folder / f"{split}.npy", ids)
    write_text(folder / "vocabulary.tsv", table)
    write_json(folder / "corpus.json", complete)
    return complete


def cut_tokens(store: TokenStore, share: Fraction, folder: Path, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Write the token store `folder`: that of `store` with the last `share` of its training tokens alone.

    Those are the ones next to validation. The vocabulary, valid and test stay, so that perplexities can be compared;
    words may occur no longer in train. What corpus.json says of the stream still describes the one that the vocabulary
    was cut from. Returns the content of `corpus.json`.
    """
    if folder.resolve() == store.folder.resolve():
        raise UserError(f"{folder} is the folder the tokens are read from: write the cut tokens to another one")
    arrays = {split: store[split] for split in SPLITS}
    tokens = int(len(arrays["train"]) * share)
    if tokens < 1:
        raise UserError(
            f"a share of {share} leaves none of the {len(arrays['train']):,} training tokens of {store.folder}: "
            "choose a larger one"
        )
    arrays["train"] = arrays["train"][-tokens:]
    train = np.bincount(arrays["train"], minlength=store.size)
    statistics = {**store.statistics, "train_share": str(share)}
    return _write_store(folder, statistics, store.words, (train, store.stream_counts), arrays, provenance)


def _regroup(groups: np.ndarray, counts: np.ndarray, size: int) -> np.ndarray:
    """Sum the counts that fall into each of `size` groups: int64, shape (size,)."""
    return np.bincount(groups, weights=counts, minlength=size).astype(np.int64)


def _text_checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
        self.statistics: dict[str, Any] = read_object(path, STORE)
        self.fingerprint: str = self.statistics["fingerprint"]
        self.size: int = self.statistics["vocabulary_size"]

    def __getitem__(self, split: str) -> np.ndarray:
        """The token ids of `split`, read-only: uint16 or uint32, shape (tokens,)."""
        path = self.folder / f"{split}.npy"
        ids = read_array(path)
        wrong = ids.dtype.kind != "u" or ids.shape != (self.statistics["tokens"][split],)
        if wrong or (len(ids) and int(ids.max()) >= self.size):
            raise UserError(f"{path} does not hold the tokens that its corpus.json says: run build-tokens again")
        require_checksum(path, array_checksum(ids), self.statistics["checksums"][split])
        return ids

    @cached_property
    def _rows(self) -> list[list[str]]:
        path = self.folder / "vocabulary.tsv"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        rows = [line.split("\t") for line in text.split("\n")[1:-1]]
        numbered = [row[0] for row in rows] == [str(i) for i in range(self.size)]
        if not numbered or any(len(row) != 4 or not (row[2] + row[3]).isdecimal() for row in rows):
            raise UserError(f"{path} does not hold the {self.size:,} words of V: run build-tokens again")
        require_checksum(path, _text_checksum(text), self.statistics["checksums"]["vocabulary"])
        return rows

    @cached_property
    def words(self) -> list[str]:
        """The words of V in order of their ids; the first is the merged symbol."""
        return [row[1] for row in self._rows]

    @cached_property
    def train_counts(self) -> np.ndarray:
        """How often each word of V occurs in train: int64, shape (|V|,)."""
        return np.array([row[2] for row in self._rows], dtype=np.int64)

    @cached_property
    def stream_counts(self) -> np.ndarray:
        """How often each word of V occurs in the stream that the vocabulary was cut from: int64, shape (|V|,)."""
        return np.array([row[3] for row in self._rows], dtype=np.int64)

    def history(self, split: str, length: int) -> np.ndarray:
        """The up to `length` ids that stand before `split` in the stream, in stream order; none before train."""
        if length < 1 or split == "train":
            return self["train"][:0]
        before = SPLITS[: SPLITS.index(split)]
        return np.concatenate([self[name][-length:] for name in before])[-length:]


class IdStream(Protocol):
    """A stream of ids cut in three splits, as a `TokenStore` is."""

    def __getitem__(self, split: str) -> np.ndarray:
        """The ids of `split`: shape (tokens,)."""

    def history(self, split: str, length: int) -> np.ndarray:
        """The up to `length` ids that stand before `split` in the stream."""


def chunks(stream: IdStream, split: str, length: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The ids of `split` in chunks of up to `size`, each with the up to `length` ids (1 or more) that stand before it.

    The first chunk reaches back over the split boundary. So a split of any length is scored in bounded memory.
    """
    history, ids = stream.history(split, length), stream[split]
    for start in range(0, len(ids), size):
        before = np.concatenate([history, ids[max(0, start - length) : start]])[-length:]
        yield before, ids[start : start + size]
