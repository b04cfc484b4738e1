"""Sweeps: perplexity against one setting at a time, the points as measured.

A point is one model under one vocabulary policy, or on a share of the training tokens, at the model's first seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nplm2003.errors import UserError
from nplm2003.files import read_object
from nplm2003.outcomes import Outcomes, Run
from nplm2003.scoring import SPLITS
from nplm2003.study import find_row


@dataclass(frozen=True)
class Point:
    """One point of a sweep. `x` is the setting that varies; None for an n-gram in a sweep over a network's shape.

    `policy` is the folder of the tokens; `train_tokens` are those the model is estimated on.
    """

    sweep: str
    policy: str
    run: Run
    train_tokens: int

    @property
    def x(self) -> int | str | None:
        """The order, hidden units, features, training tokens or policy, whichever the sweep is over."""
        if self.sweep == "policy":
            return self.policy
        return self.train_tokens if self.sweep == "train" else self.run.row[self.sweep]


def sweep_points(outcomes: Outcomes, *sweeps: str) -> list[Point]:
    """The points of the study's sweeps, in its order; of the sweeps named, where any are."""
    points = []
    for point in outcomes.study["sweeps"]:
        if not sweeps or point["sweep"] in sweeps:
            row = find_row(outcomes.study, point["model"])
            run = outcomes.run(row, row["seeds"][0], point["policy"])
            tokens = outcomes.statistics(point["policy"])["tokens"]["train"]
            points.append(Point(point["sweep"], point["policy"], run, tokens))
    return points


def sweep_records(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One record per point: what varies, the perplexities, and for networks the parameters and seconds of training."""
    return [
        {
            "sweep": point.sweep,
            "x": point.x,
            "model": point.run.model,
            "policy": point.policy,
            "preset": point.run.row["preset"],
            "seed": point.run.seed,
            "train_tokens": point.train_tokens,
            **{split: point.run.perplexity(split) for split in SPLITS},
            **_training(point.run),
        }
        for point in sweep_points(outcomes)
    ]


def _training(run: Run) -> dict[str, Any]:
    """Parameters and seconds of training of a network; nothing for an n-gram."""
    if run.kind != "network":
        return {}
    path = run.folder / "training.json"
    if not path.is_file():
        raise UserError(f"{path} does not exist: train {run.model} with seed {run.seed} first")
    training = read_object(path, {"parameters": int, "seconds": float})
    return {"parameters": training["parameters"], "seconds": training["seconds"]}
