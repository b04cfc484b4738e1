"""The seven claims of section 4.2 of the paper, each with what this study finds, and a verdict computed from both.

A claim is tested by comparing the test perplexities of two rows of the study. Rows are found by their settings, never
by their names, and chosen on validation where there is a choice. The effect is the change in percent from the second
row to the first, with the interval and the p value of the paired bootstrap (`nplm2003.uncertainty`); the published
effect is the same change between the published perplexities. The verdict follows from the interval:

- a claim that something is *lower* (or higher) `holds` where the whole interval lies on that side of 0, `does not hold`
  where it lies on the other, and is `undecided` otherwise;
- a claim that something brings *no gain* `holds` where every value of the interval is a gain of less than `MARGIN`
  percent (a loss is no gain either), `does not hold` where every value is a larger gain, and is `undecided` otherwise.

What a study has no rows for is `not tested`, and the line says which rows are missing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from nplm2003.departures import PAPER_EPOCHS
from nplm2003.outcomes import NGRAM_KINDS, WORD_NGRAMS, Outcomes, Published, Row, best, gap_percent
from nplm2003.uncertainty import LEVEL, Change, holm

MARGIN = 1.0  # percent: a smaller gain counts as none
HOLDS, FAILS, OPEN, MISSING = "holds", "does not hold", "undecided", "not tested"

STATEMENTS = {
    "1": "The best n-gram is beaten by a network mixed with the trigram: its perplexity is 24 % higher on Brown, 8 % "
    "on AP News.",
    "2a": "More context helps the network.",
    "2b": "More context than two words does not help the n-grams (said of Brown).",
    "3a": "Hidden units help the network.",
    "3b": "Hidden units help the mixture too.",
    "4": "Mixing a network with the trigram always helps.",
    "5a": "Left undecided: a network without direct connections ended slightly lower than one with them.",
    "5b": "Left undecided: so did its mixture.",
    "5c": "Without direct connections a network needs about twice the epochs.",
    "6": "Word classes help the n-grams on Brown.",
    "7": "Fixed features, taken from counts of co-occurrence, work less well than learnt ones.",
}
NO_CLASS_GAIN = "Word classes do not help the n-grams on AP News."  # claim 6 on the other corpus

Record = dict[str, Any]
Judge = Callable[[Change], str]


def is_lower(change: Change) -> str:
    """The verdict on the claim that the first perplexity is lower."""
    return HOLDS if change.high < 0 else FAILS if change.low > 0 else OPEN


def is_higher(change: Change) -> str:
    """The verdict on the claim that the first perplexity is higher."""
    return HOLDS if change.low > 0 else FAILS if change.high < 0 else OPEN


def is_no_gain(change: Change) -> str:
    """The verdict on the claim that the first perplexity is not lower, or by less than `MARGIN` percent."""
    return HOLDS if change.low > -MARGIN else FAILS if change.high < -MARGIN else OPEN


def claim_records(outcomes: Outcomes) -> list[Record]:
    """One record per tested comparison, in the order of the claims, and one for every claim that could not be tested.

    Fields: `claim` (1, 2a, 2b, ...), `corpus`, `published_corpus` (that of the published effects), `statement`,
    `comparison`, `published_percent`, `change_percent`, `low_percent`, `high_percent`, `p` and `verdict`; what is not
    known is None.
    """
    records = [
        *_best_mixture(outcomes),
        *_context_for_networks(outcomes),
        *_context_for_ngrams(outcomes),
        *_hidden_units(outcomes),
        *_mixing(outcomes),
        *_direct_connections(outcomes),
        *_word_classes(outcomes),
        *_fixed_features(outcomes),
    ]
    corpus = outcomes.published_corpus
    common = {"corpus": outcomes.study["name"], "published_corpus": corpus and corpus["corpus"]}
    return [{"claim": record.pop("claim"), **common, **record} for record in records]


def compare_records(outcomes: Outcomes) -> list[Record]:
    """Every network, mixture and class-based row against the best n-gram, and every mixture against its better part.

    Choices are made on validation. `which` says what the other row is; `p_holm` is corrected for all records at once.
    """
    ngram = outcomes.best(*NGRAM_KINDS)
    pairs: dict[tuple[str, str], str] = {}
    for row in outcomes.rows():
        if ngram is not None and row.kind not in WORD_NGRAMS and row.model != ngram.model:
            pairs[row.model, ngram.model] = "best n-gram"
        if row.kind == "mixture" and (part := best(outcomes.parts(row))):
            pairs.setdefault((row.model, part.model), "its better part")
    infinite = {row.model for row in outcomes.rows() if math.isinf(row.perplexity("test"))}
    pairs = {pair: which for pair, which in pairs.items() if not infinite.issuperset(pair)}  # no number compares these
    changes = [outcomes.uncertainty.change(model, against) for model, against in pairs]
    corrected = holm([change.p for change in changes])
    return [
        {"model": model, "against": against, "which": which, **_numbers(change), "p_holm": p}
        for ((model, against), which), change, p in zip(pairs.items(), changes, corrected, strict=True)
    ]


def _numbers(change: Change | None) -> Record:
    return {
        "change_percent": change and change.percent,
        "low_percent": change and change.low,
        "high_percent": change and change.high,
        "p": change and change.p,
    }


def _line(
    claim: str,
    comparison: str,
    change: Change | None,
    verdict: str,
    *,
    published: float | None = None,
    statement: str | None = None,
) -> Record:
    return {
        "claim": claim,
        "statement": statement or STATEMENTS[claim],
        "comparison": comparison,
        "published_percent": published,
        **_numbers(change),
        "verdict": verdict,
    }


def _missing(claim: str, what: str, **line: Any) -> Record:
    return _line(claim, f"not tested here: {what}", None, MISSING, **line)


def _published(line: Published | None, against: Published | None) -> float | None:
    """The published change of the test perplexity, in percent; None where either is not published."""
    test, other = (None if one is None else one.perplexity["test"] for one in (line, against))
    return None if test is None else gap_percent(test, other)


def _compared(outcomes: Outcomes, claim: str, row: Row, against: Row, judge: Judge, **line: Any) -> Record:
    """The line of a claim that compares two rows."""
    change = outcomes.uncertainty.change(row.model, against.model)
    common = {
        "comparison": f"{row.model} against {against.model}",
        "published": _published(row.published, against.published),
    }
    return _line(claim, change=change, verdict=judge(change), **{**common, **line})


def _best_published(lines: Sequence[Published]) -> Published | None:
    """The published line with the lowest validation perplexity, None of none."""
    known = [line for line in lines if line.perplexity["valid"] is not None]
    return min(known, key=lambda line: line.perplexity["valid"] or 0.0, default=None)


def _signature(outcomes: Outcomes, row: Row, apart_from: Sequence[str]) -> tuple[Any, ...]:
    """What rows that differ only in the settings `apart_from` share; a mixture is known by its network's settings."""
    ignored = ("model", "published", "seeds", "components", *apart_from)
    settings = {key: value for key, value in row.settings.items() if key not in ignored}
    partners = [part.model for part in outcomes.parts(row) if part.kind != "network"] if row.kind == "mixture" else []
    return (*sorted(settings.items()), *partners)


def _families(outcomes: Outcomes, rows: Sequence[Row], *apart_from: str) -> list[list[Row]]:
    """The rows in groups that differ in the settings `apart_from` only; groups of one are left out."""
    families: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        families.setdefault(_signature(outcomes, row, apart_from), []).append(row)
    return [family for family in families.values() if len(family) > 1]


def _equal_mixtures(outcomes: Outcomes) -> list[Row]:
    return [mixture for mixture, _, _ in outcomes.trigram_mixtures()]


def _best_mixture(outcomes: Outcomes) -> list[Record]:
    mixture, ngram = best(_equal_mixtures(outcomes)), outcomes.best(*NGRAM_KINDS)
    if mixture is None or ngram is None:
        return [_missing("1", "a network mixed with the interpolated trigram, and an n-gram")]
    ours = _best_published([line for line in outcomes.published if line.mixed])
    theirs = _best_published([line for line in outcomes.published if line.mixed is None])
    return [_compared(outcomes, "1", mixture, ngram, is_lower, published=_published(ours, theirs))]


def _by_order(outcomes: Outcomes, kinds: Sequence[str]) -> list[tuple[Row, Row]]:
    """Rows that differ in the order only, of each family the one with most and the one with least context."""
    pairs = []
    for family in _families(outcomes, outcomes.rows(*kinds), "order"):
        ordered = sorted(family, key=lambda row: row.settings["order"])
        pairs.append((ordered[-1], ordered[0]))
    return pairs


def _context_for_networks(outcomes: Outcomes) -> list[Record]:
    pairs = _by_order(outcomes, ["network"])
    lines = [_compared(outcomes, "2a", *pair, is_lower) for pair in pairs]
    return lines or [_missing("2a", "two networks that differ in the order only")]


def _context_for_ngrams(outcomes: Outcomes) -> list[Record]:
    pairs = [pair for pair in _by_order(outcomes, NGRAM_KINDS) if pair[1].settings["order"] >= 3]
    lines = [_compared(outcomes, "2b", *pair, is_no_gain) for pair in pairs]
    return lines or [_missing("2b", "two n-grams of one kind with different orders from 3")]


def _hidden_units(outcomes: Outcomes) -> list[Record]:
    records = []
    for claim, rows, what in (
        ("3a", outcomes.rows("network"), "two networks"),
        ("3b", _equal_mixtures(outcomes), "two mixtures of networks with the trigram"),
    ):
        lines = [
            _compared(outcomes, claim, row, without, is_lower)
            for family in _families(outcomes, rows, "hidden")
            for without in family
            if without.settings["hidden"] == 0
            for row in family
            if row.settings["hidden"] > 0
        ]
        records += lines or [_missing(claim, f"{what}, one with hidden units and one without, the same otherwise")]
    return records


def _mixing(outcomes: Outcomes) -> list[Record]:
    """Claim 4, of all mixtures together: the least favourable comparison of a mixture with one of its parts.

    "Always" holds where every mixture is lower than both its parts; testing each at the same level needs no correction
    for that, and p is the largest. It does not hold where any is higher beyond chance, with Holm's correction.
    """
    pairs = [(mixture, part) for mixture, *parts in outcomes.trigram_mixtures() for part in parts]
    if not pairs:
        return [_missing("4", "a network mixed with the interpolated trigram")]
    changes = [outcomes.uncertainty.change(mixture.model, part.model) for mixture, part in pairs]
    corrected = holm([change.p for change in changes])
    if all(is_lower(change) == HOLDS for change in changes):
        verdict = HOLDS
    else:
        worse = any(c.percent > 0 and p <= 1 - LEVEL for c, p in zip(changes, corrected, strict=True))
        verdict = FAILS if worse else OPEN
    least = max(range(len(pairs)), key=lambda i: changes[i].high)
    mixture, part = pairs[least]
    comparison = (
        f"{mixture.model} against {part.model}: the smallest gain of {len(pairs) // 2} mixtures over their parts"
    )
    published = _published(mixture.published, part.published)
    return [_line("4", comparison, changes[least], verdict, published=published)]


def _twins(outcomes: Outcomes, rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Each row without direct connections, with the one that has them and is most like it: only h may differ too."""
    pairs = []
    for family in _families(outcomes, rows, "direct", "hidden"):
        with_direct = [row for row in family if row.settings["direct"]]
        for row in family:
            if with_direct and not row.settings["direct"]:
                hidden = row.settings["hidden"]
                pairs.append((row, min(with_direct, key=lambda other: abs(other.settings["hidden"] - hidden))))
    return pairs


def _direct_connections(outcomes: Outcomes) -> list[Record]:
    networks = _twins(outcomes, outcomes.rows("network"))
    mixtures = _twins(outcomes, _equal_mixtures(outcomes))
    what = "that differ in direct connections, and in the hidden units at most"
    records = []
    for claim, pairs, kind in (("5a", networks, "two networks"), ("5b", mixtures, "two mixtures of networks")):
        lines = [
            _compared(
                outcomes,
                claim,
                *pair,
                is_lower,
                comparison=f"{_with_hidden(pair[0])} against {_with_hidden(pair[1])}",
            )
            for pair in pairs
        ]
        records += lines or [_missing(claim, f"{kind} {what}")]
    epochs = [_epochs(outcomes, *pair) for pair in networks]
    return records + (epochs or [_missing("5c", f"two networks {what}")])


def _with_hidden(row: Row) -> str:
    return f"{row.model} (h = {row.settings['hidden']})"


def _epochs(outcomes: Outcomes, row: Row, against: Row) -> Record:
    """Claim 5c: epochs to the lowest validation perplexity. Undecided where a limit on epochs stopped a run."""
    counts, texts, limited = [], [], False
    for one in (row, against):
        curves = [run.learning_curve() for run in one.runs]
        kept = [int(curve.loc[curve["best"] == 1, "epoch"].iloc[0]) for curve in curves]
        key = "epochs_direct" if one.settings["direct"] else "epochs_without_direct"
        limit = outcomes.study["presets"][one.settings["preset"]][key]
        limited |= limit in kept
        counts.append(kept)
        texts.append(f"{one.model} {statistics.fmean(kept):.1f} of at most {limit}")
    if limited:
        verdict = OPEN
    elif min(counts[0]) > max(counts[1]):
        verdict = HOLDS
    else:
        verdict = FAILS if max(counts[0]) <= min(counts[1]) else OPEN
    percent = gap_percent(statistics.fmean(counts[0]), statistics.fmean(counts[1]))
    published = None
    if row.published and against.published:
        published = gap_percent(PAPER_EPOCHS["epochs_without_direct"], PAPER_EPOCHS["epochs_direct"])
    record = _line("5c", f"epochs: {' against '.join(texts)}", None, verdict, published=published)
    return {**record, "change_percent": percent}


def _word_classes(outcomes: Outcomes) -> list[Record]:
    corpus = outcomes.published_corpus
    on_news = corpus is not None and corpus["corpus"] == "AP News"
    statement = {"statement": NO_CLASS_GAIN} if on_news else {}
    classes, words = outcomes.best("class-based"), outcomes.best(*WORD_NGRAMS)
    if classes is None or words is None:
        return [_missing("6", "a class-based n-gram and a word n-gram", **statement)]
    ngrams = [line for line in outcomes.published if line.mixed is None]
    theirs = [
        _best_published([line for line in ngrams if (line.classes is None) == is_word]) for is_word in (False, True)
    ]
    judge = is_no_gain if on_news else is_lower
    return [_compared(outcomes, "6", classes, words, judge, published=_published(*theirs), **statement)]


def _fixed_features(outcomes: Outcomes) -> list[Record]:
    lines = [
        _compared(outcomes, "7", fixed, learnt, is_higher)
        for family in _families(outcomes, outcomes.rows("network"), "word_features")
        for fixed in family
        if fixed.settings.get("word_features") == "svd"
        for learnt in family
        if learnt.settings.get("word_features") == "learnt"
    ]
    return lines or [_missing("7", "a network with fixed features, and the same one with learnt features")]
