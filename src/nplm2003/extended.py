"""The extended table: what came before and after the paper, and the best that the same tokens allow."""

from __future__ import annotations

from typing import Any

from nplm2003.files import read_object
from nplm2003.neural.architectures import ARCHITECTURES, PAPER
from nplm2003.outcomes import Outcomes, Row, best, read_benchmark
from nplm2003.plan import DESCRIBED
from nplm2003.scoring import SPLITS

# When a method was a language model first, as far as we know: of n-grams by their kind, of the paper's network by what
# it has that is not the paper's. Those of other networks stand with their architectures.
YEARS = {
    "interpolated": 1980,  # Jelinek and Mercer
    "katz": 1987,
    "absolute-discounting": 1991,  # Ney and Essen
    "class-based": 1992,  # Brown and others
    "kneser-ney": 1995,
    "add-k": 1920,  # Lidstone; a language model much later
    "maximum-likelihood": 1948,  # Shannon
    PAPER: 2003,
}
WORD_FEATURES_YEARS = {"word2vec": 2013}
OUTPUTS_YEARS = {"classes": 2001, "tree": 2005, "adaptive": 2017}  # Goodman; Morin and Bengio; Grave and others


def year_of(outcomes: Outcomes, row: Row) -> int:
    """The year of a row: of one that is made of others, that of its newest part."""
    settings = row.settings
    if "components" in settings:
        return max(year_of(outcomes, part) for part in outcomes.parts(row))
    if row.kind != "network":
        return YEARS[row.kind]
    if settings["architecture"] != PAPER:
        return ARCHITECTURES[settings["architecture"]].year
    return max(
        YEARS[PAPER],
        WORD_FEATURES_YEARS.get(settings["word_features"], 0),
        OUTPUTS_YEARS.get(settings["outputs"], 0),
    )


def cost_of(outcomes: Outcomes, row: Row) -> tuple[float | None, float | None]:
    """Parameters and seconds of training of a row, None where they are not known; of parts, of these together.

    Parameters of an n-gram model are the n-grams that it keeps. Seconds are the mean over the seeds; those of an n-gram
    model are of the job that estimated it.
    """
    if "components" in row.settings:
        costs = [cost_of(outcomes, part) for part in outcomes.parts(row)]
        totals = [None if None in each else sum(each) for each in zip(*costs, strict=True)]
        return totals[0], totals[1]
    if row.kind == "network":
        shape = {"parameters": int, "seconds": float}
        trainings = [read_object(run.folder / "training.json", shape) for run in row.runs]
        return trainings[0]["parameters"], sum(each["seconds"] for each in trainings) / len(trainings)
    name, rule = DESCRIBED[row.kind]
    description = row.runs[0].folder / name
    parameters = read_object(description, {"parameters": int})["parameters"] if description.is_file() else None
    measured = outcomes.corpus_folder / "benchmarks" / rule / f"{outcomes.policy},{row.model}.tsv"
    return parameters, float(read_benchmark(measured)["s"].iloc[0]) if measured.is_file() else None


def extended_records(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One record per row of the main and of the extended table, by year; `best` marks what validation chooses."""
    rows = {"main": outcomes.rows(), "extended": outcomes.extended_rows()}
    every = [*rows["main"], *rows["extended"]]
    single = best([row for row in every if "components" not in row.settings])
    mixture = best([row for row in every if row.kind == "mixture"])
    marks = {row.model: mark for row, mark in ((single, "single"), (mixture, "mixture")) if row is not None}
    records = []
    for table, of_table in rows.items():
        for row in of_table:
            parameters, seconds = cost_of(outcomes, row)
            mixed = row.settings.get("components")
            # Of a mixture of several networks no single shape can be told.
            networks = [part for part in outcomes.parts(row) if part.kind == "network"] if mixed else [row]
            shape = row.settings if len(networks) < 2 else {}
            records.append(
                {
                    "model": row.model,
                    "year": year_of(outcomes, row),
                    "table": table,
                    "architecture": row.settings["architecture"] if row.kind == "network" else row.kind,
                    **{key: shape.get(key) for key in ("options", "order", "hidden", "features", "preset")},
                    "components": " ".join(mixed) if mixed else None,
                    "seed": row.seeds,
                    "parameters": parameters,
                    "seconds": seconds,
                    **{split: row.perplexity(split) for split in SPLITS},
                    **{f"{split}_sd": row.deviation(split) for split in ("valid", "test")},
                    "best": marks.get(row.model),
                    "commit": row.commits,
                }
            )
    return sorted(records, key=lambda record: record["year"])
