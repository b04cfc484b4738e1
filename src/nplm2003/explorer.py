"""The explorer: one HTML file with the models of a study in it, which a browser runs without a server or a network.

The page holds what its script (`page/explorer.js`) needs to give P(w | context) for every word of V: the networks of
the paper's form, and the training text as word ids, from which it counts n-grams. So it holds the corpus, and goes
where the corpus may go: never into the repository.

C and O without its biases, nearly all of a network, are rounded to 8 bits (`quantise`); H, d and b stay float32. How
far that moves a log-probability is measured on contexts of valid and written on the page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nplm2003 import plan
from nplm2003.errors import UserError
from nplm2003.files import read_object, write_text
from nplm2003.neighbours import ENOUGH, principal_directions
from nplm2003.neural.data import Windows
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.scoring import load_paper_network
from nplm2003.ngram.interpolated import TrigramCounts, read_weights
from nplm2003.outcomes import Outcomes, Run
from nplm2003.provenance import provenance
from nplm2003.study import find_row
from nplm2003.vocabulary import MERGED_ID, TokenStore

PAGE = Path(__file__).parent / "page"
LARGEST = 96_000_000  # bytes of a page that browsers open without trouble
STEPS = 127  # of the whole numbers that a row is rounded to, on either side of 0
MEASURED = 64  # contexts of valid on which the rounding is measured
MAPPED = 100  # words on the map, at least, where V has so many

TOKEN_SCORES = {"before": [float], "after": [float]}
ADDED_SENTENCE = {
    "format": 1,
    "vocabulary": str,
    "rates": [float],
    "before": str,
    "seed": int,
    "sentences": [
        {
            "role": ("added", "other", "scrambled", "unrelated"),
            "words": [str],
            "text": ([str], None),
            "network": TOKEN_SCORES,
            "trigram": (TOKEN_SCORES, None),
        }
    ],
}


def quantise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`matrix` (r, k) in 8 bits: int8 (r, k), and float32 (r,) by which each row is multiplied again.

    No number moves by more than half of its row's factor, which is 1 / STEPS of the row's largest.
    """
    scale = (np.abs(matrix).max(axis=1) / STEPS).astype(np.float32)
    rows = np.rint(matrix / np.where(scale > 0, scale, 1)[:, None])
    return np.clip(rows, -STEPS, STEPS).astype(np.int8), scale


def encode(array: np.ndarray) -> str:
    """The numbers of an array, little-endian and row after row, as base64."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()).decode()


def decode(text: str, dtype: str) -> np.ndarray:
    """What `encode` made a text of, in one dimension."""
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(dtype).newbyteorder("<"))


def _rounded(matrix: torch.Tensor) -> dict[str, str]:
    rows, scale = quantise(matrix.detach().numpy())
    return {"rows": encode(rows), "scale": encode(scale)}


def network_record(model: NeuralLanguageModel) -> dict[str, Any]:
    """Shape and numbers of a network, as the page holds them. O is without its last column, b; H and d may be None."""
    return {
        "order": model.order,
        "hidden": model.hidden,
        "features": model.features,
        "direct": model.direct,
        "C": _rounded(model.C),
        "O": _rounded(model.O[:, :-1]),
        "b": encode(model.b.detach().numpy()),
        "H": None if model.H is None else encode(model.H.detach().numpy()),
        "d": None if model.d is None else encode(model.d.detach().numpy()),
    }


@torch.no_grad()
def read_network(record: Mapping[str, Any], size: int) -> NeuralLanguageModel:
    """The network that a page holds, for a vocabulary of `size` words: what its script computes, in Python."""
    model = NeuralLanguageModel(size, *(record[key] for key in ("order", "hidden", "features", "direct")))

    def product(rounded: Mapping[str, str]) -> torch.Tensor:
        rows, scale = decode(rounded["rows"], "int8").reshape(size, -1), decode(rounded["scale"], "float32")
        return torch.from_numpy(rows * scale[:, None])

    model.C.copy_(product(record["C"]))
    model.O[:, :-1].copy_(product(record["O"]))
    model.b.copy_(torch.from_numpy(decode(record["b"], "float32").copy()))
    if model.H is not None and model.d is not None:
        model.H.copy_(torch.from_numpy(decode(record["H"], "float32").reshape(model.H.shape).copy()))
        model.d.copy_(torch.from_numpy(decode(record["d"], "float32").copy()))
    return model.eval()


@torch.no_grad()
def rounding(model: NeuralLanguageModel, rounded: NeuralLanguageModel, store: TokenStore) -> dict[str, float]:
    """How far rounding moves log P(w | context), in nats: the `largest` and the root mean square (`typical`).

    Over all words w, in `MEASURED` contexts of valid that lie at equal distances.
    """
    windows = Windows(store, "valid", model.order)
    positions = np.unique(np.linspace(0, len(windows) - 1, MEASURED).astype(np.int64))
    contexts, _ = windows[positions]
    moved = (model(contexts) - rounded(contexts)).abs()
    return {"largest": float(moved.max()), "typical": float(moved.square().mean().sqrt())}


def frequent_words(store: TokenStore) -> np.ndarray:
    """The ids of words that have left their random start, most frequent first: who is a neighbour, and on the map.

    Words seen `ENOUGH` times in train; the `MAPPED` most frequent where these are fewer. Never the merged symbol.
    """
    order = np.argsort(-store.train_counts, kind="stable")
    order = order[(order != MERGED_ID) & (store.train_counts[order] > 0)]
    return order[: max(MAPPED, int((store.train_counts[order] >= ENOUGH).sum()))]


def plane(features: np.ndarray, frequent: np.ndarray) -> dict[str, list[Any]]:
    """The `centre` (m,) and the two `directions` (2, m) of the map: a word stands at (C(w) - centre) directions'.

    They are the principal components of the features (|V|, m) of the frequent words; two features are drawn as they
    are.
    """
    if features.shape[1] == 2:
        return {"centre": [0.0, 0.0], "directions": [[1.0, 0.0], [0.0, 1.0]]}
    shown = features[frequent]
    return {"centre": shown.mean(axis=0).tolist(), "directions": principal_directions(shown).tolist()}


def _sentence(run: Run, store: TokenStore) -> dict[str, Any]:
    path = run.folder / "added-sentence.json"
    if not path.is_file():
        raise UserError(f"{path} does not exist: run `nplm2003 add-sentence` on {run.model}, seed {run.seed}, first")
    content = read_object(path, ADDED_SENTENCE)
    if content["vocabulary"] != store.fingerprint:
        raise UserError(f"{path} was made on other tokens than {store.folder}: run `nplm2003 add-sentence` again")
    return {key: content[key] for key in ("rates", "before", "seed", "sentences")}


def _network(run: Run, store: TokenStore, frequent: np.ndarray) -> dict[str, Any]:
    model = load_paper_network(run.folder / "weights.pt", store)
    record = network_record(model)
    rounded = read_network(record, store.size)
    return {
        "model": run.model,
        "seed": run.seed,
        "preset": run.row["preset"],
        "perplexity": run.perplexity("test"),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        **record,
        "rounding": rounding(model, rounded, store),
        "plane": plane(rounded.C.detach().numpy(), frequent),
        "sentence": _sentence(run, store),
    }


def _trigram(outcomes: Outcomes, store: TokenStore) -> dict[str, Any] | None:
    """The interpolated trigram; the page does the counting itself."""
    row = plan.trigram_row(outcomes.study)
    if row is None:
        return None
    run = outcomes.run(row, row["seeds"][0])
    weights, _ = read_weights(run.folder / "weights.json", store, TrigramCounts(store["train"], store.size))
    return {"model": run.model, "perplexity": run.perplexity("test"), "weights": weights.tolist()}


def _mixture(outcomes: Outcomes, network: Run, trigram: str) -> dict[str, Any]:
    """The mixture of a network and the trigram with equal weights; under the name that it has in the study, if any."""
    row = plan.trigram_mixture(outcomes.study, network.model)
    if row is None:
        return {"model": f"{network.model} + {trigram}", "network": network.model, "perplexity": None}
    mixture = outcomes.run(row, network.seed)
    return {"model": mixture.model, "network": network.model, "perplexity": mixture.perplexity("test")}


def page_data(outcomes: Outcomes, models: Sequence[str] | None = None) -> dict[str, Any]:
    """Everything that the page shows, as plain JSON values.

    `models`: the networks, each at its first seed; those of `plan.explorer_rows` where none are named. Raises
    UserError where one is no network of the paper's form, or the study has none.
    """
    store = TokenStore(outcomes.folder / "tokens")
    rows = plan.explorer_rows(outcomes.study)
    if models:
        rows = [find_row(outcomes.study, model) for model in dict.fromkeys(models)]
        if others := [row["model"] for row in rows if not plan.is_paper_network(row)]:
            raise UserError(
                f"{others[0]} is no network of the paper's form with one softmax over all words: leave it out"
            )
    if not rows:
        raise UserError(f"the study {outcomes.study['name']} has no network of the paper's form: the page needs one")
    runs = [outcomes.run(row, row["seeds"][0]) for row in rows]
    frequent = frequent_words(store)
    trigram = _trigram(outcomes, store)
    train, made = store["train"], provenance({})
    return {
        "study": outcomes.study["name"],
        "title": outcomes.study["title"],
        "policy": outcomes.policy,
        "lowercase": store.statistics["policy"]["lowercase"],
        "licence": store.statistics["licence"],
        "version": made["nplm2003"],
        "commit": made["commit"],
        "modified": made["modified"],
        "words": store.words,
        "train": {"ids": encode(train), "bytes": train.dtype.itemsize},
        "frequent": frequent.tolist(),
        "best": min(runs, key=lambda run: run.perplexity("valid")).model,
        "networks": [_network(run, store, frequent) for run in runs],
        "trigram": trigram,
        "mixtures": [] if trigram is None else [_mixture(outcomes, run, trigram["model"]) for run in runs],
    }


def render(data: Mapping[str, Any]) -> str:
    """The page with `data` in it; raises UserError where it would be larger than `LARGEST`."""
    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined)
    # In a script element nothing is markup but what starts with "<", and a word may be "</script>".
    values = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {name: (PAGE / f"explorer.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    text = environment.get_template("explorer.html").render(title=data["title"], data=values, **parts)
    if (size := len(text.encode())) > LARGEST:
        raise UserError(
            f"the page would take {size / 1e6:,.0f} MB, more than {LARGEST / 1e6:,.0f} MB: name fewer or smaller "
            "networks with --model"
        )
    return text


def write_explorer(outcomes: Outcomes, output: Path | str, models: Sequence[str] | None = None) -> None:
    """Write the page, whole or not at all; `models` as in `page_data`."""
    write_text(output, render(page_data(outcomes, models)))
