"""Back-off n-grams with modified Kneser-Ney smoothing (section 4.1): estimated by KenLM's lmplz, scored by `kenlm`.

lmplz and kenlm see ids as words ("17 203 5"), all of train as one line. So no word of a corpus can clash with the
reserved `<s>`, `</s>` and `<unk>`, and one sentence end stands in the whole of train.

**The closed vocabulary.** lmplz gives each word that it saw its probability and spreads the rest of the unigram mass
evenly over `vocab_pad` words: the words that it saw, `</s>`, and the others, which all read `<unk>`. With U words of V
that never occur in train, the distribution sums to 1 over V and `</s>` exactly when `vocab_pad` = |V| + 1. With U = 0
no word of V reads `<unk>`, lmplz counts it nevertheless, and the sum is 1 over V, `</s>` and `<unk>`.

**What is reserved.** `</s>`, and `<unk>` when U = 0, are never scored, so in every context h the words of V share
1 - R(h), R the mass of the reserved symbols. As unigrams these are about 1 / (number of bigram types) and 1 / |V| of
the back-off mass, together some 1e-5 on Brown, and less in longer contexts: perplexity moves by 1 part in 300,000 or
so, and that is left alone. It is not small where `</s>` was seen: in contexts that end in the last word of train (8 %
for n = 5 at Brown's first validation token, which has just those words before it). There the scores are divided by
1 - R(h), so that V has the whole mass. To do so everywhere costs a second query per token and halves the speed: it is
done where the reserved unigrams have more than `NEGLIGIBLE`, as they have in a short text or with a handful of classes.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from nplm2003.errors import UserError
from nplm2003.files import description_path, sha256, whole, write_json
from nplm2003.ngram.lmplz import last_line
from nplm2003.provenance import provenance
from nplm2003.vocabulary import IdStream, chunks

ORDERS = range(2, 7)
# lmplz's own fallback discounts, for n-grams with adjusted count 1, 2, and 3 or more.
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
# Tokens handed over at a time: bounds memory and changes no model and no score.
CHUNK = 1 << 16
NEGLIGIBLE = 1e-4  # reserved mass that is left alone

_COUNT = re.compile(rb"ngram \d+=(\d+)")  # of the n-grams of one order, in an ARPA file
_STATISTICS = re.compile(r"^(\d+) \d+ D1=(\S+) D2=(\S+) D3\+=(\S+)$", re.MULTILINE)
# "... 3-grams with adjusted count 4 because we didn't observe ..." or "... 1-gram discount out of range for ...: -0.2".
_NO_DISCOUNTS = re.compile(r"\d+-grams with adjusted count [^;\n]*|\d+-gram discount out of range [^\n]*?(?=\.  )")
_SUBSTITUTED = re.compile(r"^Substituting fallback discounts for order (\d+)", re.MULTILINE)


class SymbolStream(IdStream, Protocol):
    """A stream of symbol ids, 0 to `size` - 1, cut in three splits: the words of a token store, or their classes."""

    @property
    def size(self) -> int:
        """The number of symbols."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the token store."""

    @property
    def train_counts(self) -> np.ndarray:
        """How often each symbol occurs in train: int64, shape (size,)."""


def estimate(
    store: SymbolStream,
    order: int,
    lmplz: Path,
    output: Path,
    memory: str = "256M",
    more: Mapping[str, Any] = MappingProxyType({}),
    parameters: int = 0,
) -> dict[str, Any]:
    """Estimate the model of `order` on train: an ARPA file at `output`, and beside it a .json that describes it.

    `memory` is lmplz's sorting memory, a number and a unit (K, M, G). Where the discounts of an order cannot be
    computed (Chen and Goodman's formula needs n-grams seen 1, 2, 3 and 4 times), that order takes
    `FALLBACK_DISCOUNTS`, and the description says so. `more` goes into the description too; as `parameters` it has the
    number of n-grams of all orders, and those that the model has beside them. Returns the description.
    """
    check_order(order)
    train = store["train"]
    if len(train) < order:
        raise UserError(f"train has {len(train)} tokens, too few for n-grams of order {order}: choose a smaller order")
    vocab_pad = store.size + 1
    options = ["-o", str(order), "-S", memory, "--vocab_pad", str(vocab_pad)]
    fallback = ["--discount_fallback", *(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)]
    begin = time.perf_counter()
    with whole(output) as arpa:
        status, log = _lmplz(lmplz, options, train, store.size, arpa)
        if status and "--discount_fallback" in log:
            reason = match[0] if (match := _NO_DISCOUNTS.search(log)) else last_line(log)
            print(
                f"lmplz: no Kneser-Ney discounts ({reason}): running it again with fallback discounts", file=sys.stderr
            )
            options += fallback
            status, log = _lmplz(lmplz, options, train, store.size, arpa)
        if status:
            said = last_line(log) or "it says nothing"
            raise UserError(f"lmplz failed with status {status}: {said}; its log is above")
        ngrams = _count_whole(arpa, order)
        description = {
            "format": 1,
            "order": order,
            "vocabulary": store.fingerprint,
            **more,
            "parameters": ngrams + parameters,
            "vocab_pad": vocab_pad,
            "discounts": {int(n): [float(d) for d in amounts] for n, *amounts in _STATISTICS.findall(log)},
            "fallback": fallback[0] in options,
            # lmplz counts orders from 0 in this message.
            "fallback_orders": [int(n) + 1 for n in _SUBSTITUTED.findall(log)],
            "command": ["lmplz", *options],
            "checksum": sha256(arpa),
            "seconds": round(time.perf_counter() - begin, 3),
            "provenance": provenance({"order": order, "memory": memory}),
        }
        write_json(description_path(output), description)
    return description


def check_order(order: int) -> None:
    """Refuse an order that KenLM cannot do."""
    if order not in ORDERS:
        raise UserError(
            f"order {order} is not possible: KenLM estimates n-grams of order {ORDERS[0]} to {ORDERS[-1]} "
            "(a larger one needs a KenLM compiled for it); choose one of these"
        )


def _lmplz(lmplz: Path, options: Sequence[str], ids: np.ndarray, size: int, arpa: Path) -> tuple[int, str]:
    """Run lmplz on `ids` as one line; its exit status and what it said, which goes to stderr as well."""
    words = _id_words(size)
    with tempfile.TemporaryDirectory(prefix="lmplz-") as folder, tempfile.TemporaryFile("w+") as log:
        # Its messages go to a file: a pipe that nobody reads while the tokens are written could fill up.
        command = [str(lmplz.absolute()), *options, "-T", f"{folder}/", "--arpa", str(arpa)]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log)
        except OSError as error:
            raise UserError(f"{lmplz} cannot be run ({error.strerror}): make it with `nplm2003 build-lmplz`") from error
        with process:
            assert process.stdin is not None
            try:
                for start in range(0, len(ids), CHUNK):
                    process.stdin.write((" ".join(_pick(words, ids[start : start + CHUNK])) + " ").encode())
                process.stdin.write(b"\n")
                process.stdin.close()
            except BrokenPipeError:
                pass  # it gave up early: its status and messages say why
            status = process.wait()
        log.seek(0)
        text = log.read()
    print(text, file=sys.stderr)
    return status, text


def _count_whole(arpa: Path, order: int) -> int:
    """The number of n-grams that an ARPA file says it has; refuses one without its beginning or its end."""
    with arpa.open("rb") as stream:
        begins = stream.readline().strip() == b"\\data\\"
        counts = [_COUNT.match(stream.readline()) for _ in range(order)]
        stream.seek(max(0, arpa.stat().st_size - 16))
        ends = stream.read().strip().endswith(b"\\end\\")
    if not begins or not ends or not all(counts):
        raise UserError(f"lmplz wrote no whole model of order {order}: put another lmplz in its place (`build-lmplz`)")
    return sum(int(count[1]) for count in counts if count)


def _id_words(size: int) -> list[str]:
    """The word that stands for each id: its decimal digits."""
    return [str(i) for i in range(size)]


def _pick(words: list[str], ids: np.ndarray) -> list[str]:
    return [words[i] for i in ids.tolist()]


def natural(log10: np.ndarray) -> np.ndarray:
    """Turn KenLM's logarithms to base 10 into natural ones, in float64; the only place where this is done."""
    return np.asarray(log10, dtype=np.float64) * math.log(10)


class KneserNey:
    """A model that `estimate` wrote, for the symbols and train of `store`."""

    def __init__(self, path: Path, store: SymbolStream) -> None:
        import kenlm

        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self._model = kenlm.Model(str(path), config)
        except OSError as error:
            raise UserError(f"{path} is no KenLM model: estimate it again") from error
        self.order: int = self._model.order
        self.store = store
        self._words = _id_words(store.size)
        unseen = int(np.count_nonzero(store.train_counts == 0))
        self.reserved = ("</s>",) if unseen else ("</s>", "<unk>")
        self._last = int(store["train"][-1])
        self._new_state = kenlm.State
        self._everywhere = self.reserved_mass(store["train"][:0]) > NEGLIGIBLE

    def score(self, split: str) -> Iterator[np.ndarray]:
        """The natural-log probabilities of the tokens of `split`, in parts of shape (tokens,), float64.

        The first tokens of train have a shorter context, the very first none; those of valid and test have the words
        before the split.
        """
        # The state after n - 1 words is that after all words before them: cutting a split changes no score.
        for context, ids in chunks(self.store, split, self.order - 1, CHUNK):
            stream = np.concatenate([context, ids])
            entries = self._model.full_scores(" ".join(_pick(self._words, stream)), bos=False, eos=False)
            scores = natural(np.fromiter(map(itemgetter(0), entries), dtype=np.float64, count=len(stream)))
            corrected = np.arange(len(stream)) if self._everywhere else np.flatnonzero(stream[:-1] == self._last) + 1
            log_shares: dict[bytes, float] = {}  # of each context, which come again
            for position in corrected[corrected >= len(context)].tolist():
                words = stream[max(0, position - self.order + 1) : position]
                key = words.tobytes()
                if key not in log_shares:
                    log_shares[key] = self._log_share(words)
                scores[position] -= log_shares[key]
            yield scores[len(context) :]

    def distribution(self, context: np.ndarray) -> np.ndarray:
        """P(. | context) over the whole vocabulary: float64, shape (|V|,); `context`: ids, in stream order."""
        state, after = self._state(context), self._new_state()
        log10 = np.array([self._model.BaseScore(state, word, after) for word in self._words])
        return np.exp(natural(log10) - self._log_share(context))

    def reserved_mass(self, context: np.ndarray) -> float:
        """R(context): the mass that the model gives symbols outside V, before any of it is given back."""
        state, after = self._state(context), self._new_state()
        log10 = np.array([self._model.BaseScore(state, symbol, after) for symbol in self.reserved])
        return float(np.exp(natural(log10)).sum())

    def _log_share(self, context: np.ndarray) -> float:
        """log(1 - R(context)) where R is not negligible: everywhere, or where the context ends in train's last word,
        after which the sentence end was seen. Else 0."""
        corrected = self._everywhere or (len(context) > 0 and context[-1] == self._last)
        return math.log1p(-self.reserved_mass(context)) if corrected else 0.0

    def _state(self, context: np.ndarray) -> Any:
        state, after = self._new_state(), self._new_state()
        self._model.NullContextWrite(state)
        for word in _pick(self._words, context[-(self.order - 1) :]):
            self._model.BaseScore(state, word, after)
            state, after = after, state
        return state
