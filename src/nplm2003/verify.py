"""Do committed results still follow from what they were made of?

Two steps, each with the code that is here now. The tables of a folder of committed results are made again from the
evaluations beside them: for that the folder is enough. And where the score files are at hand, every evaluation and the
bootstrap's intervals are measured again from these. Numbers are the same if they differ by less than `TOLERANCE`.
"""

from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nplm2003.errors import UserError
from nplm2003.evaluation import evaluate
from nplm2003.files import read_json
from nplm2003.outcomes import Outcomes
from nplm2003.scoring import SPLITS, Scores
from nplm2003.study import table_file
from nplm2003.tables import TABLES
from nplm2003.vocabulary import TokenStore

TOLERANCE = 1e-9  # relative: sums in another order, no more
NOT_COMMITTED = ("neighbours",)  # tables that read words or arrays, which no committed folder has

Finding = tuple[str, str | None]  # what was checked, and how it differs; None where it follows


def verify_tables(reference: Path) -> Iterator[Finding]:
    """Make every table of the committed folder `reference` again from the evaluations in it."""
    outcomes = Outcomes(reference / "study.json", reference)
    with tempfile.TemporaryDirectory() as folder:
        for table, tabulate in TABLES.items():
            name = f"tables/{table_file(outcomes.study, table)}"
            committed = (reference / name).with_suffix(".csv")
            if table in NOT_COMMITTED or not committed.is_file():
                continue
            stem = Path(folder) / table
            try:
                tabulate(outcomes, stem)
                wrong = difference(_read_csv(committed), _read_csv(stem.with_suffix(".csv")))
            except UserError as error:  # such as intervals of other scores
                wrong = str(error)
            yield f"{name}.csv", wrong


def verify_scores(reference: Path, results: Path) -> Iterator[Finding]:
    """Measure again, from the score files under `results`, every evaluation in `reference`, and the intervals."""
    for committed in sorted(reference.glob("*/*/seed*/evaluation.json")):
        name = committed.relative_to(reference)
        store = TokenStore(results / name.parts[0] / "tokens")
        again = evaluate(
            Scores(results / name.parent / "scores"), {split: store[split] for split in SPLITS}, store.train_counts
        )
        yield str(name), difference(_measured(read_json(committed)), _measured(again))
    outcomes = Outcomes(reference / "study.json", results)
    committed = reference / outcomes.policy / "uncertainty.json"
    if committed.is_file():
        again = outcomes.measure_uncertainty()
        yield str(committed.relative_to(reference)), difference(_measured(read_json(committed)), again)


def _measured(content: dict[str, Any]) -> dict[str, Any]:
    """What was measured, without who measured it."""
    return {key: value for key, value in content.items() if key != "provenance"}


def difference(committed: Any, again: Any, place: str = "") -> str | None:
    """Where two values made of dicts, lists, texts and numbers differ first; None where they do not.

    Texts that are numbers, as in CSV, are compared as numbers.
    """
    if isinstance(committed, dict) and isinstance(again, dict):
        if committed.keys() != again.keys():
            return f"{place or 'it'} has {', '.join(committed)}, and now {', '.join(again)}"
        pairs = [(f"{place}.{key}" if place else str(key), committed[key], again[key]) for key in committed]
    elif isinstance(committed, list) and isinstance(again, list):
        if len(committed) != len(again):
            return f"{place or 'it'} has {len(committed)} entries, and now {len(again)}"
        pairs = [(f"{place}[{i}]", *both) for i, both in enumerate(zip(committed, again, strict=True))]
    else:
        return None if _same(committed, again) else f"{place} is {committed!r}, and now {again!r}"
    return next((found for key, one, other in pairs if (found := difference(one, other, key))), None)


def _same(one: Any, other: Any) -> bool:
    if one == other:
        return True
    try:
        return math.isclose(float(one), float(other), rel_tol=TOLERANCE)
    except (TypeError, ValueError):
        return False


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
