"""What the ways to train one network cost, in seconds and in perplexity."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nplm2003.outcomes import HELD_OUT, Outcomes, Row, best, gap_percent
from nplm2003.plan import ways_to_train

WITHIN = (20, 10, 5, 2, 1)  # percent above the reference's lowest validation perplexity


def seconds_until(curve: pd.DataFrame, perplexity: float) -> float | None:
    """Seconds of training until validation, as looked at after each epoch, is down to `perplexity`; None if never.

    Between two epochs the logarithm of perplexity is taken to fall evenly; within the first one nothing is known, so
    that its whole time counts.
    """
    seconds, nats = curve["seconds"].cumsum().to_numpy(), np.log(curve["valid_perplexity"].to_numpy())
    reached = np.flatnonzero(nats <= np.log(perplexity))
    if not reached.size:
        return None
    last = int(reached[0])
    if last == 0:
        return float(seconds[0])
    return float(np.interp(-np.log(perplexity), -nats[last - 1 : last + 1], seconds[last - 1 : last + 1]))


def reference_of(rows: Sequence[Row], presets: Mapping[str, Mapping[str, Any]]) -> Row | None:
    """The row the others are compared with: of those trained by the exact softmax over all words, if any, the one
    that is lowest on validation."""
    exact = [
        row
        for row in rows
        if row.settings["outputs"] == "words" and presets[row.settings["preset"]]["objective"] == "softmax"
    ]
    return best(exact or rows)


def way_records(outcomes: Outcomes) -> tuple[Row | None, list[dict[str, Any]]]:
    """The reference row, and one record per way: its seconds, what perplexity they buy, and how soon.

    `seconds` is the whole training, `seconds_20` to `seconds_1` the training until validation comes within so many
    percent of the lowest that the reference reaches; None unless every seed does. All are means over the seeds.
    """
    presets = outcomes.study["presets"]
    rows = [outcomes.row(settings) for settings in ways_to_train(outcomes.study)]
    reference = reference_of(rows, presets)
    if reference is None:
        return None, []
    curves = {row.model: [run.learning_curve() for run in row.runs] for row in rows}
    lowest = statistics.fmean(curve["valid_perplexity"].min() for curve in curves[reference.model])
    records = []
    for row in rows:
        preset = row.settings["preset"]
        record: dict[str, Any] = {
            "model": row.model,
            "preset": preset,
            "objective": presets[preset]["objective"],
            "outputs": row.settings["outputs"],
            "seed": row.seeds,
            "seconds": statistics.fmean(curve["seconds"].sum() for curve in curves[row.model]),
        }
        for percent in WITHIN:
            each = [seconds_until(curve, lowest * (1 + percent / 100)) for curve in curves[row.model]]
            known = [seconds for seconds in each if seconds is not None]
            record[f"seconds_{percent}"] = statistics.fmean(known) if len(known) == len(each) else None
        for split in HELD_OUT:
            record[split], record[f"{split}_sd"] = row.perplexity(split), row.deviation(split)
            record[f"{split}_percent"] = gap_percent(row.perplexity(split), reference.perplexity(split))
        records.append(record)
    return reference, records
