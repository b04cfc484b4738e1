"""What the stages are told of a study: the options of their commands, and the files that a corpus is read from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nplm2003.corpora.ap import find_files
from nplm2003.corpora.fetch import DATASETS
from nplm2003.neural.architectures import PAPER, complete_options, parse_options
from nplm2003.ngram import SMOOTHED_KINDS

DOWNLOADS = "data/downloads"
CORPUS_FILES = ("file", "train_file", "valid_file", "test_file")
CORPUS_OPTIONS = (*CORPUS_FILES, "tokenizer", "folder", "first_month", "last_month")
POLICY_OPTIONS = ("count_on", "cut", "size", "lowercase", "marks", "split_clitics", "numbers", "proper_nouns")
USUAL = {"architecture": PAPER, "word_features": "learnt", "outputs": "words"}
# Of a kind of n-gram: the file that says what was estimated, how many parameters too, and the rule that makes it.
DESCRIBED = {
    **dict.fromkeys(SMOOTHED_KINDS, ("smoothing.json", "estimate_smoothed")),
    "interpolated": ("weights.json", "estimate_interpolated"),
    "kneser-ney": ("model.json", "estimate_kneser_ney"),
    "class-based": ("model.json", "estimate_class_based"),
}
SHAPE_OPTIONS = ("order", "hidden", "features", "direct", "preset")


def options(**values: Any) -> str:
    """Command-line options, quoted for a shell: `--key value`, `--key` for True, nothing for None and False."""
    words = []
    for key, value in values.items():
        if value is None or value is False:
            continue
        words.append("--" + key.replace("_", "-"))
        if value is not True:
            words.append(shlex.quote(str(value)))
    return " ".join(words)


def download(corpus: Mapping[str, Any]) -> str | None:
    """Where the file of a corpus that is fetched lies; None for one that is not."""
    dataset = DATASETS.get(corpus["source"])
    return f"{DOWNLOADS}/{dataset.file}" if dataset else None


def corpus_files(corpus: Mapping[str, Any]) -> list[str]:
    """The files that the corpus of a study is read from."""
    if fetched := download(corpus):
        return [fetched]
    if corpus["source"] == "ap":
        months = (corpus.get("first_month"), corpus.get("last_month"))
        return [str(path) for _, path in find_files(Path(corpus["folder"]), months)[0]]
    return [corpus[key] for key in CORPUS_FILES if corpus.get(key)]


def corpus_options(study: Mapping[str, Any], policy: str, **changes: Any) -> str:
    """What `build-tokens` is told of the corpus and of the vocabulary policy of that name, with `changes` to it."""
    corpus = study["corpus"]
    told = {key: corpus.get(key) for key in CORPUS_OPTIONS}
    if fetched := download(corpus):
        told["file"] = fetched
    (row,) = (row for row in study["policies"] if row["policy"] == policy)
    return options(
        corpus=study["name"],
        source=corpus["source"],
        **told,
        **(corpus.get("split") or {}),
        policy=policy,
        **{key: row[key] for key in POLICY_OPTIONS} | changes,
    )


def network_options(row: Mapping[str, Any], parallel: Mapping[str, Any] | None) -> str:
    """What `train` is told of a network, from its row, and of several processes; nothing where it has what is usual."""
    special = {key: row[key] for key, usual in USUAL.items() if row[key] != usual}
    if row["architecture"] != PAPER:  # with the defaults: a network is trained again when they change
        every = complete_options(row["architecture"], parse_options(row["options"]))
        special["options"] = " ".join(f"{name}={value:g}" for name, value in every.items())
    elif parallel is not None:  # only the paper's network knows how to share its work
        special |= {"processes": parallel["processes"], "parallel": parallel["scheme"]}
    return options(**{key: row[key] for key in SHAPE_OPTIONS}, **special)


def is_paper_network(row: Mapping[str, Any]) -> bool:
    """Whether a row is a network of the paper's form (`nplm2003.neural.model`) with one softmax over all words."""
    return row["kind"] == "network" and row["outputs"] == "words" and row["architecture"] == PAPER


def ways_to_train(study: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the network of the main table that the study trains in the most ways (presets, output layers).

    Networks whose features are given are others; [] where there is none but those.
    """
    shapes: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in study["rows"]:
        if row["kind"] == "network" and row["word_features"] == "learnt":
            shape = tuple(row[key] for key in ("architecture", "options", "order", "hidden", "features", "direct"))
            shapes.setdefault(shape, []).append(row)
    return max(shapes.values(), key=len, default=[])


def explorer_rows(study: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The networks of the explorer page: the first of each shape in the main table, and all others of 2 features.

    Each is shown at the first of its seeds.
    """
    others = [*study["extended_rows"], *study["sweep_rows"]]
    swept = [row for row in others if row["features"] == 2]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in filter(is_paper_network, [*study["rows"], *swept]):
        found.setdefault(tuple(row[key] for key in ("order", "hidden", "features", "direct")), row)
    return list(found.values())


def trigram_row(study: Mapping[str, Any]) -> dict[str, Any] | None:
    """The interpolated trigram of a study; None where it has none."""
    return next((row for row in study["rows"] if row["kind"] == "interpolated"), None)


def trigram_mixture(study: Mapping[str, Any], network: str) -> dict[str, Any] | None:
    """The row that mixes a network and the interpolated trigram with equal weights; None where there is none."""
    trigram = trigram_row(study)
    mixtures = (row for row in study["rows"] if row["kind"] == "mixture" and row["weights"] == "fixed")
    return next((row for row in mixtures if trigram and row["components"] == [network, trigram["model"]]), None)
