"""Scoring with a trained network: always exact probabilities, which sum to 1 over the whole vocabulary."""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.neural.data import Pieces, Windows, stream_loader
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.network import make_network
from nplm2003.neural.outputs import make_output
from nplm2003.neural.variant import Variant
from nplm2003.vocabulary import TokenStore

SCORING_BATCH = 4096  # tokens: each reads all of O, so that few would be slower
# What torch, pickle and zipfile raise for files that are damaged or something else; their texts run over many lines.
UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)
Network = NeuralLanguageModel | Variant
SHAPE = (
    "architecture",
    "order",
    "hidden",
    "features",
    "direct",
    "options",
    "outputs",
    "vocabulary",
)  # what weights.pt says of its network


def keep_memory() -> None:
    """Ask glibc to keep freed blocks: otherwise every (B, |V|) block is mapped and zeroed by the kernel again."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc: slower, not wrong
        return
    mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD: blocks up to 1 GiB come from the heap
    mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD: and stay there


def settle(threads: int) -> None:
    """Use exactly `threads` threads and deterministic kernels: the same seed gives the same result on one machine."""
    keep_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    # Without this, torch fills every new tensor with NaN first: one more pass over each block of logits.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


@torch.no_grad()
def log_probabilities(model: Network, contexts: Tensor, targets: Tensor) -> Tensor:
    """log P(target | context), shape (B,), of `contexts` (B, n-1) and `targets` (B,): exact, whatever the objective."""
    return model.log_probabilities(contexts, targets)


def in_order(model: Network, store: TokenStore, split: str) -> Windows | Pieces:
    """The tokens of `split` as `model` reads them: in windows, or in one stream whose state it keeps."""
    if isinstance(model, Variant) and model.sequential:
        return Pieces(store, split, model.piece)
    return Windows(store, split, model.order)


def begin(model: Network, data: Windows | Pieces, device: torch.device | str) -> None:
    """Make ready to read `data` from its first token."""
    if isinstance(model, Variant) and isinstance(data, Pieces):
        model.begin(None if data.history is None else data.history.to(device))


def load_whole(path: Path | str) -> Any:
    """What torch saved at `path`, nothing but plain values and tensors; raises one of `UNREADABLE` where it is damaged.

    Torch does not look at the checksums that it writes into the file.
    """
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{damaged} has another checksum")
    return torch.load(path, map_location="cpu", weights_only=True)


def load_network(path: Path | str, store: TokenStore) -> Network:
    """The trained network of a `weights.pt`; refuses one that was trained on another vocabulary than `store`'s."""
    if not Path(path).is_file():
        raise UserError(f"there is no network {path}: train it first")
    try:
        content = load_whole(path)
        shape = content["shape"]
        if shape["vocabulary"] != store.fingerprint:
            raise UserError(
                f"{path} was trained on other tokens than {store.folder} holds: "
                "score it on the tokens it was trained with"
            )
        class_of = None if content["class_of"] is None else content["class_of"].numpy()
        model = make_network(
            shape["architecture"],
            vocabulary=store.size,
            **{key: shape[key] for key in ("order", "hidden", "features", "direct")},
            options=shape["options"],
            output=make_output(shape["outputs"], store.size, class_of, store.train_counts),
        )
        model.load_state_dict(content["weights"])
    except UNREADABLE as error:
        raise UserError(f"{path} cannot be read as a network ({type(error).__name__}): train it again") from error
    return model.eval()


def load_paper_network(path: Path | str, store: TokenStore) -> NeuralLanguageModel:
    """The same of a network of the paper's form; refuses any other."""
    model = load_network(path, store)
    if not isinstance(model, NeuralLanguageModel):
        raise UserError(f"{path} is no network of the paper's form, with its letters: choose one of architecture mlp")
    return model


def score(
    model: Network,
    store: TokenStore,
    split: str,
    *,
    threads: int = 1,
    batch: int = SCORING_BATCH,
    matmul: str = "highest",
) -> Iterator[np.ndarray]:
    """Natural-log probabilities of the tokens of `split`, float32, in stream order: `batch` of them at a time.

    `matmul`: "highest" or "medium", as in a preset. Rounded products still make a distribution, near the exact one: on
    Brown they changed the perplexity of MLP9 by 0.012 %, and its scores by 0.014 nats (standard deviation).
    """
    settle(threads)
    torch.set_float32_matmul_precision(matmul)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device)
    data = in_order(model, store, split)
    begin(model, data, device)
    for contexts, targets in stream_loader(data, batch):
        yield log_probabilities(model, contexts.to(device), targets.to(device)).cpu().numpy()
