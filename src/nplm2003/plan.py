"""What the stages are told of a study: the options of their commands, and the files that a corpus is read from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

CORPUS_FILES = ("file", "train_file", "valid_file", "test_file")
POLICY_OPTIONS = ("count_on", "cut", "size", "lowercase", "marks", "split_clitics")
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


def corpus_files(corpus: Mapping[str, Any], download: str) -> list[str]:
    """The files that the corpus of a study is read from; `download` is where a fetched one lies."""
    if corpus["source"] == "brown":
        return [download]
    return [corpus[key] for key in CORPUS_FILES if corpus.get(key)]


def corpus_options(study: Mapping[str, Any], policy: str, download: str) -> str:
    """What `build-tokens` is told of the corpus and of the vocabulary policy of that name."""
    corpus = study["corpus"]
    files = {key: corpus.get(key) for key in (*CORPUS_FILES, "tokenizer")}
    if corpus["source"] == "brown":
        files["file"] = download
    (row,) = (row for row in study["policies"] if row["policy"] == policy)
    return options(
        corpus=study["name"],
        source=corpus["source"],
        **files,
        **(corpus.get("split") or {}),
        policy=policy,
        **{key: row[key] for key in POLICY_OPTIONS},
    )


def network_options(row: Mapping[str, Any]) -> str:
    """What `train` is told of the shape of a network, from its row."""
    return options(**{key: row[key] for key in SHAPE_OPTIONS})
