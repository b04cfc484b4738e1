"""The workflow as a user meets it: a tiny study from raw text to report, in a folder with a space in its path."""

from __future__ import annotations

import csv
import html
import json
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil  # Snakemake brings it
import pytest
from tiny_study import TABLES, Clone, make_clone, place_lmplz, planned_jobs

RESULTS = Path("results/tiny")
HALF = "rank30-train-1-2"
ROWS = [
    ("MLP1", "no"),
    ("MLP2", "yes"),
    ("MLP1-kn5-binned", "yes"),
    ("MLP7", "no"),
    ("MLP9-paper", "no"),
    ("MLP9-svd", "no"),
    ("MLP9-tree", "no"),
    ("interpolated-trigram", "no"),
    ("kneser-ney-3", "no"),
    ("kneser-ney-5", "no"),
    ("classes-6-3", "no"),
    ("classes-6-4", "no"),
    ("maximum-likelihood-3", "no"),
    ("kn5-classes-learnt", "yes"),
    ("ml3-kn5-learnt", "yes"),
]
FIGURES = (
    "claims",
    "rows-against-paper",
    "learning-curves",
    "training-time",
    "order",
    "classes",
    "mixture-weight",
    "word-frequency",
    "word-features",
    "policies",
    "extended",
    "smoothing",
    # Of the sweeps over hidden units and features the tiny study has no point.
    "sweep-order",
    "sweep-train",
    "sweep-policy",
)
TABLE_NAMES = (
    *("main", "runs", "compare", "claims", "policies", "targets", "departures", "neighbours", "extended", "sweeps"),
    "ways",
)
EXTENDED = 4  # rows of the extended table alone, one of them with two seeds
SWEPT = 5  # models under the study's policy that are in the sweeps only


@pytest.fixture(scope="session")
def text(invented_text: Callable[..., str]) -> str:
    """About 2,300 tokens."""
    return invented_text(320)


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory, text: str) -> Clone:
    """A copy of the repository in which nothing has run."""
    return make_clone(tmp_path_factory.mktemp("pipeline") / "a fresh clone", text)


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, text: str) -> Clone:
    """A copy of the repository in which the tiny study has run to its end."""
    made = make_clone(tmp_path_factory.mktemp("pipeline") / "the tiny study", text)
    place_lmplz(made)
    said = made.tiny("all", "--verbose")
    (made.folder / "said.txt").write_text(said, encoding="utf-8")
    return made


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_target_is_made(study: Clone) -> None:
    results = study.folder / RESULTS
    expected = [f"tables/{name}.{suffix}" for name in TABLE_NAMES for suffix in ("csv", "md", "tex", "html")]
    expected += [f"figures/{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")]
    expected += ["tables/timings.csv", "study.json", "paper.pdf", "report.html"]
    assert [name for name in expected if not (results / name).is_file() or not (results / name).stat().st_size] == []
    assert (results / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert (results / "figures" / "order.png").read_bytes().startswith(b"\x89PNG")
    # Nothing half-written stays behind.
    assert [path.name for path in results.rglob(".*")] == []


def test_snakemake_looks_for_jobs_only_when_one_has_ended(study: Clone) -> None:
    said = (study.folder / "said.txt").read_text(encoding="utf-8")
    ended = len(re.findall(r"^Finished jobid", said, re.MULTILINE))
    assert ended > 100
    assert said.count("Resources before job selection") <= ended + 5


def test_a_second_run_has_nothing_to_do(study: Clone) -> None:
    output = study.tiny("--dry-run", "all")
    assert planned_jobs(output) == {}
    assert "Nothing to be done" in output


def test_the_main_table_has_every_row_and_the_columns_in_order(study: Clone) -> None:
    rows = read_table(study.folder / RESULTS / "tables" / "main.csv")
    assert ",".join(list(rows[0])[:16]) == (
        "model,order,classes,hidden,features,direct,mix,preset,seed,vocabulary policy,"
        "train,valid,test,paper_train,paper_valid,paper_test"
    )
    assert [(row["model"], row["mix"]) for row in rows] == ROWS
    perplexities = {row["model"]: [float(row[split]) for split in ("train", "valid", "test")] for row in rows}
    # Relative frequencies have no probability for what train lacks; mixed with others they are like any model.
    assert perplexities.pop("maximum-likelihood-3")[1:] == [math.inf, math.inf]
    assert all(1 < perplexity <= 60 for each in perplexities.values() for perplexity in each)
    published = {row["model"]: (row["paper_train"], row["paper_valid"], row["paper_test"]) for row in rows}
    assert [float(value) for value in published["kneser-ney-3"][1:]] == [334, 323]
    assert published["MLP7"] == ("", "", "")  # names no published row
    # Networks and their mixtures stand at the mean of their seeds.
    runs = read_table(study.folder / RESULTS / "tables" / "runs.csv")
    for row in rows:
        mine = [run for run in runs if run["model"] == row["model"]]
        tests = [float(run["test"]) for run in mine]
        assert row["seed"] == " ".join(run["seed"] for run in mine) in ("0", "1", "1 2")
        assert float(row["test"]) == pytest.approx(sum(tests) / len(tests), rel=1e-6)
        assert (row["test_sd"] == "") == (len(tests) == 1)
        low, measured, high = (float(row[key]) for key in ("test_low", "test", "test_high"))
        assert low < measured < high or row["model"] == "maximum-likelihood-3"


def test_the_extended_table_has_the_other_architectures_too(study: Clone) -> None:
    rows = {row["model"]: row for row in read_table(study.folder / RESULTS / "tables" / "extended.csv")}
    assert len(rows) == len(ROWS) + EXTENDED
    assert (rows["lstm-net"]["architecture"], rows["lstm-net"]["options"]) == ("lstm", "rate=0.01")
    assert rows["lstm-mixed"]["components"] == "lstm-net MLP1 kneser-ney-5"
    assert [row["best"] for row in rows.values() if row["best"]] == ["single", "mixture"]
    for model in ("lstm-net", "log-bilinear-net", "lstm-mixed", "kneser-ney-5"):
        assert int(rows[model]["parameters"]) > 0 and float(rows[model]["seconds"]) >= 0
        assert 1 < float(rows[model]["test"]) <= 60


def test_the_claims_are_tested_or_say_what_is_missing(study: Clone) -> None:
    claims = {claim["claim"]: claim for claim in read_table(study.folder / RESULTS / "tables" / "claims.csv")}
    assert claims["1"]["comparison"].startswith("MLP2 against ") and claims["1"]["verdict"] != "not tested"
    assert claims["7"]["comparison"] == "MLP9-svd against MLP9-paper" and claims["7"]["verdict"] != "not tested"
    assert claims["6"]["comparison"].startswith("classes-6-") and claims["6"]["verdict"] != "not tested"
    assert claims["3a"]["verdict"] == "not tested" and "hidden units" in claims["3a"]["comparison"]


def test_all_models_score_the_same_tokens(study: Clone) -> None:
    statistics = json.loads((study.folder / RESULTS / "rank30" / "tokens" / "corpus.json").read_text())
    evaluations = [
        json.loads(path.read_text()) for path in (study.folder / RESULTS / "rank30").rglob("evaluation.json")
    ]
    # Two networks and two mixtures have a second seed.
    assert len(evaluations) == len(ROWS) + 4 + EXTENDED + 1 + SWEPT
    for evaluation in evaluations:
        assert evaluation["tokens"] == statistics["tokens"]
        assert evaluation["vocabulary"] == statistics["fingerprint"]


def test_a_sweep_over_train_has_the_same_words_and_held_out_tokens(study: Clone) -> None:
    results = study.folder / RESULTS
    whole, half = (json.loads((results / name / "tokens/corpus.json").read_text()) for name in ("rank30", HALF))
    assert half["tokens"] == {**whole["tokens"], "train": whole["tokens"]["train"] // 2}
    assert half["vocabulary_size"] == whole["vocabulary_size"]
    sweeps = read_table(results / "tables" / "sweeps.csv")
    points = {(row["sweep"], row["model"], row["policy"]): row for row in sweeps}
    assert len(points) == len(sweeps) == 13
    assert points["train", "MLP7", HALF]["x"] == str(half["tokens"]["train"])
    assert points["order", "short", "rank30"]["x"] == "4"
    # The point of all tokens is the first seed's run.
    runs = {(row["model"], row["seed"]): row for row in read_table(results / "tables" / "runs.csv")}
    assert points["train", "MLP7", "rank30"]["test"] == runs["MLP7", "1"]["test"]


def test_features_that_are_not_learnt_stay_as_they_were_counted(study: Clone) -> None:
    training = json.loads((study.folder / RESULTS / "rank30" / "MLP9-svd" / "seed1" / "training.json").read_text())
    assert training["word_features"] == "svd"
    assert training["parameters"] - training["trained_parameters"] == 30 * 3
    with study.changed("src/nplm2003/neural/cooccurrence.py", "\n", "\n\n"):
        assert study.planned("all")["train_network"] == 1


def test_a_study_without_sweeps_runs_none(clone: Clone) -> None:
    with clone.changed("config/tiny/study.yaml", "sweeps: config/tiny/sweeps.tsv", "sweeps: null"):
        planned = clone.planned("all")
    assert planned["train_network"] == 9
    assert not [rule for rule in planned if "sweep" in rule or "cut" in rule]


def test_the_timings_name_every_job_that_computes(study: Clone) -> None:
    timings = read_table(study.folder / RESULTS / "tables" / "timings.csv")
    assert list(timings[0]) == ["rule", "wildcards", "seconds", "cpu_seconds", "max_rss_mb"]
    jobs = {(row["rule"], row["wildcards"]) for row in timings}
    assert {("train_network", "rank30,MLP1,1"), ("score_kneser_ney", "freq2-train,kneser-ney-3")} <= jobs
    counted = ("build_tokens", "train_network", "mix_scores", "learn_classes", "score_class_based", "score_smoothed")
    assert {rule: sum(job[0] == rule for job in jobs) for rule in counted} == {
        "build_tokens": 2,
        "train_network": 11,
        "mix_scores": 7,
        "learn_classes": 1,  # shared by the rows that differ in the order alone
        "score_class_based": 2,
        "score_smoothed": 4,
    }
    assert all(float(row["seconds"]) >= 0 for row in timings)


def test_the_report_holds_every_table_and_figure_with_its_caption(study: Clone) -> None:
    page = html.unescape((study.folder / RESULTS / "report.html").read_text(encoding="utf-8"))
    names = [f"tables/{name}.html" for name in TABLE_NAMES] + [f"figures/{name}.png" for name in FIGURES]
    for name in [*names, "tables/timings.csv", "paper.pdf"]:
        assert f"{RESULTS / name}" in page, name
    for words in ("The main table: every row of the study", "Perplexity against the order", "A tiny study"):
        assert words in page, words


def test_the_report_can_be_asked_of_snakemake_by_hand(study: Clone) -> None:
    study.tiny("tables", "--report", "my report.html")
    assert "The main table: every row of the study" in (study.folder / "my report.html").read_text(encoding="utf-8")


def test_the_reference_results_are_small_and_hold_no_text_of_the_corpus(study: Clone) -> None:
    study.tiny("reference")
    reference = study.folder / "results" / "reference" / "tiny"
    files = {path.relative_to(reference).as_posix() for path in reference.rglob("*") if path.is_file()}
    assert {"main.csv", "timings.csv", "study.json", "tables/main.md", "figures/order.svg", "paper.pdf"} <= files
    assert {
        "rank30/tokens/corpus.json",
        "rank30/MLP1/seed1/evaluation.json",
        "rank30/MLP1/seed1/learning_curve.csv",
        "rank30/MLP1/seed1/training.json",
        "rank30/MLP1/seed1/scores/scores.json",
        "rank30/MLP2/seed1/weights.json",
        "rank30/uncertainty.json",
        "rank30/classes/6/classes.json",
        "freq2-train/kneser-ney-3/seed0/evaluation.json",
    } <= files
    assert {Path(name).suffix for name in files} <= {
        ".json",
        ".csv",
        ".tsv",
        ".md",
        ".tex",
        ".html",
        ".png",
        ".svg",
        ".pdf",
    }
    assert (reference / "main.csv").read_bytes() == (study.folder / RESULTS / "tables" / "main.csv").read_bytes()
    # The claims of all studies that were copied stand beside them: here, of one.
    assert (reference.parent / "claims.csv").read_bytes() == (reference / "tables" / "claims.csv").read_bytes()
    texts = [
        path.read_text(encoding="utf-8") for path in reference.rglob("*") if path.suffix in (".json", ".csv", ".tsv")
    ]
    assert [text for text in texts if str(study.folder) in text] == []


def test_a_change_of_style_draws_again_and_trains_nothing(study: Clone) -> None:
    with study.changed("src/nplm2003/figures/style.py", "\n", "\n\n"):
        drawn = {f"plot_{figure}" for figure in FIGURES}
        assert set(study.planned("all")) == drawn | {"write_paper", "write_report"}
    with study.changed("src/nplm2003/figures/training.py", "\n", "\n\n"):
        assert study.planned("figures") == {"plot_learning-curves": 1, "plot_training-time": 1}
    assert study.planned("all") == {}


def test_a_change_of_the_trigram_code_keeps_the_networks(study: Clone) -> None:
    with study.changed("src/nplm2003/ngram/interpolated.py", "\n", "\n\n"):
        planned = study.planned("all")
    assert planned["estimate_interpolated"] == 3
    assert not {"train_network", "score_network", "estimate_kneser_ney"} & set(planned)


def test_a_new_row_trains_the_new_network_only(study: Clone) -> None:
    last = TABLES["networks"].splitlines()[-1]
    wide = "wide\t\tmlp\t3\t9\t3\tyes\t\tlearnt\twords\t\tmodern\t\tyes"
    with study.changed("config/tiny/networks.tsv", last, f"{last}\n{wide}"):
        planned = study.planned("all")
        assert {rule: planned.get(rule, 0) for rule in ("build_tokens", "train_network", "score_network")} == {
            "build_tokens": 0,
            "train_network": 2,
            "score_network": 2,
        }


def test_a_changed_preset_trains_its_users_only(study: Clone) -> None:
    with study.changed("config/tiny/study.yaml", "paper: {", "paper: {patience: 1, "):
        planned = study.planned("all")
        assert planned["train_network"] == 3
        assert "MLP9-paper" in study.tiny("--dry-run", "all")
    with study.changed("config/tiny/study.yaml", "modern: {", "modern: {patience: 1, "):
        assert study.planned("all")["train_network"] == 6


def test_the_brown_study_can_be_planned_before_any_download(clone: Clone, tmp_path: Path) -> None:
    output = clone.snakemake("--dry-run", "--directory", tmp_path)
    planned = planned_jobs(output)
    assert planned["fetch_corpus"] == planned["build_lmplz"] == 1
    # Rows of the table with three seeds and with one; of the extended table; points of the sweeps.
    assert planned["train_network"] == 3 * 10 + 3 + 12 + 17
    assert planned["build_tokens"] >= 8
    assert [path.name for path in tmp_path.iterdir()] == [".snakemake"]


@pytest.mark.parametrize(
    ("key", "old", "new", "said"),
    [
        pytest.param("study.yaml", "title:", "titel:", "titel", id="misspelt key"),
        pytest.param("study.yaml", "name: tiny", "name: tiny\nthreads: many", "threads", id="wrong type"),
        pytest.param("study.yaml", "source: text", "source: browm", "corpus.source", id="unknown corpus"),
        pytest.param("networks.tsv", "MLP7\t", "MLP1\t", "networks.tsv: model 'MLP1'", id="duplicate row"),
        pytest.param(
            "ngrams.tsv", "kneser-ney\t\t5", "kneser-ney\t\t7", "ngrams.tsv, row kneser-ney-5", id="order above 6"
        ),
    ],
)
def test_a_bad_configuration_is_refused_in_one_line(clone: Clone, key: str, old: str, new: str, said: str) -> None:
    with clone.changed(f"config/tiny/{key}", old, new):
        output = clone.tiny("--dry-run", status=1)
    lines = [line for line in output.splitlines() if line and not line.startswith(("Config file", "Using workflow"))]
    assert len(lines) == 1, output
    assert lines[0].startswith("nplm2003: error: ") and said in lines[0]


# --- interrupted runs -----------------------------------------------------------------------------------------------

EPOCHS = 40


@pytest.fixture
def long_training(tmp_path: Path, text: str) -> Clone:
    """A study with one training that is long enough to be killed in the middle."""
    clone = make_clone(tmp_path / "a long training", text)
    study = clone.folder / "config" / "tiny" / "study.yaml"
    modern = f"modern: {{epochs_direct: {EPOCHS}, epochs_without_direct: {EPOCHS}, patience: {EPOCHS}}}"
    study.write_text(re.sub(r"modern: {.*}", modern, study.read_text()))
    return clone


def wait_for_epoch(clone: Clone, epoch: int) -> None:
    log = clone.folder / RESULTS / "logs" / "train_network" / "rank30,MLP1,1.log"
    deadline = time.monotonic() + 300
    while not (log.is_file() and f"epoch {epoch}/" in log.read_text()):
        assert time.monotonic() < deadline, "the training did not get there"
        time.sleep(0.05)


def training_of(snakemake: subprocess.Popen[str]) -> psutil.Process:
    """The training that this Snakemake runs."""
    children = psutil.Process(snakemake.pid).children(recursive=True)
    (training,) = (child for child in children if child.cmdline()[1:4] == ["-m", "nplm2003", "train"])
    return training


def test_a_killed_training_goes_on_where_it_was(long_training: Clone) -> None:
    clone = long_training
    target = RESULTS / "rank30" / "MLP1" / "seed1" / "weights.pt"
    run = (target, "--configfile", "config/tiny/study.yaml")

    # The training alone is killed, by the system for its memory for instance: Snakemake says so and leaves no lock.
    process = clone.start(*run)
    wait_for_epoch(clone, 3)
    training_of(process).kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "rank30,MLP1,1.log" in output
    assert not (clone.folder / target).exists()

    # Everything is killed, as by a power cut: the lock stays, and the next run says how to go on.
    process = clone.start(*run)
    wait_for_epoch(clone, 8)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert "--unlock" in clone.snakemake(*run, status=1)
    clone.tiny("--unlock")

    clone.snakemake(*run)
    log = (clone.folder / RESULTS / "logs" / "train_network" / "rank30,MLP1,1.log").read_text()
    seen = [int(number) for number in re.findall(rf"epoch (\d+)/{EPOCHS}", log)]
    # Each epoch once, but for those whose checkpoint a kill came before.
    assert len(seen) <= EPOCHS + 2
    curve = read_table(clone.folder / target.with_name("learning_curve.csv"))
    assert [int(row["epoch"]) for row in curve] == list(range(1, EPOCHS + 1))


# --- several processes ----------------------------------------------------------------------------------------------


def test_two_processes_train_one_network(tmp_path: Path, text: str) -> None:
    clone = make_clone(tmp_path / "two processes", text)
    several = {"scheme": "data", "processes": 2}
    with (clone.folder / "config" / "tiny" / "study.yaml").open("a", encoding="utf-8") as study:
        study.write(f"parallel: {json.dumps(several)}\n")
    network = RESULTS / "rank30" / "MLP1" / "seed1"
    clone.tiny(network / "weights.pt")
    training = json.loads((clone.folder / network / "training.json").read_text(encoding="utf-8"))
    assert (training["parallel"], training["threads"]) == (several, 1)


def test_the_explorer_page_is_made_when_it_is_asked_for(study: Clone) -> None:
    study.tiny("explorer")
    page = (study.folder / RESULTS / "explorer.html").read_text(encoding="utf-8")
    assert "<title>Explorer: A tiny study</title>" in page
    assert all(f'"model":"{model}"' in page for model in ("MLP1", "MLP7", "interpolated-trigram", "MLP2"))
    assert planned_jobs(study.tiny("--dry-run", "explorer")) == {}
