"""What several tests share: a tiny token store of an invented language, and presets of plain values."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nplm2003.corpora import Corpus, read_text
from nplm2003.neural.preset import Preset
from nplm2003.vocabulary import Policy, Split, TokenStore, build_tokens


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the drills (tests/drills)."""
    parser.addoption("--faults", type=Path, metavar="STEM", help="write the table of faults to STEM.md and STEM.csv")
    parser.addoption("--kills", type=int, default=1, metavar="N", help="how often every kind of rule is killed")


def invent(sentences: int, seed: int = 0) -> str:
    """Sentences of one shape, such as "the small cat sees every dog .", one a line; few words are frequent and most are
    rare, as in any language."""
    draw = np.random.default_rng(seed)

    def one_of(words: list[str]) -> str:
        shares = 1 / np.arange(1, len(words) + 1)
        return words[draw.choice(len(words), p=shares / shares.sum())]

    nouns = ["cat", "dog", "room", "bird", "house", "child", "tree", *(f"noun{i}" for i in range(20))]
    verbs = ["sees", "likes", "finds", "hears", *(f"verb{i}" for i in range(8))]
    lines = []
    for _ in range(sentences):
        phrases = [
            [one_of(["the", "a", "every"]), *[one_of(["small", "old", "red", "quiet"])][: draw.integers(2)]]
            + [one_of(nouns)]
            for _ in range(2)
        ]
        lines.append(" ".join([*phrases[0], one_of(verbs), *phrases[1], "."]))
    return "\n".join(lines)


def build(text: str, split: Split, size: int, folder: Path) -> TokenStore:
    """The token store of `text`, cut into words at white space; |V| = `size`."""
    corpus = Corpus("text", "none", "0" * 64, (lambda: read_text(text.split("\n"), "text", str.split),))
    build_tokens(corpus, "tiny", Policy("rank", "stream", "rank", size), split, folder, {})
    return TokenStore(folder)


@pytest.fixture(scope="session")
def invented_text() -> Callable[..., str]:
    """A function that writes sentences of the invented language: `invented_text(sentences, seed=0)`."""
    return invent


@pytest.fixture(scope="session")
def build_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Split, int], TokenStore]:
    """A function that builds a token store of a text: `build_store(text, split, size)`."""
    return lambda text, split, size: build(text, split, size, tmp_path_factory.mktemp("built") / "tokens")


@pytest.fixture(scope="session")
def tiny_store(build_store: Callable[[str, Split, int], TokenStore]) -> TokenStore:
    """2,000 / 400 / 400 tokens of the invented language, |V| = 40. Shared by all tests: nobody writes into it."""
    return build_store(invent(500), Split(2000, 400, 400), 40)


@pytest.fixture
def own_store(tiny_store: TokenStore, tmp_path: Path) -> TokenStore:
    """A copy of the tiny store that a test may damage."""
    return TokenStore(shutil.copytree(tiny_store.folder, tmp_path / "own tokens"))


@pytest.fixture(scope="session")
def make_preset() -> Callable[..., Preset]:
    """A function that makes a preset: the paper's updates, one epoch, exact products, and what is named otherwise."""

    def make(**changes: Any) -> Preset:
        values = {
            "objective": "softmax",
            "noise_words": 0,
            "noise_power": 0.0,
            "self_normalisation": 0.0,
            "batch": 32,
            "reduction": "sum",
            "rate": 1e-3,
            "schedule": "hyperbolic",
            "rate_decay": 1e-8,
            "weight_decay": 1e-4,
            "dropout": 0.0,
            "bias_start": "zero",
            "epochs_direct": 1,
            "epochs_without_direct": 1,
            "patience": 5,
            "valid_every": 1,
            "matmul": "highest",
        }
        return Preset(**{**values, **changes})

    return make


@pytest.fixture(scope="session")
def explorer_results(tmp_path_factory: pytest.TempPathFactory, make_preset: Callable[..., Preset]) -> Path:
    """The results of a small study that the explorer page can show (`explorer_study`): nobody writes into them."""
    from explorer_study import make_explorer_study

    preset = make_preset(rate=0.5, reduction="mean", epochs_direct=3, epochs_without_direct=3)
    return make_explorer_study(tmp_path_factory.mktemp("explorer") / "results", invent(600), preset)


@pytest.fixture(autouse=True)
def exact_products() -> None:
    """Training may leave torch with faster, rounder matrix products; tests start from exact ones."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_float32_matmul_precision("highest")
