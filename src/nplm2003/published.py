"""The corpora behind the published tables, and whether a study stands beside the numbers of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Section 4 of the paper: the corpus behind each published table, by the name of the table's file; `source` is what a
# study on that corpus reads.
PUBLISHED_CORPORA: dict[str, dict[str, Any]] = {
    "table1_brown": {
        "corpus": "Brown",
        "source": "brown",
        "stream_tokens": 1_181_041,
        "stream_types": 47_578,
        "vocabulary_size": 16_383,
        "tokens": {"train": 800_000, "valid": 200_000, "test": 181_041},
    },
    "table2_apnews": {
        "corpus": "AP News",
        "source": "ap",
        "stream_tokens": 13_994_528 + 963_138 + 963_071,
        "stream_types": 148_721,
        "vocabulary_size": 17_964,
        "tokens": {"train": 13_994_528, "valid": 963_138, "test": 963_071},
    },
}


def published_corpus(study: Mapping[str, Any]) -> dict[str, Any] | None:
    """The corpus behind the study's published table, None where there is no such table or it is another one."""
    path = study["published"]
    return PUBLISHED_CORPORA.get(Path(path).stem) if path else None


def stands_in(study: Mapping[str, Any]) -> bool:
    """Whether the published numbers beside the study's rows are for another corpus than its own."""
    corpus = published_corpus(study)
    return corpus is not None and corpus["source"] != study["corpus"]["source"]
