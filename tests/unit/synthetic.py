"""A made-up study on disk: tokens, scores, evaluations, learning curves and word features, without any training.

The score of every token of a model is constant but for a part that depends on how frequent the word is, so its
perplexities are exactly the ones asked for.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from nplm2003.corpora import Corpus, Passage
from nplm2003.evaluation import evaluate
from nplm2003.files import name_infinities, write_array, write_json
from nplm2003.provenance import provenance
from nplm2003.scoring import SPLITS, Scores, write_scores
from nplm2003.study import find_row
from nplm2003.uncertainty import measure_uncertainty
from nplm2003.vocabulary import Policy, Split, TokenStore, build_tokens, cut_tokens

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "data" / "reference" / "table1_brown.csv"
WORDS = ("the", "a", "cat", "dog", "bedroom", "room", "walking", "running", "is", "was")

MODERN: dict[str, Any] = {
    "objective": "softmax",
    "noise_words": 0,
    "noise_power": 0.0,
    "self_normalisation": 0.0,
    "batch": 128,
    "reduction": "mean",
    "rate": 1.0,
    "schedule": "cosine",
    "rate_decay": 0.0,
    "weight_decay": 0.0,
    "dropout": 0.1,
    "bias_start": "unigram",
    "epochs_direct": 8,
    "epochs_without_direct": 8,
    "patience": 2,
    "valid_every": 1,
    "matmul": "medium",
}
PAPER: dict[str, Any] = {
    "objective": "softmax",
    "noise_words": 0,
    "noise_power": 0.0,
    "self_normalisation": 0.0,
    "batch": 64,
    "reduction": "sum",
    "rate": 1e-3,
    "schedule": "hyperbolic",
    "rate_decay": 1e-8,
    "weight_decay": 1e-4,
    "dropout": 0.0,
    "bias_start": "zero",
    "epochs_direct": 10,
    "epochs_without_direct": 20,
    "patience": 2,
    "valid_every": 1,
    "matmul": "highest",
}


def all_scores(parts: Iterable[np.ndarray]) -> np.ndarray:
    """The scores that a model gives in parts, put together: shape (tokens,)."""
    return np.concatenate(list(parts))


def in_parts(scores: Mapping[str, Any]) -> dict[str, list[np.ndarray]]:
    """The scores of each split in two parts, as `write_scores` takes them."""
    return {split: np.array_split(np.asarray(values), 2) for split, values in scores.items()}


def policy(name: str, **settings: Any) -> dict[str, Any]:
    """A vocabulary policy: the paper's but for `settings`."""
    plain = {"count_on": "stream", "cut": "frequency", "size": 3, "lowercase": False, "marks": True}
    return {"policy": name, **plain, "split_clitics": False, "numbers": False, "proper_nouns": False, **settings}


def row(model: str, kind: str, **settings: Any) -> dict[str, Any]:
    """A row of a study; what is not given is None."""
    keys = ("published", "order", "classes", "hidden", "features", "direct", "word_features", "outputs", "preset")
    empty = dict.fromkeys((*keys, "architecture", "options"))
    if kind == "network":
        empty["architecture"] = "mlp"
    return {"model": model, **empty, "kind": kind, "seeds": [0], **settings}


CUT = ("top40-train-1-2", "1/2")  # the policy that holds a share of the training tokens, and the share


def point(sweep: str, model: str, policy: str = "top40", train: str | None = None) -> dict[str, Any]:
    """One point of a sweep."""
    return {"sweep": sweep, "model": model, "policy": policy, "train": train}


# What a study without sweeps and extended rows has of them.
NO_SWEEPS: dict[str, Any] = {"extended_rows": [], "sweep_rows": [], "sweeps": [], "cuts": {}}


def small_study() -> dict[str, Any]:
    """Two networks, one of them with both presets, a mixture, and two n-grams, beside the paper's table for Brown."""
    parts = ["MLP5", "interpolated-trigram"]
    shape = {"order": 5, "hidden": 50, "features": 30, "direct": True, "word_features": "learnt", "outputs": "words"}
    net = {**shape, "preset": "modern", "seeds": [1]}
    return {
        "name": "brown",
        "title": "A made-up study",
        "corpus": {"source": "brown"},
        "policy": "top40",
        "policies": [policy("top40", cut="rank", size=40, marks=False), policy("freq3")],
        "table": "table1",
        "published": str(PUBLISHED),
        "rows": [
            row("MLP5", "network", published="MLP5", **net),
            row("MLP6", "mixture", published="MLP6", **net, components=parts, weights="fixed"),
            row("MLP7", "network", published="MLP7", **{**net, "order": 3}),
            row("MLP5-paper", "network", published="MLP5", **{**net, "preset": "paper"}),
            row("interpolated-trigram", "interpolated", published="Deleted interpolation", order=3),
            row("kneser-ney-5", "kneser-ney", published="Kneser-Ney back-off", order=5),
        ],
        "extended_rows": [
            row("lstm", "network", **{**net, "architecture": "lstm", "direct": False, "options": "rate=0.01"}),
            row("two", "network", **{**net, "features": 2}),
            row("all", "mixture", **net, components=["lstm", "MLP7", "kneser-ney-5"], weights="learnt"),
        ],
        "sweep_rows": [row("MLP5-h25", "network", **{**net, "hidden": 25})],
        "sweeps": [
            *(point("order", model) for model in ("MLP7", "MLP5", "kneser-ney-5")),
            *(point("hidden", model) for model in ("MLP5-h25", "MLP5", "kneser-ney-5")),
            point("features", "MLP5"),
            *(point("train", model, *cut) for model in ("MLP5", "kneser-ney-5") for cut in (CUT, ())),
            *(point("policy", "kneser-ney-5", policy) for policy in ("top40", "freq3")),
        ],
        "cuts": dict([CUT]),
        "policy_models": ["interpolated-trigram", "kneser-ney-5"],
        "presets": {"paper": PAPER, "modern": MODERN},
    }


def class_based_study() -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The small study with three class-based rows, and its perplexities."""
    study = small_study()
    study["rows"] += [
        row(f"classes-{classes}-{order}", "class-based", published="Class-based back-off", order=order, classes=classes)
        for classes, order in ((1000, 3), (500, 3), (500, 4))
    ]
    classes = {"classes-500-3": (None, 320.0, 330.0), "classes-1000-3": (None, 310.0, 286.0)}
    return study, {**SMALL, **classes, "classes-500-4": (None, 321.0, 312.0)}


# Train, validation and test of each model of the small study; MLP6 mixes MLP5 and the trigram.
SMALL = {
    "MLP5": (150.0, 270.0, 250.0),
    "MLP6": (None, 240.0, 226.0),
    "MLP7": (160.0, 290.0, 296.0),
    "MLP5-paper": (250.0, 340.0, 320.0),
    "interpolated-trigram": (31.0, 352.0, 336.0),
    "kneser-ney-5": (None, 332.0, 353.1),
}
EXTENDED = {"lstm": (120.0, 230.0, 220.0), "two": (200.0, 350.0, 330.0), "all": (110.0, 220.0, 208.0)}
# Every point of a sweep that is in no table.
SWEPT = (155.0, 310.0, 300.0)


def make_tokens(folder: Path, settings: Mapping[str, Any], tokens: int = 4_000, types: int = 120) -> TokenStore:
    """A token store of random words with Zipf's frequencies, under a vocabulary policy."""
    generator = np.random.default_rng(2003)
    names = [*WORDS, *(f"word{i:03}" for i in range(len(WORDS), types))]
    weights = 1 / np.arange(1, types + 1)
    drawn = generator.choice(types, size=tokens, p=weights / weights.sum())
    words = [names[i] for i in drawn]
    corpus = Corpus("made up", "none needed", "0" * 64, (lambda: iter([Passage(words, "line 1")]),))
    rules = {key: value for key, value in settings.items() if key != "policy"}
    name = settings["policy"]
    build_tokens(corpus, "made up", Policy(name, **rules), Split(0.7, 0.15), folder, provenance({}))
    return TokenStore(folder)


def make_scores(folder: Path, store: TokenStore, model: str, seed: int, perplexities: tuple[Any, ...]) -> None:
    """Scores and evaluation of one model: `perplexities` of train, valid and test (None: 100, or infinite)."""
    scores = {}
    slope = 0.3 + 0.1 * (len(model) % 3)  # models differ in what rare words cost them
    for split, value in zip(SPLITS, perplexities, strict=True):
        surprise = -np.log((store.train_counts[store[split]] + 1) / store.train_counts.sum())
        nats = slope * (surprise - surprise.mean())
        scores[split] = np.minimum(-(nats + math.log(value or 100.0)), 0)
    made = provenance({"model": model}) | {"commit": "0123456789abcdef", "modified": False}
    write_scores(
        folder / "scores",
        in_parts(scores),
        model=model,
        seed=seed,
        vocabulary=store.fingerprint,
        provenance=made,
        impossible=math.inf in perplexities,
    )
    targets = {split: store[split] for split in SPLITS}
    evaluation = evaluate(Scores(folder / "scores"), targets, store.train_counts)
    write_json(folder / "evaluation.json", name_infinities(evaluation))


def make_network(folder: Path, store: TokenStore, row: Mapping[str, Any], perplexity: float) -> None:
    """Learning curve and features of one network, its best epoch at `perplexity`."""
    epochs = range(1, 9 if row["preset"] == "modern" else 13)
    best = len(epochs) - 2
    with (folder / "learning_curve.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("epoch", "examples", "rate", "train_perplexity", "valid_perplexity", "seconds", "best"))
        for epoch in epochs:
            valid = perplexity * (1 + 0.9 * math.exp(-0.7 * (epoch - 1)) + 0.004 * abs(epoch - best))
            train = perplexity * (0.6 + 1.5 * math.exp(-0.6 * (epoch - 1)))
            writer.writerow((epoch, 800_000 * epoch, 0.5, train, valid, 60.0, int(epoch == best)))
    generator = np.random.default_rng(row["features"])
    write_array(folder / "features.npy", generator.normal(size=(store.size, row["features"])).astype(np.float32))
    write_json(folder / "training.json", {"parameters": 12_345, "seconds": 61.5})


def bootstrap(folder: Path, study: Mapping[str, Any]) -> None:
    """Draw the intervals of a study from its scores, as `nplm2003 bootstrap` does."""
    home = folder / study["policy"]
    rows = {
        row["model"]: {
            split: {seed: Scores(home / row["model"] / f"seed{seed}" / "scores")[split] for seed in row["seeds"]}
            for split in ("valid", "test")
        }
        for row in study["rows"]
    }
    write_json(home / "uncertainty.json", name_infinities(measure_uncertainty(rows)))


def make_study(
    folder: Path, study: Mapping[str, Any], perplexities: Mapping[str, tuple[Any, ...]], **corpus: int
) -> Path:
    """Write a whole study below `folder`, which stands for results/CORPUS; returns its study.json.

    Each seed after the first has perplexities one percent higher than the one before.
    """
    rows = {row["model"]: row for row in [*study["rows"], *study["extended_rows"]]}
    for settings in study["policies"]:
        home = folder / settings["policy"]
        store = make_tokens(home / "tokens", settings, **corpus)
        default = settings["policy"] == study["policy"]
        for model in rows if default else study["policy_models"]:
            for place, seed in enumerate(rows[model]["seeds"]):
                values = tuple(value and value * (1 + place / 100) for value in {**EXTENDED, **perplexities}[model])
                make_scores(home / model / f"seed{seed}", store, model, seed, values)
                if rows[model]["kind"] == "network":
                    make_network(home / model / f"seed{seed}", store, rows[model], values[1])
    for name, share in study["cuts"].items():
        cut_tokens(TokenStore(folder / study["policy"] / "tokens"), Fraction(share), folder / name / "tokens", {})
    for swept in study["sweeps"]:
        each = find_row(study, swept["model"])
        home, seed = folder / swept["policy"], each["seeds"][0]
        place = home / each["model"] / f"seed{seed}"
        if not place.exists():
            make_scores(place, TokenStore(home / "tokens"), each["model"], seed, SWEPT)
            if each["kind"] == "network":
                make_network(place, TokenStore(home / "tokens"), each, SWEPT[1])
    write_json(folder / "study.json", study)
    bootstrap(folder, study)
    for rule, wildcards in (("train_network", "model=MLP5,seed=1"), ("build_tokens", "policy=top40")):
        path = folder / "benchmarks" / rule / f"{wildcards}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        line = "61.5\t0:01:01\t812.25\t60.75" if "seed" in wildcards else "0.2\t0:00:00\tNA\t0.0"
        path.write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{line}\n", encoding="utf-8")
    return folder / "study.json"
