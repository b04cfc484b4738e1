"""Training a network through Lightning: the paper's stochastic gradient and ours, one loop."""

from __future__ import annotations

import fcntl
import hashlib
import io
import logging
import math
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback, EarlyStopping, ModelCheckpoint, TQDMProgressBar
from pytorch_lightning.core.optimizer import LightningOptimizer
from pytorch_lightning.plugins.environments import LightningEnvironment
from torch import Tensor

from nplm2003.errors import UserError
from nplm2003.files import read_json, whole, write_array, write_json, write_text
from nplm2003.neural.architectures import PAPER, complete_options, require_own
from nplm2003.neural.cooccurrence import svd_features
from nplm2003.neural.data import Pieces, Stretch, Windows, examples_of, stream_loader, training_loader
from nplm2003.neural.network import make_network
from nplm2003.neural.objectives import Objective, make_objective
from nplm2003.neural.outputs import make_output
from nplm2003.neural.parallel import Team, run
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import (
    SCORING_BATCH,
    SHAPE,
    UNREADABLE,
    Network,
    begin,
    in_order,
    load_whole,
    log_probabilities,
    settle,
)
from nplm2003.neural.variant import Variant
from nplm2003.neural.word2vec import word2vec_features
from nplm2003.vocabulary import TokenStore

CURVE_COLUMNS = ("epoch", "examples", "rate", "train_perplexity", "valid_perplexity", "seconds", "best")
MONITOR = "valid_perplexity"
KEPT = ("examples", "history", "updates")  # what a checkpoint holds beside Lightning's own


def dropout(like: Tensor, share: float, size: int, first: int) -> Tensor | float:
    """Factors for the numbers of `like`: 0 for a random `share` of them, 1 / (1 - share) for the others.

    `like` has the rows from `first` on of a mini-batch of `size`. The share is rounded to 1 / 65,536: four decisions
    from one random number take a third of the time of torch's own.
    """
    if share == 0:
        return 1.0
    width = like.shape[1]
    bits = torch.empty(-(-size * width // 4), dtype=torch.int64, device=like.device).random_(-(2**63), None)
    own = bits.view(torch.int16)[first * width :][: like.numel()]
    return (own.view(like.shape) >= round(share * 65_536) - 32_768).to(like.dtype).div_(1 - share)


class Trainer(pl.LightningModule):
    """One network, one preset and its objective. `total` is the number of examples that all its epochs would hold."""

    def __init__(self, model: Network, preset: Preset, objective: Objective, seed: int, total: int) -> None:
        super().__init__()
        self.automatic_optimization = False  # one step of Lightning is a stretch of updates
        self.model, self.preset, self.objective, self.seed, self.total = model, preset, objective, seed, total
        self.team = Team()
        self.examples = 0
        self.owed_decay = 0.0  # weight decay that sparse updates have left to do
        self.history: list[dict[str, Any]] = []
        self._start_epoch()

    @property
    def updates(self) -> Any:
        """What the updates of the network keep between them, beside its parameters."""
        return self.model.keep() if isinstance(self.model, Variant) else None

    @updates.setter
    def updates(self, kept: Any) -> None:
        if isinstance(self.model, Variant):
            self.model.restore(kept)

    def _start_epoch(self) -> None:
        self.train_nats, self.train_tokens, self.started = 0.0, 0.0, time.monotonic()
        self.valid_nats, self.valid_tokens = 0.0, 0.0

    def join(self, team: Team) -> None:
        """Train as one process of several, which were all given this module."""
        self.team = team
        team.receive(self.model)
        self.objective = team.objective(self.objective)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """What Lightning counts its steps by; it never gets a gradient. The updates are made in `descend`."""
        return torch.optim.SGD(self.model.parameters(), lr=self.preset.rate)

    def on_train_epoch_start(self) -> None:
        self._start_epoch()
        if isinstance(self.model, Variant):
            self.model.begin()

    def training_step(self, batch: Stretch, index: int) -> None:
        """One stretch of updates, one for each mini-batch. Lightning's own work per step would cost as much as one."""
        if index == 0:
            # Dropout and noise draw from this. It is seeded per epoch, and once the loader has started: that draws a
            # number as well, before on_train_epoch_start in the first epoch of a run, after it in the others.
            entropy = (self.seed, self.current_epoch, *self.team.entropy)
            torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        self.update(batch)
        counter = self.optimizers()
        assert isinstance(counter, LightningOptimizer)
        counter.step()  # checkpoints are kept of steps that count

    def update(self, batch: Stretch) -> None:
        """One update for each mini-batch of a stretch."""
        for number, (contexts, targets) in enumerate(batch):
            if self.team.takes(number):
                self.descend(contexts, targets)
                if not self.preset.sampled:
                    self._decay()
                self.team.meet(self.model)
            self.examples += len(targets)
        self._decay()

    @torch.no_grad()
    def descend(self, contexts: Tensor, targets: Tensor) -> None:
        """One update of stochastic gradient descent, on one mini-batch: `contexts` (B, n-1), `targets` (B,).

        Of several processes (`nplm2003.neural.parallel`), each sees to its part of the examples, or of the rows of O.

        Gradients are written out as in section 3.2 of the paper: a sampled update is so small that autograd and an
        optimizer would take a sixth of its time.
        """
        model, preset, team, size = self.model, self.preset, self.team, len(targets)
        rate = preset.rate_at(self.examples, self.total)
        self.owed_decay += rate * preset.weight_decay * (1 if preset.reduction == "mean" else size)
        rate *= team.gain / size if preset.reduction == "mean" else team.gain  # of the summed gradient
        if isinstance(model, Variant):
            with torch.enable_grad():
                left = preset.rate_at(self.examples, self.total) / preset.rate
                self._count(model.learn(contexts, targets, self.objective, rate, left), size)
            return
        part = team.part(size)
        contexts, targets = contexts[part], targets[part]
        if not len(targets):
            return

        x = model.window(contexts)
        x_factor = dropout(x, preset.dropout, size, part.start)
        x = x * x_factor
        a = model.activation(x)
        a_factor = 1.0 if a is None else dropout(a, preset.dropout, size, part.start)
        z = model.join(x, a if a is None else a * a_factor)
        nats, dz = self.objective(model.O[team.rows], z, targets, rate)
        self._count(nats, len(targets))

        dx = dz[:, : x.shape[1]] if model.direct else torch.zeros_like(x)
        if a is not None and model.H is not None and model.d is not None:
            do = dz[:, -1 - model.hidden : -1] * a_factor * (1 - a * a)  # by o = d + H x
            dx = torch.addmm(dx, do, model.H)
            model.H.addmm_(do.T, x, alpha=-rate)
            model.d.sub_(do.sum(dim=0), alpha=rate)
        if model.C.requires_grad:
            dx = (dx * x_factor).view(-1, model.features)
            model.C.index_add_(0, contexts.flatten(), dx, alpha=-rate)

    def _count(self, nats: float, tokens: int) -> None:
        self._perplexity(nats, tokens)
        self.train_nats += nats
        self.train_tokens += tokens

    def _decay(self) -> None:
        """Do the weight decay that is owed: on weights and C, never on the biases b and d (section 2).

        Sampled updates touch few rows of C and O, decay all of them: it is done once for a whole stretch.
        """
        if self.owed_decay and not isinstance(self.model, Variant):
            with torch.no_grad():
                learnt = self.model.C if self.model.C.requires_grad else None
                for weight in (learnt, self.model.H, self.model.O[self.team.rows, :-1]):  # of O: W and U
                    if weight is not None:
                        weight.mul_(1 - self.owed_decay)
        self.owed_decay = 0.0

    def _perplexity(self, nats: float, tokens: float) -> float:
        """exp(nats / tokens); UserError where that is no number, since the training has diverged."""
        try:
            perplexity = math.exp(nats / tokens)
        except OverflowError:  # above 709 nats a token
            perplexity = math.inf
        if not math.isfinite(perplexity):
            raise self._diverged()
        return perplexity

    def _diverged(self) -> UserError:
        return UserError(
            f"training diverged in epoch {self.current_epoch + 1} after {self.examples:,} examples (rate "
            f"{self.preset.rate_at(self.examples, self.total):.3g}): lower the preset's rate or batch"
        )

    def on_validation_epoch_start(self) -> None:
        self.team.gather(self.model)
        loader = self.trainer.val_dataloaders
        assert loader is not None
        begin(self.model, loader.dataset, self.device)

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        if index % self.team.processes == self.team.rank:
            contexts, targets = batch
            self.valid_nats -= float(log_probabilities(self.model, contexts, targets).sum(dtype=torch.float64))
            self.valid_tokens += len(targets)

    def on_validation_epoch_end(self) -> None:
        self.valid_nats, self.valid_tokens = self.team.total(self.valid_nats, self.valid_tokens)
        valid = self._perplexity(self.valid_nats, self.valid_tokens)
        if valid > self.model.vocabulary**2:  # twice the nats of a uniform guess: no number to choose an epoch by
            raise self._diverged()
        self.log(MONITOR, valid)

    def on_train_epoch_end(self) -> None:
        valid = self._perplexity(self.valid_nats, self.valid_tokens)
        self.history.append(
            {
                "epoch": self.current_epoch + 1,
                "examples": self.examples,
                "rate": self.preset.rate_at(self.examples, self.total),
                "train_perplexity": self._perplexity(*self.team.total(self.train_nats, self.train_tokens)),
                "valid_perplexity": valid,
                "seconds": round(time.monotonic() - self.started, 1),
            }
        )
        # One line per epoch: what a log needs, and no more.
        row = self.history[-1]
        if self.team.rank == 0:
            print(
                f"epoch {row['epoch']}/{self.trainer.max_epochs}  train {row['train_perplexity']:.1f}  "
                f"valid {valid:.2f}  rate {row['rate']:.4g}  {row['seconds']:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint.update({key: getattr(self, key) for key in KEPT})

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        for key in KEPT:
            setattr(self, key, checkpoint[key])


class Patience(EarlyStopping):
    """Early stopping that also holds for a training that was killed after its last epoch."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop at once if the restored count says so: Lightning restores the count, not the decision."""
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience


def products_error() -> float:
    """Largest relative error of one matrix product as computed now: it says which arithmetic really ran."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(64, 256, generator=generator) for _ in range(2))
    exact = left.double() @ right.double().T
    return float(((left @ right.T).double() - exact).abs().max() / exact.abs().max())


def train(
    store: TokenStore,
    *,
    order: int,
    hidden: int,
    features: int,
    direct: bool,
    preset: Preset,
    seed: int,
    output: Path | str,
    word_features: str = "learnt",
    outputs: str = "words",
    class_of: np.ndarray | None = None,
    architecture: str = PAPER,
    options: Mapping[str, float] | None = None,
    threads: int = 1,
    processes: int = 1,
    scheme: str | None = None,
    progress: bool = False,
    provenance: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train one network on train, choosing the epoch on valid; test is never opened.

    `word_features`: C is "learnt" from a random start, or from the vectors of "word2vec" (`nplm2003.neural.word2vec`),
    or stays at the "svd" of the co-occurrence counts of train (`nplm2003.neural.cooccurrence`); the other parameters
    start the same in all cases. `outputs`: the output layer (`nplm2003.neural.outputs`), with `class_of` (|V|,), the
    classes of the words, for "classes" and "tree".
    `architecture`: the paper's, or another with its `options` (`nplm2003.neural.architectures`).
    Several `processes` of `threads` each share the work by a `scheme` of `nplm2003.neural.parallel`, on the CPU.
    Writes into `output`: `weights.pt` (the best epoch), `features.npy` (its C), `learning_curve.csv` and
    `training.json`. While it runs, `output/checkpoints` holds the last and the best epoch; a run that was killed
    goes on from the last finished epoch if its settings and tokens are the same, and ends with the same result.
    Returns the content of `training.json`.
    """
    output = Path(output)
    if len(store["valid"]) == 0:
        raise UserError(f"{store.folder} has an empty validation split: training needs one to choose the epoch")
    settle(threads)
    torch.set_float32_matmul_precision(preset.matmul)
    output_layer = make_output(outputs, store.size, class_of, store.train_counts)
    if preset.sampled and outputs != "words":
        raise UserError(f"the output layer {outputs!r} is trained by its exact objective: choose a preset with softmax")
    if preset.self_normalisation and (scheme == "vocabulary" or outputs != "words"):
        raise UserError("self_normalisation is for one softmax over all words, not split by vocabulary: set it to 0")
    if scheme == "vocabulary" and (preset.sampled or outputs != "words"):
        raise UserError("the vocabulary is split for exact softmax over all words alone: choose another scheme")
    options = complete_options(architecture, options or {})
    require_own(
        architecture,
        hidden=hidden,
        options=options,
        direct=direct,
        word_features=word_features,
        weight_decay=preset.weight_decay,
        objective=preset.objective,
    )
    if architecture != PAPER and scheme is not None:
        raise UserError(f"the architecture {architecture} is trained by one process: set parallel to null")
    make = partial(
        make_network,
        architecture,
        vocabulary=store.size,
        order=order,
        hidden=hidden,
        features=features,
        direct=direct,
        options=options,
        output=output_layer,
    )
    with torch.device("meta"):  # which holds shapes alone
        _require_memory(sum(parameter.numel() for parameter in make().parameters()))
    torch.manual_seed(seed)
    model = make()
    if isinstance(model, Variant):
        model.dropout = preset.dropout
    if preset.bias_start == "unigram":
        model.b.data.copy_(output_layer.start(store.train_counts))
    if word_features == "svd":
        model.C.data.copy_(svd_features(store, features))
        model.C.requires_grad_(False)
    elif word_features == "word2vec":
        model.C.data.copy_(word2vec_features(store, features, seed))

    if model.sequential and len(store["train"]) < order - 1:
        raise UserError(
            f"train has {len(store['train']):,} tokens, fewer than the {order - 1:,} of one piece: choose a lower order"
        )
    windows = Pieces(store, "train", order - 1) if model.sequential else Windows(store, "train", order)
    epochs = preset.epochs(direct)
    objective = make_objective(preset, store.train_counts, output_layer.descend)
    module = Trainer(model, preset, objective, seed, total=epochs * examples_of(windows, preset.batch))
    settings = {
        "architecture": architecture,
        "order": order,
        "hidden": hidden,
        "features": features,
        "direct": direct,
        "options": options,
        "word_features": word_features,
        "outputs": outputs,
        "classes": None if class_of is None else hashlib.sha256(class_of.tobytes()).hexdigest(),
        "rows": output_layer.rows,
        "preset": preset.as_dict(),
        "parallel": None if scheme is None else {"scheme": scheme, "processes": processes},
        "seed": seed,
        "vocabulary": store.fingerprint,
    }
    with _checkpoint_folder(output / "checkpoints", settings) as checkpoints:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        trained_parameters = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        fit = partial(
            _fit,
            module,
            windows,
            in_order(model, store, "valid"),
            checkpoints,
            epochs,
            threads=threads,
            progress=progress,
        )
        history, device, error = fit(Team()) if scheme is None else run(fit, scheme, processes)

        checkpoint = torch.load(checkpoints / "best.ckpt", map_location="cpu", weights_only=True)
        best_row = history[checkpoint["epoch"]]
        weights = {name.removeprefix("model."): value for name, value in checkpoint["state_dict"].items()}
        summary = {
            **settings,
            "parameters": parameters,
            "trained_parameters": trained_parameters,
            "best_epoch": best_row["epoch"],
            "epochs": len(history),
            "valid_perplexity": best_row["valid_perplexity"],
            "seconds": round(sum(row["seconds"] for row in history), 1),
            "threads": threads,
            "device": device,
            "products_relative_error": error,
            "provenance": dict(provenance or {}),
        }
        _write_curve(output / "learning_curve.csv", history, best_row["epoch"])
        model.load_state_dict(weights)
        write_array(output / "features.npy", model.C.detach().numpy())
        with whole(output / "weights.pt") as temporary:
            shape = {key: settings[key] for key in SHAPE}
            classes = None if class_of is None else torch.from_numpy(class_of)
            # Given a path, torch writes the temporary name into the file; given a stream, it hides that a disk is full.
            buffer = io.BytesIO()
            torch.save({"shape": shape, "class_of": classes, "weights": weights}, buffer)
            temporary.write_bytes(buffer.getbuffer())
        write_json(output / "training.json", summary)
    return summary


def _fit(
    module: Trainer,
    train: Windows | Pieces,
    valid: Windows | Pieces,
    checkpoints: Path,
    epochs: int,
    team: Team,
    *,
    threads: int,
    progress: bool,
) -> tuple[list[dict[str, Any]], str, float]:
    """Train, or go on from the last checkpoint; return the history, the device, and the error of its products."""
    settle(threads)
    torch.set_float32_matmul_precision(module.preset.matmul)
    module.join(team)
    last = checkpoints / "last.ckpt"
    best, newest = (
        ModelCheckpoint(
            checkpoints,
            filename=name,
            monitor=monitor,
            enable_version_counter=False,
            save_on_train_epoch_end=True,
        )
        # Lightning's own save_last writes a copy of the best epoch alone.
        for name, monitor in (("best", MONITOR), ("last", None))
    )
    # Patience is counted in epochs without any improvement.
    stopping = Patience(MONITOR, patience=module.preset.patience, check_on_train_epoch_end=True)
    callbacks: list[Callback] = [best, newest, stopping]
    if progress:
        callbacks.append(TQDMProgressBar(refresh_rate=50))
    _quiet()
    alone = team.processes == 1
    trainer = pl.Trainer(
        accelerator="auto" if alone else "cpu",
        strategy="auto" if alone else "ddp",  # which sees to epochs and checkpoints; the team sees to updates
        devices=team.processes,
        plugins=LightningEnvironment(),  # not Slurm's, whose tasks are not these processes
        use_distributed_sampler=False,
        max_epochs=epochs,
        callbacks=callbacks,
        logger=False,
        enable_progress_bar=progress,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    assert (trainer.world_size, trainer.global_rank) == (team.processes, team.rank)
    device, error = str(trainer.strategy.root_device), products_error()
    if team.rank == 0:
        parameters = sum(parameter.numel() for parameter in module.parameters())
        several = "" if alone else f"{team.processes} processes of "
        print(
            f"{parameters:,} parameters, {examples_of(train, module.preset.batch):,} examples an epoch, "
            f"{several}{threads} thread(s) on {device}, matrix products {module.preset.matmul!r} (relative error "
            f"{error:.1e})",
            file=sys.stderr,
            flush=True,
        )
    try:
        trainer.fit(
            module,
            training_loader(train, module.preset.batch, module.seed),
            stream_loader(valid, SCORING_BATCH, module.preset.valid_every),
            ckpt_path=str(last) if last.is_file() else None,
            weights_only=True,
        )
    except SystemExit:  # what Lightning makes of an interrupt
        raise KeyboardInterrupt from None
    return module.history, device, error


def _require_memory(parameters: int) -> None:
    """Refuse a network that this machine cannot hold, before the system kills the training for it."""
    needed, there = 4 * parameters, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise UserError(
            f"the network has {parameters:,} parameters, {needed / 1e9:,.0f} GB of a memory of {there / 1e9:,.0f} GB: "
            "choose fewer features or hidden units, or a lower order"
        )


@contextmanager
def _checkpoint_folder(folder: Path, settings: dict[str, Any]) -> Iterator[Path]:
    """The folder of checkpoints, emptied unless it was made with the same settings; removed after a success.

    One training at a time may use it. The lock is the system's: it ends with the process, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "lock"
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"another training writes to {folder}: wait for its end, or choose another output"
            ) from error
        except OSError:
            pass  # a file system without locks
        note = folder / "settings.json"
        if not _can_resume(folder, note, settings):
            for path in folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path != lock:
                    path.unlink()
            write_json(note, settings)
        yield folder
        note.unlink()  # first: what is left of a removal that was cut short is then discarded
    shutil.rmtree(folder)


def _can_resume(folder: Path, note: Path, settings: dict[str, Any]) -> bool:
    """Whether the checkpoints in `folder` were made with `settings`, which `note` says, and are whole."""
    try:
        if not note.exists() or read_json(note) != settings:
            return False
        found = [path for path in (folder / "last.ckpt", folder / "best.ckpt") if path.exists()]
        whole = not found or (len(found) == 2 and all(map(_is_checkpoint, found)))
    except (UserError, OSError):
        whole = False
    if not whole:
        print(f"the checkpoints in {folder} are damaged: training starts from the first epoch", file=sys.stderr)
    return whole


def _is_checkpoint(path: Path) -> bool:
    """Whether the file is a whole checkpoint of a training."""
    try:
        content = load_whole(path)
    except UNREADABLE:
        return False
    return isinstance(content, dict) and {"epoch", "state_dict", "loops", "callbacks", *KEPT} <= set(content)


def _write_curve(path: Path, history: list[dict[str, Any]], best_epoch: int) -> None:
    lines = [",".join(CURVE_COLUMNS)]
    for row in history:
        values = {**row, "best": int(row["epoch"] == best_epoch)}
        lines.append(
            ",".join(
                f"{values[column]:.6g}" if isinstance(values[column], float) else str(values[column])
                for column in CURVE_COLUMNS
            )
        )
    write_text(path, "\n".join(lines) + "\n")


def _quiet() -> None:
    """Keep Lightning's advice about workers, devices and loggers out of the logs: it does not apply here."""
    for name in ("pytorch_lightning", "lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message="The `srun` command is available")
