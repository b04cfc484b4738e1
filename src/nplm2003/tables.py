"""The tables of the study, each as records for CSV and as tables for readers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nplm2003.claims import MARGIN, claim_records, compare_records
from nplm2003.departures import DEPARTURES, departures_of
from nplm2003.errors import UserError
from nplm2003.extended import extended_records
from nplm2003.files import read_object, write_text
from nplm2003.formats import Column, Table, to_csv, write_table
from nplm2003.neighbours import ENOUGH, neighbour_records
from nplm2003.outcomes import Outcomes, Published, read_benchmark
from nplm2003.scoring import SPLITS
from nplm2003.study import OUT_OF_VOCABULARY, find_row
from nplm2003.sweeps import sweep_records
from nplm2003.targets import target_records
from nplm2003.uncertainty import BLOCK_TOKENS
from nplm2003.ways import WITHIN, way_records

TARGET_COLUMNS = (
    Column("target", "target"),
    Column("model", "model"),
    Column("seed", "seed"),
    Column("split", "split"),
    Column("threshold", "threshold"),
    Column("measured", "measured"),
    Column("met", "met"),
)
DEPARTURE_COLUMNS = tuple(Column(key, key) for key in ("departure", "kind", "title", "explanation", "rows"))
NEIGHBOUR_COLUMNS = (
    Column("word", "word"),
    Column("train_count", "in train", digits=0),
    Column("neighbours", "nearest words (cosine)"),
)
SWEEP_COLUMNS = (
    Column("sweep", "sweep"),
    Column("x", "at"),
    Column("model", "model"),
    Column("policy", "policy"),
    Column("preset", "preset"),
    Column("seed", "seed", digits=0),
    Column("train_tokens", "training tokens", digits=0),
    Column("train", "train", digits=1),
    Column("valid", "valid.", digits=1),
    Column("test", "test", digits=1),
    Column("parameters", "parameters", digits=0),
    Column("seconds", "training, s", digits=0),
)
EXTENDED_COLUMNS = (
    Column("model", "model"),
    Column("year", "year"),
    Column("table", "table"),
    Column("architecture", "architecture"),
    Column("options", "options"),
    Column("order", "n", digits=0),
    Column("hidden", "h", digits=0),
    Column("features", "m", digits=0),
    Column("preset", "preset"),
    Column("components", "mixes"),
    Column("seed", "seed"),
    Column("parameters", "parameters", digits=0),
    Column("seconds", "training, s", digits=0),
    Column("train", "train", digits=1),
    Column("valid", "valid.", digits=1),
    Column("valid_sd", "± sd", digits=1),
    Column("test", "test", digits=1),
    Column("test_sd", "± sd", digits=1),
    Column("best", "best"),
    Column("commit", "commit"),
)
WAY_COLUMNS = (
    Column("model", "model"),
    Column("preset", "preset"),
    Column("objective", "objective"),
    Column("outputs", "outputs"),
    Column("seed", "seed"),
    Column("seconds", "training, s", digits=0),
    *(Column(f"seconds_{percent}", f"to {percent} %, s", digits=0) for percent in WITHIN),
    Column("valid", "valid.", digits=1),
    Column("valid_sd", "± sd", digits=1),
    Column("valid_percent", "valid. %", digits=1, signed=True),
    Column("test", "test", digits=1),
    Column("test_sd", "± sd", digits=1),
    Column("test_percent", "test %", digits=1, signed=True),
)
OOV_COLUMNS = (
    Column("model", "model"),
    Column("split", "split"),
    Column("group", "tokens that are"),
    Column("tokens", "tokens", digits=0),
    Column("merged", "C(merged)", digits=1),
    Column("features", "C(j)", digits=1),
    Column("uniform", "uniform", digits=1),
    Column("counted", "counted", digits=1),
    Column("larger", "larger softmax", digits=1),
    Column("within", "within the merged", digits=1),
)
OOV = {"records": [{"split": str, "group": str, "tokens": int, "perplexity": {str: float}}]}
TIMING_FIELDS = ("rule", "wildcards", "seconds", "cpu_seconds", "max_rss_mb")
TIMING_COLUMNS = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "max_rss_mb"}  # Snakemake's -> ours
ROW_COLUMNS = (
    Column("model", "model"),
    Column("order", "n", digits=0),
    Column("classes", "c", digits=0),
    Column("hidden", "h", digits=0),
    Column("features", "m", digits=0),
    Column("direct", "direct"),
    Column("mix", "mix"),
    Column("preset", "preset"),
    Column("train", "train", digits=1),
    Column("valid", "valid.", digits=1),
    Column("valid_sd", "± sd", digits=1),
    Column("test", "test", digits=1),
    Column("test_sd", "± sd", digits=1),
    Column("test_low", "test, 95 % from", digits=1),
    Column("test_high", "to", digits=1),
    Column("paper_train", "paper train", digits=0),
    Column("paper_valid", "paper valid.", digits=0),
    Column("paper_test", "paper test", digits=0),
    Column("gap_valid_percent", "gap valid. %", digits=1, signed=True),
    Column("gap_test_percent", "gap test %", digits=1, signed=True),
    Column("test_seen", "test, seen words", digits=1),
    Column("test_unseen", "test, unseen words", digits=0),
    Column("departures", "departures"),
)
RUN_COLUMNS = (
    Column("model", "model"),
    Column("seed", "seed", digits=0),
    *(Column(split, split, digits=1) for split in SPLITS),
    Column("test_seen", "test, seen words", digits=1),
    Column("test_unseen", "test, unseen words", digits=0),
    Column("commit", "commit"),
)
CHANGE_COLUMNS = (
    Column("change_percent", "change %", digits=1, signed=True),
    Column("low_percent", "95 % from", digits=1, signed=True),
    Column("high_percent", "to", digits=1, signed=True),
    Column("p", "p", digits=4),
)
COMPARE_COLUMNS = (
    Column("model", "model"),
    Column("against", "against"),
    Column("which", "which is"),
    *CHANGE_COLUMNS,
    Column("p_holm", "p (Holm)", digits=4),
)
CLAIM_COLUMNS = (
    Column("claim", "claim"),
    Column("corpus", "corpus"),
    Column("published_corpus", "published for"),
    Column("statement", "the paper's statement"),
    Column("comparison", "compared on test"),
    Column("published_percent", "published %", digits=1, signed=True),
    *CHANGE_COLUMNS,
    Column("verdict", "verdict"),
)


def _yes_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def row_records(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One record per row: settings, perplexities, published perplexities, gaps and what stands beside them.

    `train`, `valid` and `test` are the means of the perplexities of the seeds, `train_sd`, ... their standard
    deviations (None with one run), `valid_low` to `test_high` the ends of the bootstrap intervals
    (`nplm2003.uncertainty`). `merged_percent` is the share of test tokens that are the merged symbol; `test_seen` and
    `test_unseen` are the perplexities of test tokens whose word occurs / never occurs in train.
    """
    corpus = outcomes.statistics(outcomes.policy)
    records = []
    for row in outcomes.rows():
        settings = row.settings
        intervals: dict[str, float] = {}
        for split in ("valid", "test"):
            intervals[f"{split}_low"], intervals[f"{split}_high"] = outcomes.uncertainty.interval(row.model, split)
        records.append(
            {
                "model": row.model,
                "order": settings["order"],
                "classes": settings.get("classes"),
                "hidden": settings.get("hidden"),
                "features": settings.get("features"),
                "direct": _yes_no(settings.get("direct")),
                "mix": _yes_no(row.kind == "mixture"),
                "preset": settings.get("preset"),
                "seed": row.seeds,
                "vocabulary policy": outcomes.policy,
                **{split: row.perplexity(split) for split in SPLITS},
                **{f"paper_{split}": row.published_perplexity(split) for split in SPLITS},
                **{f"{split}_sd": row.deviation(split) for split in SPLITS},
                **intervals,
                "gap_valid_percent": outcomes.gap(row.perplexity("valid"), row.published_perplexity("valid")),
                "gap_test_percent": outcomes.gap(row.perplexity("test"), row.published_perplexity("test")),
                "vocabulary_size": corpus["vocabulary_size"],
                "merged_percent": 100 * corpus["merged_share"]["test"],
                "tokens_valid": corpus["tokens"]["valid"],
                "tokens_test": corpus["tokens"]["test"],
                "test_seen": _mean(run.evaluation["seen"]["test"] for run in row.runs),
                "test_unseen": _mean(run.evaluation["unseen"]["test"] for run in row.runs),
                "departures": " ".join(departure.name for departure in departures_of(outcomes.study, settings)),
                "commit": row.commits,
            }
        )
    return records


def run_records(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One record per row and seed: `model`, `seed`, the perplexities, and the commit that scored it."""
    return [
        {
            "model": run.model,
            "seed": run.seed,
            **{split: run.perplexity(split) for split in SPLITS},
            "test_seen": run.evaluation["seen"]["test"],
            "test_unseen": run.evaluation["unseen"]["test"],
            "commit": run.commit,
        }
        for run in outcomes.runs()
    ]


def tabulate_runs(outcomes: Outcomes, stem: Path | str) -> None:
    """Write the perplexities of every single run: STEM.csv, .md, .tex and .html."""
    note = "Models that draw nothing have one run, with seed 0. " + vocabulary_note(outcomes)
    _write_one(stem, f"{outcomes.study['title']}: every run", RUN_COLUMNS, run_records(outcomes), note)


def vocabulary_note(outcomes: Outcomes) -> str:
    """The sentence that stands under every table of perplexities: vocabulary, merged share and tokens scored."""
    statistics = outcomes.statistics(outcomes.policy)
    tokens, merged, unseen = statistics["tokens"], statistics["merged_share"], statistics["unseen_share"]
    return (
        f"Perplexities over {tokens['train']:,} train, {tokens['valid']:,} validation and {tokens['test']:,} test "
        f"tokens, every token scored once. Vocabulary policy {outcomes.policy}: |V| = "
        f"{statistics['vocabulary_size']:,}, the merged symbol included; merged tokens: {100 * merged['train']:.1f} % "
        f"of train, {100 * merged['valid']:.1f} % of validation, {100 * merged['test']:.1f} % of test; words that "
        f"never occur in train: {100 * unseen['test']:.1f} % of test tokens."
    )


def corpus_notes(outcomes: Outcomes) -> list[str]:
    """What a table with published numbers must say where they are for another corpus; nothing where they are not."""
    corpus = outcomes.published_corpus
    if corpus is None or outcomes.comparable:
        return []
    return [
        f"The published numbers are for another corpus, the paper's {corpus['corpus']}, for which "
        f"{outcomes.study['name']} stands in: compare the order of the models, not the numbers. No gap is given."
    ]


def documents_notes(outcomes: Outcomes) -> list[str]:
    """How many documents of the corpus were read, kept and skipped; nothing for a source that has none to skip."""
    documents = outcomes.statistics(outcomes.policy).get("documents")
    if not documents:
        return []
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in documents["skipped"].items())
    return [f"Documents: {documents['read']:,} read, {documents['kept']:,} kept; skipped: {skipped or 'none'}."]


def _most_seeds(outcomes: Outcomes) -> int:
    """How many seeds the networks of a study have; 0 of a study without networks."""
    return max((len(row.runs) for row in outcomes.rows("network")), default=0)


def seeds_note(outcomes: Outcomes) -> str:
    """The sentence that says what one perplexity of a row is made of."""
    seeds = _most_seeds(outcomes)
    if seeds < 2:
        return "One run of each row: the spread between random starts is not measured."
    few = any(len(row.runs) == 1 for row in outcomes.rows("network"))
    return (
        f"Networks and their mixtures: the mean of the perplexities of {seeds} seeds, ± their standard deviation"
        f"{'; without ±: a single run' if few else ''}. Every run stands in the table of runs."
    )


def interval_note(outcomes: Outcomes) -> str:
    """The sentences that say what the intervals of a study are, and what they cover."""
    how, seeds = outcomes.uncertainty.content, _most_seeds(outcomes) > 1
    length = how["block_tokens"]["test"]
    note = (
        f"{100 * how['level']:g} % intervals: {how['draws']:,} draws of blocks of {length:,} tokens of test"
        f"{' and of the seeds of a row' if seeds else ''}. They cover another text of the same kind"
        f"{' and other random starts' if seeds else ''}, not {'' if seeds else 'another random start, '}another train, "
        "vocabulary or choice of settings."
    )
    if length < BLOCK_TOKENS:
        note += " The text is short, so the blocks are shorter than they should be, and the intervals too narrow."
    return note


def _listed(lines: Sequence[Published]) -> str:
    """Published lines in words, those that differ in the number of classes only taken together."""
    together: dict[str, list[int]] = {}
    for line in lines:
        name = line.name if line.name.startswith("MLP") else f"{line.name} n = {line.order}"
        together.setdefault(name, []).extend([] if line.classes is None else [line.classes])
    return "; ".join(
        f"{name} (c = {', '.join(map(str, classes))})" if classes else name for name, classes in together.items()
    )


def _short(numbers: Sequence[int]) -> str:
    """Numbers of departures, runs of three and more written as D3-D5."""
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and pieces[-1][-1] == number - 1:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    return " ".join(
        f"D{piece[0]}-D{piece[-1]}" if len(piece) > 2 else " ".join(f"D{number}" for number in piece)
        for piece in pieces
    )


def _used(columns: Sequence[Column], records: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns that have a value in some record: a study without published numbers shows none of theirs."""
    return [column for column in columns if any(column.text(record) for record in records)]


def tabulate_rows(outcomes: Outcomes, stem: Path | str) -> None:
    """Write the main table (Table 1 of the paper for Brown), a line per row: STEM.csv, .md, .tex and .html."""
    study = outcomes.study
    records = row_records(outcomes)
    numbers = {row["model"]: [departure.number for departure in departures_of(study, row)] for row in study["rows"]}
    common = set.intersection(*(set(each) for each in numbers.values()))
    shown = [
        {**record, "departures": _short([n for n in numbers[record["model"]] if n not in common])} for record in records
    ]
    columns = _used(ROW_COLUMNS, shown)
    notes = [
        "n: order, the predicted word included; c: number of word classes; h: hidden units; m: features per word; "
        "direct: connections from the features to the output; mix: mixed with another model, in the paper the "
        f"interpolated trigram. Departures from the paper are numbered in their own table; all rows: "
        f"{_short(sorted(common)) or 'none'}.",
        vocabulary_note(outcomes),
        seeds_note(outcomes),
        interval_note(outcomes),
    ]
    notes += corpus_notes(outcomes)
    if not_run := outcomes.not_run():
        notes.append(f"Published rows that this study does not run: {_listed(not_run)}.")
    table = Table(f"{study['title']}: perplexities", columns, shown, notes)
    write_table(stem, list(records[0]), records, [table])


def policy_records(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One record per vocabulary policy: its settings, the corpus statistics under it, and the n-gram perplexities.

    The record of the paper comes first where the study has a published table; `default` marks the study's policy. Per
    n-gram model there are `<model> valid`, `<model> test` and, in percent of the published ones, their gaps.
    """
    rows = [find_row(outcomes.study, model) for model in outcomes.study["policy_models"]]
    settings = ("count_on", "cut", "size", "lowercase", "marks", "split_clitics", "numbers", "proper_nouns")
    counts = ("stream_tokens", "stream_types", "vocabulary_size", "merged_types", "unseen_types")
    shares = (("merged", ("train", "valid", "test")), ("unseen", ("valid", "test")))
    records: list[dict[str, Any]] = []
    for policy in outcomes.study["policies"]:
        name = policy["policy"]
        statistics = outcomes.statistics(name)
        record: dict[str, Any] = {
            "policy": name,
            "default": _yes_no(name == outcomes.policy),
            **{key: _yes_no(policy[key]) if isinstance(policy[key], bool) else policy[key] for key in settings},
            **{key: statistics[key] for key in counts},
            **{f"{kind}_{s}_percent": 100 * statistics[f"{kind}_share"][s] for kind, splits in shares for s in splits},
        }
        for row in rows:
            evaluation = outcomes.evaluation(name, row["model"], row["seeds"][0])
            line = outcomes.published_line(row)
            for split in ("valid", "test"):
                ours = evaluation["perplexity"][split]
                published = None if line is None else line.perplexity[split]
                record[f"{row['model']} {split}"] = ours
                record[f"{row['model']} gap_{split}_percent"] = outcomes.gap(ours, published)
        record.update({key: statistics[key] for key in ("source", "licence", "checksum")})
        records.append(record)
    if corpus := outcomes.published_corpus:
        paper: dict[str, Any] = dict.fromkeys(records[0])
        paper["policy"] = f"paper ({corpus['corpus']})"
        paper.update({key: corpus[key] for key in counts[:3]})
        for row in rows:
            if line := outcomes.published_line(row):
                paper.update({f"{row['model']} {split}": line.perplexity[split] for split in ("valid", "test")})
        records.insert(0, paper)
    return records


def _any_yes(records: Sequence[dict[str, Any]], key: str) -> bool:
    return any(record[key] == "yes" for record in records)


def tabulate_policies(outcomes: Outcomes, stem: Path | str) -> None:
    """Write the comparison of vocabulary policies: STEM.csv, .md, .tex and .html."""
    records = policy_records(outcomes)
    names = [Column("policy", "policy"), Column("default", "default")]
    statistics = [
        Column("count_on", "counted on"),
        Column("cut", "cut by"),
        Column("size", "cut at", digits=0),
        Column("lowercase", "lower case"),
        Column("marks", "marks"),
        Column("split_clitics", "clitics split"),
        *(Column(key, key.replace("_", " ")) for key in ("numbers", "proper_nouns") if _any_yes(records, key)),
        Column("stream_tokens", "tokens", digits=0),
        Column("stream_types", "types", digits=0),
        Column("vocabulary_size", "|V|", digits=0),
        *(Column(f"merged_{split}_percent", f"merged {split} %", digits=1) for split in SPLITS),
        Column("unseen_types", "types not in train", digits=0),
        Column("unseen_test_percent", "their share of test %", digits=1),
    ]
    sizes = [Column("vocabulary_size", "|V|", digits=0), Column("merged_test_percent", "merged test %", digits=1)]
    models = outcomes.study["policy_models"]
    perplexities = [
        column
        for model in models
        for split in ("valid", "test")
        for column in (
            Column(f"{model} {split}", f"{model} {split}", digits=1),
            Column(f"{model} gap_{split}_percent", "gap %", digits=1, signed=True),
        )
    ]
    title = outcomes.study["title"]
    licence = records[-1]["licence"].rstrip(".")
    notes = [
        "cut by frequency: words seen more often than this are kept; by rank: |V|, the merged symbol included.",
        f"Licence of the text: {licence}. SHA-256 of what was read: {records[-1]['checksum']}.",
        *documents_notes(outcomes),
        *corpus_notes(outcomes),
    ]
    tables = [
        Table(f"{title}: the corpus under each policy", _used(names + statistics, records), records, notes),
        Table(
            f"{title}: n-gram perplexities under each policy",
            _used(names + sizes + perplexities, records),
            records,
            ["Perplexities over different vocabularies are not comparable: what |V| merges is easier to predict."],
        ),
    ]
    write_table(stem, list(records[0]), records, tables)


def _write_one(
    stem: Path | str, title: str, columns: Sequence[Column], records: Sequence[dict[str, Any]], note: str
) -> None:
    """Write a table whose readers see the same columns as its CSV file has."""
    write_table(stem, [column.key for column in columns], records, [Table(title, columns, records, [note])])


def tabulate_targets(outcomes: Outcomes, stem: Path | str) -> None:
    """Write what the study set out to reach and whether it did: STEM.csv, .md, .tex and .html."""
    records = target_records(outcomes)
    met = sum(record["met"] == "yes" for record in records)
    note = (
        f"{met} of {len(records)} targets met. The thresholds were fixed before the runs. Those of networks are for "
        "the preset modern, that of class-based n-grams for the best one; every row stands beside its published one in "
        "the main table."
    )
    _write_one(stem, f"{outcomes.study['title']}: targets", TARGET_COLUMNS, records, note)


def departure_records(study: dict[str, Any]) -> list[dict[str, Any]]:
    """One record per departure that some row of the study makes, with the rows it applies to.

    A mixture has those of its parts, so it is not named.
    """
    single = [row for row in study["rows"] if row["kind"] != "mixture"]
    everywhere = {
        "all rows": [row["model"] for row in single],
        "all networks": [row["model"] for row in single if row["kind"] == "network"],
    }
    records = []
    for departure in DEPARTURES:
        models = [row["model"] for row in single if departure.applies(study, row)]
        if models:
            names = next((name for name, those in everywhere.items() if those == models), " ".join(models))
            records.append(
                {
                    "departure": departure.name,
                    "kind": departure.kind,
                    "title": departure.title,
                    "explanation": departure.explanation,
                    "rows": names,
                }
            )
    return records


def tabulate_departures(outcomes: Outcomes, stem: Path | str) -> None:
    """Write the numbered departures from the paper: STEM.csv, .md, .tex and .html. Needs no result."""
    records = departure_records(outcomes.study)
    note = "different: the paper does something else; open: the paper does not say. A mixture has those of its parts."
    _write_one(stem, f"{outcomes.study['title']}: departures from the paper", DEPARTURE_COLUMNS, records, note)


def tabulate_neighbours(outcomes: Outcomes, stem: Path | str) -> None:
    """Write the nearest neighbours of a dozen words in the feature space: STEM.csv, .md, .tex and .html."""
    run, records = neighbour_records(outcomes)
    if run is None:
        note = "This study trains no network: there are no word features."
    else:
        note = (
            f"Features C of {run.model}, seed {run.seed}: the network that is best on validation. Cosine between "
            f"features taken from their mean; neighbours occur at least {ENOUGH} times in train."
        )
    _write_one(stem, f"{outcomes.study['title']}: nearest neighbours of words", NEIGHBOUR_COLUMNS, records, note)


def tabulate_compare(outcomes: Outcomes, stem: Path | str) -> None:
    """Write every network, mixture and class-based row against the best n-gram: STEM.csv, .md, .tex and .html."""
    records = compare_records(outcomes)
    note = (
        "Change: how far the test perplexity lies above (+) or below (−) the other one. The best n-gram and the better "
        "part of a mixture are chosen on validation. p: two-sided, of no difference; Holm: corrected for all lines of "
        f"this table. {interval_note(outcomes)}"
    )
    _write_one(stem, f"{outcomes.study['title']}: models compared", COMPARE_COLUMNS, records, note)


CLAIMS_NOTE = (
    "Change: how far the first test perplexity lies above (+) or below (−) the second; choices are made on validation. "
    "The verdict follows from the 95 % interval: a claim that something is lower or higher holds where the whole "
    f"interval lies on that side of 0; a claim of no gain holds where no gain of {MARGIN:g} % or more lies in it. p: "
    "two-sided, of no difference."
)


def tabulate_claims(outcomes: Outcomes, stem: Path | str) -> None:
    """Write the claims of the paper and what became of them: STEM.csv, .md, .tex and .html."""
    records = claim_records(outcomes)
    title = f"{outcomes.study['title']}: the claims of the paper"
    _write_one(stem, title, CLAIM_COLUMNS, records, f"{CLAIMS_NOTE} {interval_note(outcomes)}")


def merge_claims(folder: Path | str) -> None:
    """Put the claims of the studies in `folder` (NAME/tables/claims.csv) together in claims.csv, .md, .tex, .html."""
    files = sorted(Path(folder).glob("*/tables/claims.csv"))
    claims = pd.concat(pd.read_csv(file, dtype={"claim": str}) for file in files)
    claims = claims.sort_values("claim", kind="stable")  # within a claim, study by study
    records = claims.astype(object).where(claims.notna(), None).to_dict("records")
    note = f"{CLAIMS_NOTE} What the intervals cover is said in the table of each study."
    _write_one(Path(folder) / "claims", "The claims of the paper, on every corpus", CLAIM_COLUMNS, records, note)


def tabulate_extended(outcomes: Outcomes, stem: Path | str) -> None:
    """Write every row of the main and of the extended table, in order of years: STEM.csv, .md, .tex and .html."""
    note = (
        "Year: in which the method was a language model first, as far as we know (docs/beyond.md); of a mixture, that "
        "of its newest part. A mixture of several networks has no n, h, m and preset of its own. Parameters and "
        "seconds of a mixture are those of its parts together; "
        "parameters of an n-gram model are the n-grams it keeps. Seconds: of training on the machine of the run, "
        "scoring apart. best: the single model, and the mixture, with the lowest validation perplexity. Test was not "
        "used to choose anything. commit: of the code that scored; + where it had changes that were not committed. "
        + vocabulary_note(outcomes)
    )
    title = f"{outcomes.study['title']}: before and after the paper"
    _write_one(stem, title, EXTENDED_COLUMNS, extended_records(outcomes), note)


def oov_records(outcomes: Outcomes) -> list[dict[str, Any]]:
    """One record per row of a network with features for words outside V, split and group of tokens: the means of the
    perplexities of its seeds."""
    records = []
    for row in [*outcomes.rows(OUT_OF_VOCABULARY), *outcomes.extended_rows(OUT_OF_VOCABULARY)]:
        found = [read_object(run.folder / "out_of_vocabulary.json", OOV)["records"] for run in row.runs]
        for each in zip(*found, strict=True):
            ways = {way: statistics.fmean(one["perplexity"][way] for one in each) for way in each[0]["perplexity"]}
            records.append({"model": row.model, **{key: each[0][key] for key in ("split", "group", "tokens")}, **ways})
    return records


def tabulate_oov(outcomes: Outcomes, stem: Path | str) -> None:
    """Write what features for words outside the vocabulary are worth: STEM.csv, .md, .tex and .html."""
    note = (
        "Perplexities over V with C(merged) or with C(j) in the contexts; then of an open vocabulary, in which every "
        "word outside V that was met before is a word of its own and all new ones are one event: by the probability of "
        "the merged symbol times a choice among its words that is uniform or by counts, by the softmax over the larger "
        "vocabulary, or by it within the probability of the merged symbol (nplm2003/neural/out_of_vocabulary.py). The "
        "last four are comparable with each other, and not with the first two. Next n - 1: tokens with a word outside "
        "V among the n - 1 in front of them. A perplexity of a few tokens says little. " + vocabulary_note(outcomes)
    )
    title = f"{outcomes.study['title']}: words outside the vocabulary"
    _write_one(stem, title, OOV_COLUMNS, oov_records(outcomes), note)


def tabulate_sweeps(outcomes: Outcomes, stem: Path | str) -> None:
    """Write every point of every sweep: STEM.csv, .md, .tex and .html."""
    note = (
        "Each point is one run, at the first seed of its model: the spread between random starts is not in it. A share "
        "of the training tokens are the last ones; vocabulary, validation and test stay. Perplexities under different "
        "policies cannot be compared with each other."
    )
    _write_one(stem, f"{outcomes.study['title']}: sweeps", SWEEP_COLUMNS, sweep_records(outcomes), note)


def tabulate_ways(outcomes: Outcomes, stem: Path | str) -> None:
    """Write seconds and perplexity of the ways to train one network: STEM.csv, .md, .tex and .html."""
    reference, records = way_records(outcomes)
    if reference is None:
        note = "This study trains no network whose word features are learnt."
    else:
        note = (
            "The network that the study trains in the most ways. Training: seconds on the machine of the run, "
            "validation between the epochs included, scoring apart. To x %: until validation, as looked at after each "
            f"epoch, comes within x % of the lowest that {reference.model} reaches there; empty where a seed does not. "
            "What is looked at is every valid_every-th token, by the products that the preset names, so that it "
            "differs a little from valid.; between two epochs log perplexity is taken to fall evenly. "
            f"Valid. % and test %: against {reference.model}. Means over the seeds. " + vocabulary_note(outcomes)
        )
    title = f"{outcomes.study['title']}: ways to train one network"
    _write_one(stem, title, WAY_COLUMNS, records, note)


TABLES = {
    "rows": tabulate_rows,
    "runs": tabulate_runs,
    "compare": tabulate_compare,
    "claims": tabulate_claims,
    "policies": tabulate_policies,
    "targets": tabulate_targets,
    "departures": tabulate_departures,
    "neighbours": tabulate_neighbours,
    "extended": tabulate_extended,
    "oov": tabulate_oov,
    "sweeps": tabulate_sweeps,
    "ways": tabulate_ways,
}


def timing_records(folder: Path | str) -> list[dict[str, Any]]:
    """One record per job: `rule`, `wildcards`, `seconds` (wall clock), `cpu_seconds` and `max_rss_mb`.

    `folder` holds Snakemake's benchmark files as RULE/WILDCARDS.tsv. Jobs too short to be sampled have no memory,
    and no or too little CPU time.
    """
    jobs = []
    for path in sorted(Path(folder).glob("*/*.tsv")):
        jobs.append(read_benchmark(path).assign(rule=path.parent.name, wildcards=path.stem))
    if not jobs:
        raise UserError(f"{folder} holds no benchmark files RULE/WILDCARDS.tsv: run the workflow first")
    return pd.concat(jobs).rename(columns=TIMING_COLUMNS).to_dict("records")


def tabulate_timings(folder: Path | str, output: Path | str) -> None:
    """Write the time and memory of every job to one CSV file."""
    write_text(output, to_csv(TIMING_FIELDS, timing_records(folder)))
