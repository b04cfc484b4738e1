"""Sub-commands that read scores and evaluations: evaluate, bootstrap, tables, figures and the paper."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nplm2003.commands.arguments import add_command, add_results, add_study, add_tokens
from nplm2003.errors import UserError
from nplm2003.figures import FIGURES
from nplm2003.files import name_infinities, write_json
from nplm2003.study import table_file

FOUR_FORMATS = "Writes four files: STEM.csv with every digit, and STEM.md, STEM.tex and STEM.html, rounded, with notes."


def _add_stem(parser: argparse.ArgumentParser, formats: str) -> None:
    parser.add_argument("--output", type=Path, required=True, metavar="STEM", help=f"output path without {formats}")


def _add_table(subparsers: Any, table: str, summary: str, description: str, *, results: bool = True) -> None:
    """Declare the sub-command that writes one table of a study, a key of `nplm2003.tables.TABLES`."""
    folder = " --results results/brown" if results else ""
    stem = table_file({"table": "table1"}, table)
    parser = add_command(
        subparsers,
        f"tabulate-{table}",
        _tabulate,
        summary,
        f"{description} {FOUR_FORMATS}",
        f"nplm2003 tabulate-{table} --study results/brown/study.json{folder} \\\n"
        f"      --output results/brown/tables/{stem}",
    )
    parser.set_defaults(table=table, results=Path())
    add_study(parser)
    if results:
        add_results(parser)
    _add_stem(parser, "its four suffixes")


def register(subparsers: Any) -> None:
    """Add `evaluate`, `bootstrap`, the `tabulate-...` commands, `plot` and `write-paper`."""
    parser = add_command(
        subparsers,
        "evaluate",
        _evaluate,
        "perplexities of one model from its scores",
        "Compute the perplexity of train, valid and test from a folder of scores, and break it down by how often the "
        "word occurs in train. Writes one JSON file that all tables and most figures read.",
        "nplm2003 evaluate --tokens results/brown/top16383/tokens \\\n"
        "      --scores results/brown/top16383/MLP9/seed1/scores \\\n"
        "      --output results/brown/top16383/MLP9/seed1/evaluation.json",
    )
    parser.add_argument("--scores", type=Path, required=True, metavar="FOLDER", help="scores of one model and seed")
    add_tokens(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the evaluation (JSON)")

    parser = add_command(
        subparsers,
        "bootstrap",
        _bootstrap,
        "confidence intervals of all rows, and of the differences between them",
        "Draw blocks of consecutive tokens and seeds, thousands of times, from the score files of all rows of a study: "
        "95 % intervals of every validation and test perplexity, and paired intervals and p values of every ratio of "
        "two test perplexities. Writes one JSON file that tables and figures look for in the policy's folder.",
        "nplm2003 bootstrap --study results/brown/study.json --results results/brown \\\n"
        "      --output results/brown/top16383/uncertainty.json",
    )
    add_study(parser)
    add_results(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the intervals (JSON)")

    _add_table(
        subparsers,
        "rows",
        "the main table: every row beside the paper's",
        "Tabulate every row of a study: its settings, the perplexities of train, valid and test (mean and standard "
        "deviation over the seeds, with 95 % intervals), the published ones, the gap in percent, vocabulary, merged "
        "share, tokens scored, departures from the paper and the commit. Needs what `bootstrap` writes.",
    )
    _add_table(
        subparsers,
        "runs",
        "the perplexities of every single run",
        "Tabulate the perplexities of every row and seed of a study: what the main table gives the mean of.",
    )
    _add_table(
        subparsers,
        "compare",
        "every model against the best n-gram, every mixture against its better part",
        "Tabulate how far the test perplexity of each network, mixture and class-based n-gram lies above or below that "
        "of the best n-gram, and that of each mixture from its better part, with interval and p value. Needs what "
        "`bootstrap` writes.",
    )
    _add_table(
        subparsers,
        "claims",
        "the claims of the paper, and what became of them",
        "Tabulate the claims of the paper's section 4.2: how each is tested, the published effect, ours with its "
        "interval and p value, and the verdict that follows. Needs what `bootstrap` writes.",
    )
    _add_table(
        subparsers,
        "policies",
        "corpus statistics and n-gram rows under every vocabulary policy",
        "Tabulate what each vocabulary policy makes of the corpus, and the n-gram perplexities under it, beside the "
        "paper's numbers.",
    )
    _add_table(
        subparsers,
        "targets",
        "what the study set out to reach, and whether it did",
        "Tabulate each target of the study with its threshold, what was measured, and whether it was met.",
    )
    _add_table(
        subparsers,
        "departures",
        "the numbered departures from the paper",
        "Tabulate where the rows of a study differ from the paper, and where the paper leaves the choice open. The "
        "main table refers to the numbers. Reads the configuration only: no result is needed.",
        results=False,
    )
    _add_table(
        subparsers,
        "extended",
        "what came before and after the paper, in order of years",
        "Tabulate every row of the main table and of the extended one: year, architecture, parameters, seconds of "
        "training, seeds and perplexities, the best single model and the best mixture marked.",
    )
    _add_table(
        subparsers,
        "ways",
        "seconds and perplexity of the ways to train one network",
        "Tabulate, for the network that the study trains in the most ways (presets, output layers), how long each way "
        "takes, how soon it comes near the perplexity of the exact softmax, and where it ends.",
    )
    _add_table(
        subparsers,
        "oov",
        "what features for words outside the vocabulary are worth",
        "Tabulate, for each network that gives features to words outside the vocabulary, the perplexities of the "
        "tokens that follow such words, with and without the features, and of the words themselves, told apart.",
    )
    _add_table(
        subparsers,
        "neighbours",
        "nearest neighbours of a dozen words in the feature space",
        "Tabulate the nearest neighbours (cosine) of a dozen words in the features C of the network that is best on "
        "validation. Words that the vocabulary lacks are named as missing, and frequent words added in their place.",
    )

    _add_table(
        subparsers,
        "sweeps",
        "every point of every sweep",
        "Tabulate every point of the sweeps: perplexity against the order, the hidden units, the features, the number "
        "of training tokens and the vocabulary policy, with parameters and training time.",
    )

    parser = add_command(
        subparsers,
        "tabulate-timings",
        _tabulate_timings,
        "time and memory of every job",
        "Collect Snakemake's benchmark files (FOLDER/RULE/WILDCARDS.tsv) into one CSV file with the columns rule, "
        "wildcards, seconds, cpu_seconds and max_rss_mb, one line per job.",
        "nplm2003 tabulate-timings --benchmarks results/brown/benchmarks --output results/brown/tables/timings.csv",
    )
    parser.add_argument("--benchmarks", type=Path, required=True, metavar="FOLDER", help="folder of benchmark files")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the table (CSV)")

    parser = add_command(
        subparsers,
        "plot",
        _plot,
        "draw one figure",
        "Draw one figure of a study as STEM.png (200 dpi) and STEM.svg; the same results give the same bytes. Figures: "
        + ", ".join(FIGURES)
        + ".",
        "nplm2003 plot learning-curves --study results/brown/study.json --results results/brown \\\n"
        "      --output results/brown/figures/learning-curves",
    )
    parser.add_argument("figure", choices=FIGURES, metavar="FIGURE", help="which figure")
    add_study(parser)
    add_results(parser)
    _add_stem(parser, ".png and .svg")

    parser = add_command(
        subparsers,
        "write-paper",
        _write_paper,
        "the write-up as PDF",
        "Typeset the write-up of a study as PDF. Every number in it is read from study.json, tables/*.csv and "
        "figures/*.svg in the folder of the results, so these must be there.",
        "nplm2003 write-paper --results results/brown --output results/brown/paper.pdf",
    )
    parser.add_argument("--results", type=Path, required=True, metavar="FOLDER", help="results/CORPUS")
    parser.add_argument(
        "--source", type=Path, default=Path("paper/main.typ"), metavar="FILE", help="the text (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the PDF")

    parser = add_command(
        subparsers,
        "verify",
        _verify,
        "whether committed results still follow from what they were made of",
        "Make the tables of a folder of committed results again from the evaluations in it, with the code that is here "
        "now; with --results also measure every evaluation, and the intervals, again from the score files. Prints a "
        "line for each file; the exit status is 1 where one does not follow.",
        "nplm2003 verify --reference results/reference/brown --results results/brown",
    )
    parser.add_argument(
        "--reference", type=Path, required=True, metavar="FOLDER", help="the committed results of one study"
    )
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="results/CORPUS, with the score files")


def _evaluate(options: argparse.Namespace) -> None:
    from nplm2003.evaluation import evaluate
    from nplm2003.scoring import SPLITS, Scores
    from nplm2003.vocabulary import TokenStore

    scores, store = Scores(options.scores), TokenStore(options.tokens)
    if scores.vocabulary != store.fingerprint:
        raise UserError(
            f"{scores.folder} was scored on other tokens than {store.folder} holds: score {scores.model} again"
        )
    evaluation = evaluate(scores, {split: store[split] for split in SPLITS}, store.train_counts)
    write_json(options.output, name_infinities(evaluation))


def _bootstrap(options: argparse.Namespace) -> None:
    from nplm2003.outcomes import Outcomes
    from nplm2003.provenance import provenance

    outcomes = Outcomes(options.study, options.results)
    made = provenance({"study": outcomes.study["name"]})
    write_json(options.output, name_infinities({**outcomes.measure_uncertainty(), "provenance": made}))


def _tabulate(options: argparse.Namespace) -> None:
    from nplm2003.outcomes import Outcomes
    from nplm2003.tables import TABLES

    TABLES[options.table](Outcomes(options.study, options.results), options.output)


def _tabulate_timings(options: argparse.Namespace) -> None:
    from nplm2003.tables import tabulate_timings

    tabulate_timings(options.benchmarks, options.output)


def _plot(options: argparse.Namespace) -> None:
    from nplm2003.figures import plot
    from nplm2003.outcomes import Outcomes

    plot(options.figure, Outcomes(options.study, options.results), options.output)


def _write_paper(options: argparse.Namespace) -> None:
    from nplm2003.paper import write_paper

    write_paper(options.results, options.source, options.output)


def _verify(options: argparse.Namespace) -> None:
    from nplm2003.verify import verify_scores, verify_tables

    findings = list(verify_tables(options.reference))
    if options.results is not None:
        findings += verify_scores(options.reference, options.results)
    for name, wrong in findings:
        print(f"{name}: {'follows' if wrong is None else wrong}")
    if differing := [name for name, wrong in findings if wrong is not None]:
        raise UserError(
            f"{len(differing)} of {len(findings)} files of {options.reference} do not follow any more: make them again "
            "with `snakemake --cores all reference`, or find out what changed"
        )
    print(f"all {len(findings)} files of {options.reference} follow")
