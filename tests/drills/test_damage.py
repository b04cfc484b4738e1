"""Faults of what lies on disk: truncated, flipped, replaced by something else. Read again, each is one clear line."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from faults import Record, refused, run
from stages import Study

from nplm2003.corpora import fetch
from nplm2003.files import read_json, write_json


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    """Turn over the lowest bit of one byte: near the end, or in the midst of the largest part of what torch wrote."""
    content = bytearray(path.read_bytes())
    place = len(content) * 9 // 10
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            part = max(archive.infolist(), key=lambda part: part.file_size)
        names = struct.unpack("<HH", content[part.header_offset + 26 : part.header_offset + 30])
        place = part.header_offset + 30 + sum(names) + part.file_size // 2
    content[place] ^= 1
    path.write_bytes(content)


DAMAGES = {"truncated": truncate, "emptied": empty, "one bit flipped": flip}
# What is damaged, the stage that makes it, and the stage that reads it.
FILES = {
    "token ids": ("tokens/train.npy", "tokens", "trigram"),
    "token statistics": ("tokens/corpus.json", "tokens", "trigram"),
    "vocabulary": ("tokens/vocabulary.tsv", "tokens", "evaluation"),
    "weights of a network": ("network/weights.pt", "network", "scores"),
    "scores of a network": ("network/scores/valid.npy", "scores", "mixture"),
    "weights of the trigram": ("trigram/weights.json", "trigram", "trigram scores"),
    "n-gram model": ("kn/model.arpa", "kneser-ney", "kneser-ney scores"),
    "word classes": ("classes/classes.tsv", "classes", "class n-gram"),
}


# A flipped bit of JSON makes another number, or breaks its shape: tests/unit/test_tables.py tries that at any depth.
CASES = [
    (what, how)
    for what, (name, *_) in FILES.items()
    for how in DAMAGES
    if how != "one bit flipped" or ".json" not in name
]


@pytest.mark.parametrize(("what", "how"), CASES)
def test_damaged_file(study: Study, record: Record, what: str, how: str) -> None:
    name, maker, reader = FILES[what]
    before = study.contents()
    DAMAGES[how](study.folder / name)
    line = refused(*study.command(reader))
    study.make(maker, reader)
    assert study.contents() == before
    record(
        f"{what} {how}",
        f"{name} {how}, then the stage that reads it",
        line,
        "nothing: the stage that made the file run again, all as before",
    )


def damaged_below(path: Path, keys: str, value: object) -> None:
    """Put `value` at the place `keys` (a.b.c) in a JSON file."""
    content = read_json(path)
    *above, last = keys.split(".")
    place = content
    for key in above:
        place = place[key]
    place[last] = value
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "keys", "value", "maker", "reader"),
    [
        ("tokens/corpus.json", "tokens.valid", "many", "tokens", "trigram"),
        ("network/training.json", "preset", None, "network", "scores"),
        ("network/scores/scores.json", "tokens", [1, 2, 3], "scores", "evaluation"),
        ("trigram/weights.json", "bins", [{"weights": "equal"}], "trigram", "trigram scores"),
        ("kn/model.json", "checksum", 0, "kneser-ney", "kneser-ney scores"),
    ],
)
def test_damage_below_the_top_of_a_description(
    study: Study, record: Record, name: str, keys: str, value: object, maker: str, reader: str
) -> None:
    before = study.contents()
    damaged_below(study.folder / name, keys, value)
    line = refused(*study.command(reader))
    assert Path(name).name in line
    study.make(maker, reader)
    assert study.contents() == before
    record(
        f"{name} damaged below its top level",
        f"{keys} replaced by {value!r}, then the stage that reads it",
        line,
        "nothing: the stage that made the file run again, all as before",
    )


def test_scores_of_another_vocabulary(study: Study, record: Record) -> None:
    before = study.contents()
    run(*study.command("tokens", size="25", output="/other"))
    lines = [
        refused(*study.command("evaluation", tokens="/other", output="/none.json")),
        refused(*study.command("mixture", tokens="/other", output="/none", weights_output="/none.json")),
        refused(*study.command("scores", tokens="/other", output="/none")),
        refused(*study.command("kneser-ney scores", tokens="/other", output="/none")),
    ]
    assert not list(study.folder.glob("none*"))
    shutil.rmtree(study.folder / "other")
    assert study.contents() == before
    record(
        "scores, network and n-gram of another vocabulary",
        "|V| of 25 in place of 30; evaluated, mixed and scored",
        lines[0],
        "nothing: refused before anything was written",
    )


# --- checkpoints -----------------------------------------------------------------------------------------------------

EPOCHS = 40


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen([sys.executable, "-m", "nplm2003", *command], stderr=stream, start_new_session=True)


def epochs_seen(log: Path) -> int:
    return len(re.findall(r"^epoch \d", log.read_text(encoding="utf-8"), flags=re.MULTILINE)) if log.exists() else 0


def kill_after(command: list[str], log: Path, epochs: int) -> None:
    """Start a training and kill it once the log has so many epochs."""
    process = start(command, log)
    while epochs_seen(log) < epochs:
        assert process.poll() is None, log.read_text()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)


class LongTraining(NamedTuple):
    """A study with a training that was killed after 5 epochs, and what the study would have come to."""

    study: Study
    expected: dict[str, str]

    @property
    def log(self) -> Path:
        return self.study.folder.parent / "log"

    def command(self, **changes: str) -> list[str]:
        return self.study.command("network", preset="long", output="/long", **changes)


@pytest.fixture(scope="module")
def killed(made: Study, tmp_path_factory: pytest.TempPathFactory) -> LongTraining:
    training = LongTraining(made.copy(tmp_path_factory.mktemp("long")), {})
    presets = read_json(training.study.folder / "presets.json")
    presets["presets"]["long"] = presets["presets"]["quick"] | {"epochs_direct": EPOCHS, "patience": EPOCHS}
    write_json(training.study.folder / "presets.json", presets)
    run(*training.command())
    training.expected.update(training.study.contents())
    shutil.rmtree(training.study.folder / "long")
    kill_after(training.command(), training.log, 5)
    return training


@pytest.fixture
def training(killed: LongTraining, tmp_path: Path) -> LongTraining:
    """A copy of it that a drill may damage."""
    shutil.copy(killed.log, tmp_path)
    return LongTraining(killed.study.copy(tmp_path), killed.expected)


def test_a_killed_training_replays_the_same_batches(training: LongTraining, record: Record) -> None:
    for epochs in (12, 20, 30):
        kill_after(training.command(), training.log, epochs)
    assert start(training.command(), training.log).wait(timeout=600) == 0
    assert training.study.contents() == training.expected
    seen = epochs_seen(training.log)
    # Of every kill at most the epoch that it came into is done again.
    assert EPOCHS <= seen <= EPOCHS + 4
    record(
        "kill -9 of a training, four times",
        f"a training of {EPOCHS} epochs killed after about 5, 12, 20 and 30 of them, then the same command again",
        f"the log has {seen} lines of epochs in place of {EPOCHS}: each start went on from the last finished epoch",
        "nothing: weights.pt has the bytes of an undisturbed training",
    )


def stray(path: Path) -> None:
    (path.parent / "a stray folder").mkdir()
    (path.parent / "a stray folder" / "file").write_text("x")
    path.unlink()  # so that the folder is emptied


def malicious(path: Path) -> None:
    """A pickle that would make a file, were it loaded as pickles are."""
    torch.save({"state_dict": Payload(path.parent.parent / "pwned")}, path)


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    ("name", "how", "damage"),
    [
        *((name, how, damage) for name in ("last.ckpt", "best.ckpt") for how, damage in DAMAGES.items()),
        ("best.ckpt", "removed", Path.unlink),
        ("last.ckpt", "replaced by a pickle that runs code", malicious),
        ("settings.json", "truncated", truncate),
        ("settings.json", "removed, beside a stray folder", stray),
    ],
)
def test_damaged_checkpoint(
    training: LongTraining, record: Record, name: str, how: str, damage: Callable[[Path], None]
) -> None:
    damage(training.study.folder / "long" / "checkpoints" / name)
    said = run(*training.command())
    lines = [line for line in said.splitlines() if "damaged" in line]
    assert len(lines) == (0 if "stray" in how else 1)
    assert training.study.contents() == training.expected
    record(
        f"checkpoint damaged: {name} {how}",
        "a training killed after 5 epochs, the file damaged, then the same command again",
        lines[0] if lines else "the training starts from the first epoch",
        "nothing: weights.pt has the bytes of an undisturbed training",
    )


def test_a_checkpoint_of_another_configuration(training: LongTraining, record: Record) -> None:
    run(*training.command(seed="8"))
    assert training.study.contents()["long/weights.pt"] != training.expected["long/weights.pt"]
    run(*training.command())
    assert training.study.contents() == training.expected
    record(
        "checkpoint of another configuration",
        "a training killed after 5 epochs; then one with another seed into the same folder, then the first again",
        "each trains from its first epoch: the checkpoints of other settings are discarded",
        "nothing: weights.pt has the bytes of an undisturbed training",
    )


def test_a_pickle_is_never_run(study: Study, record: Record) -> None:
    before = study.contents()
    weights, scores = study.folder / "network" / "weights.pt", study.folder / "network" / "scores" / "valid.npy"
    payload = Payload(study.folder / "pwned")
    torch.save({"shape": payload}, weights)
    lines = [refused(*study.command("scores"))]
    weights.write_bytes(pickle.dumps(payload))
    lines.append(refused(*study.command("scores")))
    scores.write_bytes(
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    )
    with scores.open("ab") as stream:
        pickle.dump([payload], stream)
    lines.append(refused(*study.command("evaluation")))
    assert not (study.folder / "pwned").exists()
    study.make("network", "scores", "evaluation")
    assert study.contents() == before
    record(
        "pickles that run code",
        "as weights.pt (by torch, and bare) and as the scores of a model, their payload to make a folder",
        lines[0],
        "nothing: no code was run; the stages again, all as before",
    )


# --- downloads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds the file of a made-up dataset `toy`."""
    path = tmp_path / "mirror" / "toy.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"some words\n" * 9_999, mtime=0))
    checksum = fetch._checksum(path, "sha256")
    toy = fetch.Dataset("toy", "", "https://example.org/toy.gz", "toy.gz", path.stat().st_size, checksum, "none")
    monkeypatch.setitem(fetch.DATASETS, "toy", toy)
    return path


@pytest.mark.parametrize("how", ["truncated", "one bit flipped"])
def test_a_damaged_download(mirror: Path, tmp_path: Path, record: Record, how: str) -> None:
    whole, output = mirror.read_bytes(), tmp_path / "downloads" / "toy.gz"
    DAMAGES[how](mirror)
    line = refused("fetch", "--corpus", "toy", "--mirror", str(mirror.parent), "--output", str(output))
    assert not output.exists()
    mirror.write_bytes(whole)
    run("fetch", "--corpus", "toy", "--mirror", str(mirror.parent), "--output", str(output))
    # The same of a file that was damaged after it came.
    DAMAGES[how](output)
    run("fetch", "--corpus", "toy", "--mirror", str(mirror.parent), "--output", str(output))
    assert output.read_bytes() == whole
    record(
        f"download {how}",
        "the file of the mirror, and later the fetched one",
        line,
        "nothing: fetched again, the file is whole",
    )
