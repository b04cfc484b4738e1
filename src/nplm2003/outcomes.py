"""What a study found: its rows, the evaluation of every run, and the published numbers beside them.

Tables and figures read a study only through here, so that a row, its published line and its parts are matched in one
place. A *run* is one row of the study with one seed; a *row* is all its runs together. Wherever a row has one number,
it is the mean over its runs, so the perplexity of a row is the mean of the perplexities of its seeds.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nplm2003.errors import UserError
from nplm2003.files import INFINITE, number_infinities, read_object
from nplm2003.neural.preset import AMOUNTS, CHOICES, COUNTS
from nplm2003.ngram import SMOOTHED_KINDS
from nplm2003.published import published_corpus, stands_in
from nplm2003.scoring import SPLITS, Scores, require_same_tokens
from nplm2003.study import OUT_OF_VOCABULARY, find_row
from nplm2003.uncertainty import Uncertainty, measure_uncertainty
from nplm2003.vocabulary import STATISTICS

# The n-grams of the paper, which its claims are about.
WORD_NGRAMS = ("interpolated", "kneser-ney")
NGRAM_KINDS = (*WORD_NGRAMS, "class-based")
SWEPT = ("order", "hidden", "features", "train", "policy")  # what a sweep may be over
# What is read of each file: one without it is damaged, or another's.
SINGLE = {
    "model": str,
    "kind": (*NGRAM_KINDS, *SMOOTHED_KINDS, "network"),
    "published": (str, None),
    "order": int,
    **dict.fromkeys(("classes", "hidden", "features"), (int, None)),
    "direct": (bool, None),
    **dict.fromkeys(("architecture", "options", "word_features", "outputs", "preset"), (str, None)),
    "seeds": [int],
}
MIXTURE = {**SINGLE, "kind": ("mixture", OUT_OF_VOCABULARY), "components": [str], "weights": str}
POLICY = {
    **dict.fromkeys(("policy", "count_on", "cut"), str),
    "size": int,
    **dict.fromkeys(("lowercase", "marks", "split_clitics", "numbers", "proper_nouns"), bool),
}
STUDY = {
    **dict.fromkeys(("name", "title", "policy", "table"), str),
    "corpus": {"source": str},
    "policies": [POLICY],
    "policy_models": [str],
    "published": (str, None),
    "rows": [(SINGLE, MIXTURE)],
    "extended_rows": [(SINGLE, MIXTURE)],
    "sweep_rows": [SINGLE],
    "sweeps": [{"sweep": SWEPT, "policy": str, "train": (str, None), "model": str}],
    "presets": {
        str: {
            **dict.fromkeys(CHOICES, str),
            **dict.fromkeys((*COUNTS, "noise_words"), int),
            **dict.fromkeys(AMOUNTS, float),
        }
    },
}
MEASURED = (float, INFINITE[0])  # infinite for a model that gives some token probability 0
FREQUENCIES = [{"bin": str, "tokens": int, "nats": MEASURED, "perplexity": MEASURED}]
HELD_OUT = ("valid", "test")
EVALUATION = {
    "vocabulary": str,
    "perplexity": dict.fromkeys(SPLITS, MEASURED),
    "by_frequency": dict.fromkeys(SPLITS, FREQUENCIES),
    **dict.fromkeys(("seen", "unseen"), dict.fromkeys(HELD_OUT, (*MEASURED, None))),
    "provenance": {"commit": (str, None), "modified": (bool, None)},
}
UNCERTAINTY = {
    "draws": int,
    "level": float,
    "block_tokens": dict.fromkeys(HELD_OUT, int),
    "perplexity": {str: dict.fromkeys(HELD_OUT, dict.fromkeys(("measured", "low", "high"), MEASURED))},
    "pairs": [
        {"model": str, "against": str, **dict.fromkeys(("log_ratio", "low", "high"), (float, *INFINITE)), "p": float}
    ],
}
CURVE = ("epoch", "examples", "rate", "train_perplexity", "valid_perplexity", "seconds", "best")


def gap_percent(ours: float, published: float | None) -> float | None:
    """How far `ours` lies above (+) or below (-) the published value, in percent of it; None without one."""
    return None if published is None else 100 * (ours / published - 1)


@dataclass(frozen=True)
class Published:
    """One line of a published table: `name`, `order`, `classes`, `mixed` and a perplexity (or None) per split.

    `mixed`: whether a network is mixed with the interpolated trigram; None for n-grams.
    """

    name: str
    order: int
    classes: int | None
    mixed: bool | None
    perplexity: Mapping[str, float | None]


def read_published(path: Path | str) -> list[Published]:
    """Read a published table (CSV with the columns model, order, train, valid, test and, where used, classes, mix)."""
    if not Path(path).is_file():
        raise UserError(f"the published table {path} named by the study does not exist: correct `published`")
    types = {"model": str, "order": int, **dict.fromkeys(SPLITS, float)}
    try:
        table = pd.read_csv(path, dtype={**types, "classes": "Int64"})
        table[list(types)]
    except (ValueError, KeyError) as error:  # no table, no numbers, or columns missing
        reason = " ".join(str(error).split())  # in one line
        raise UserError(f"the published table {path} cannot be read ({reason}): correct it, or `published`") from error
    lines = table.astype(object).where(table.notna(), None).to_dict("records")
    return [
        Published(
            line["model"],
            line["order"],
            line.get("classes"),
            {"yes": True, "no": False}.get(line.get("mix")),
            {split: line[split] for split in SPLITS},
        )
        for line in lines
    ]


@dataclass(frozen=True)
class Run:
    """One row of the study with one seed: its settings and its evaluation.

    `folder` holds the model's files and its scores.
    """

    row: Mapping[str, Any]
    seed: int
    folder: Path
    evaluation: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The name of the row."""
        return self.row["model"]

    @property
    def kind(self) -> str:
        """network, mixture, out-of-vocabulary, or a kind of n-gram: interpolated, kneser-ney, class-based, katz, ..."""
        return self.row["kind"]

    @property
    def commit(self) -> str | None:
        """The commit that scored it, with a + where the source had uncommitted edits; None outside a repository."""
        made = self.evaluation["provenance"]
        commit: str | None = made.get("commit")
        return commit and commit[:12] + ("+" if made.get("modified") else "")

    def perplexity(self, split: str) -> float:
        """The perplexity measured on `split`."""
        return self.evaluation["perplexity"][split]

    def learning_curve(self) -> pd.DataFrame:
        """The learning curve of a network, one line per epoch (`learning_curve.csv`)."""
        path = self.folder / "learning_curve.csv"
        if not path.is_file():
            raise UserError(f"{path} does not exist: train {self.model} with seed {self.seed} first")
        try:
            curve = pd.read_csv(path)
            numbers = curve[list(CURVE)].astype(float)
        except (ValueError, LookupError) as error:  # pandas' parser errors are ValueErrors
            raise UserError(f"{path} is damaged ({error}): train {self.model} with seed {self.seed} again") from error
        perplexities = numbers[["train_perplexity", "valid_perplexity"]]
        sound = (
            np.isfinite(numbers).all(axis=None)
            and (perplexities > 0).all(axis=None)
            and (numbers[["rate", "seconds"]] >= 0).all(axis=None)
            and numbers["epoch"].tolist() == list(range(1, len(numbers) + 1))
            and (numbers["examples"].diff().dropna() > 0).all()
            and sorted(numbers["best"]) == [0] * (len(numbers) - 1) + [1]
        )
        if not sound:
            raise UserError(
                f"{path} is no learning curve (epochs 1, 2, 3, ..., positive perplexities, one best epoch): train "
                f"{self.model} with seed {self.seed} again"
            )
        return curve


@dataclass(frozen=True)
class Row:
    """One row of the study as measured: `settings`, a run for each of its seeds, and the published line beside it."""

    settings: Mapping[str, Any]
    runs: Sequence[Run]
    published: Published | None

    @property
    def model(self) -> str:
        """The name of the row."""
        return self.settings["model"]

    @property
    def kind(self) -> str:
        """network, interpolated, kneser-ney, ... or mixture."""
        return self.settings["kind"]

    def perplexity(self, split: str) -> float:
        """The mean over the runs of the perplexity measured on `split`."""
        return statistics.fmean(run.perplexity(split) for run in self.runs)

    def deviation(self, split: str) -> float | None:
        """The standard deviation of that perplexity over the runs (n - 1 in the denominator); None with one run."""
        return statistics.stdev(run.perplexity(split) for run in self.runs) if len(self.runs) > 1 else None

    def published_perplexity(self, split: str) -> float | None:
        """The published perplexity of `split`, None where the paper gives none."""
        return None if self.published is None else self.published.perplexity[split]

    @property
    def seeds(self) -> str:
        """The seeds of the runs, as tables show them."""
        return " ".join(str(run.seed) for run in self.runs)

    @property
    def commits(self) -> str | None:
        """The commits that scored the runs, each once; None where there is none."""
        return " ".join(dict.fromkeys(run.commit for run in self.runs if run.commit)) or None

    @property
    def best_run(self) -> Run:
        """The run with the lowest *validation* perplexity."""
        return min(self.runs, key=lambda run: run.perplexity("valid"))


class Outcomes:
    """A study and everything measured in it.

    `study_file` is the `study.json` of the workflow. `results` is the folder of the corpus (`results/<corpus>`); the
    folder of the study's vocabulary policy inside it is accepted too, since all rows are in that one.

    Attributes: `study`, the resolved configuration; `corpus_folder`; `folder`, that of the study's policy.
    """

    def __init__(self, study_file: Path | str, results: Path | str) -> None:
        if not Path(study_file).is_file():
            raise UserError(f"{study_file} does not exist: name the study.json that the workflow writes")
        self.study: dict[str, Any] = read_object(study_file, STUDY)
        known = [policy["policy"] for policy in self.study["policies"]]
        in_tables = [*self.study["rows"], *self.study["extended_rows"]]
        presets = {row["preset"] for row in in_tables if row["kind"] == "network"}
        if self.study["policy"] not in known or not presets <= set(self.study["presets"]):
            raise UserError(
                f"{study_file} is damaged, it names a policy or preset that it does not have: make it again"
            )
        given = Path(results)
        inside = given.resolve().name == self.policy
        self.corpus_folder = given.parent if inside else given
        self.folder = given if inside else given / self.policy
        self._runs: dict[tuple[str, str, int], Run] = {}

    @property
    def policy(self) -> str:
        """The vocabulary policy of the rows."""
        return self.study["policy"]

    @cached_property
    def published(self) -> list[Published]:
        """The published table, line by line; empty for a corpus that has none."""
        path = self.study["published"]
        return read_published(path) if path else []

    @property
    def published_corpus(self) -> dict[str, Any] | None:
        """Size of the corpus behind the published table, None where there is no such table."""
        return published_corpus(self.study)

    @property
    def comparable(self) -> bool:
        """Whether the published numbers, if any, are for the corpus of this study and not for one it stands in for."""
        return not stands_in(self.study)

    def gap(self, ours: float, published: float | None) -> float | None:
        """`gap_percent`; None too where the published value is for another corpus, since it then says nothing."""
        return gap_percent(ours, published) if self.comparable else None

    @property
    def published_label(self) -> str:
        """What figures call the published values."""
        return "published" if self.comparable else f"published for {(self.published_corpus or {})['corpus']}"

    def statistics(self, policy: str) -> dict[str, Any]:
        """The statistics (`corpus.json`) of the corpus under a vocabulary policy."""
        path = self.corpus_folder / policy / "tokens" / "corpus.json"
        if not path.is_file():
            raise UserError(f"{path} does not exist: build the tokens of the vocabulary policy {policy} first")
        return read_object(path, STATISTICS)

    def published_line(self, row: Mapping[str, Any]) -> Published | None:
        """The line of the published table that `row` is compared with: same name, order and number of classes."""
        if not self.published or not row["published"]:
            return None
        key = (row["published"], row["order"], row.get("classes"))
        for line in self.published:
            if (line.name, line.order, line.classes) == key:
                return line
        raise UserError(
            f"the row {row['model']} names the published model {row['published']!r} with order {row['order']}, which "
            f"{self.study['published']} does not have: correct `published` in the row, or leave it empty"
        )

    def not_run(self) -> list[Published]:
        """The published lines that no row of the study stands beside."""
        taken = [self.published_line(row) for row in self.study["rows"]]
        return [line for line in self.published if line not in taken]

    def evaluation(self, policy: str, model: str, seed: int) -> dict[str, Any]:
        """Read one evaluation; it must belong to the tokens that now lie in the folder of the policy."""
        path = self.corpus_folder / policy / model / f"seed{seed}" / "evaluation.json"
        if not path.is_file():
            raise UserError(f"{path} does not exist: score and evaluate {model} with seed {seed} first")
        evaluation: dict[str, Any] = number_infinities(read_object(path, EVALUATION))
        if evaluation["vocabulary"] != self.statistics(policy)["fingerprint"]:
            raise UserError(f"{path} was measured on other tokens than those of {policy} now: evaluate {model} again")
        return evaluation

    def run(self, row: Mapping[str, Any], seed: int, policy: str | None = None) -> Run:
        """One row with one seed; under the vocabulary policy of the study where no other is named."""
        policy = policy or self.policy
        key = (policy, row["model"], seed)
        if key not in self._runs:
            self._runs[key] = Run(
                row=row,
                seed=seed,
                folder=self.corpus_folder / policy / row["model"] / f"seed{seed}",
                evaluation=self.evaluation(policy, row["model"], seed),
            )
        return self._runs[key]

    def row(self, settings: Mapping[str, Any]) -> Row:
        """One row with all its seeds."""
        runs = [self.run(settings, seed) for seed in settings["seeds"]]
        return Row(settings, runs, self.published_line(settings))

    def rows(self, *kinds: str) -> list[Row]:
        """All rows, in the order of the study; only those of the given kinds where any are named."""
        return self._rows_of("rows", kinds)

    def _rows_of(self, table: str, kinds: Sequence[str]) -> list[Row]:
        return [self.row(settings) for settings in self.study[table] if not kinds or settings["kind"] in kinds]

    def extended_rows(self, *kinds: str) -> list[Row]:
        """The rows of the extended table, as `rows` gives those of the main one."""
        return self._rows_of("extended_rows", kinds)

    def runs(self, *kinds: str) -> list[Run]:
        """The runs of these rows, seed after seed."""
        return [run for row in self.rows(*kinds) for run in row.runs]

    def parts(self, mixture: Row) -> list[Row]:
        """The rows that a mixture mixes."""
        return [self.row(find_row(self.study, model)) for model in mixture.settings["components"]]

    def trigram_mixtures(self) -> list[tuple[Row, Row, Row]]:
        """The mixtures of the paper's tables, each with its network and its trigram: of both with equal weights."""
        found = []
        for mixture in self.rows("mixture"):
            parts = {part.kind: part for part in self.parts(mixture)}
            alone = len(mixture.settings["components"]) == 2 and set(parts) == {"network", "interpolated"}
            if alone and mixture.settings["weights"] == "fixed":
                found.append((mixture, parts["network"], parts["interpolated"]))
        return found

    def best(self, *kinds: str) -> Row | None:
        """The row of these kinds with the lowest *validation* perplexity (test is never used to choose)."""
        return best(self.rows(*kinds))

    def measure_uncertainty(self) -> dict[str, Any]:
        """The bootstrap's intervals of all rows, from the score files in the folders of their runs."""
        scores = {row.model: {run.seed: Scores(run.folder / "scores") for run in row.runs} for row in self.rows()}
        require_same_tokens(*(each for runs in scores.values() for each in runs.values()))
        return measure_uncertainty(
            {
                model: {split: {seed: each[split] for seed, each in runs.items()} for split in ("valid", "test")}
                for model, runs in scores.items()
            }
        )

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The intervals of the rows (`uncertainty.json`); they must have been drawn from the scores there are now."""
        path = self.folder / "uncertainty.json"
        if not path.is_file():
            raise UserError(f"{path} does not exist: run `nplm2003 bootstrap` on the study first")
        uncertainty = Uncertainty(number_infinities(read_object(path, UNCERTAINTY)))
        for row in self.rows():
            for split in ("valid", "test"):
                drawn_from = uncertainty.measured(row.model, split)
                if drawn_from is None or not math.isclose(drawn_from, row.perplexity(split), rel_tol=1e-9):
                    raise UserError(
                        f"{path} does not belong to the scores of {row.model} that are there now: run "
                        "`nplm2003 bootstrap` again"
                    )
        names = [row["model"] for row in self.study["rows"]]
        if not all(uncertainty.compares(*pair) for pair in itertools.combinations(names, 2)):
            raise UserError(f"{path} is damaged, it does not compare all rows: run `nplm2003 bootstrap` again")
        return uncertainty


def read_benchmark(path: Path) -> pd.DataFrame:
    """What Snakemake measured of one job: seconds `s`, `cpu_time`, and `max_rss` in MB, a line for each repetition."""
    try:
        measured = pd.read_csv(path, sep="\t", usecols=["s", "cpu_time", "max_rss"], dtype=float, na_values="-")
    except ValueError as error:  # empty, or with other columns
        raise UserError(f"{path} is not a benchmark file of Snakemake: delete it and run the rule") from error
    if measured.empty:
        raise UserError(f"{path} is not a benchmark file of Snakemake, it has no line: delete it and run the rule")
    return measured


def best(rows: Sequence[Row]) -> Row | None:
    """The row with the lowest *validation* perplexity, None of none."""
    return min(rows, key=lambda row: row.perplexity("valid"), default=None)
