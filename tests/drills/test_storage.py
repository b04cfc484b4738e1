"""Faults of the disk and of programs: full, read-only, lmplz that dies. Root is needed for the disks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Record, refused, run
from stages import Study

STAGES = ("tokens", "network", "scores", "kneser-ney", "classes", "trigram scores", "mixture", "evaluation")
# Where the stages write that take the description of their output away before they write.
FOLDERS = {"tokens": "tokens", "scores": "network/scores", "trigram scores": "trigram/scores", "mixture": "both/scores"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and _mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder))
    if not mounted:
        pytest.skip("NO DISK WAS FILLED: a small disk can be mounted by root alone")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


def fill(folder: Path) -> Path:
    """Fill the disk to the last byte."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    stream.write(b"\0" * size)
            except OSError:
                continue
    return filler


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk(made: Study, disk: Path, record: Record, stage: str) -> None:
    study = made.copy(disk)
    before = study.contents()
    for name in ("corpus.json", "scores.json"):  # taken away now, so that it leaves no room for the rest
        (study.folder / FOLDERS.get(stage, "none") / name).unlink(missing_ok=True)
    filler = fill(disk)
    line = refused(*study.command(stage))
    assert "No space left on device" in line and str(disk) in line
    filler.unlink()
    assert not list(disk.rglob(".*"))
    study.make(stage)
    assert study.contents() == before
    record(
        f"disk full, stage {stage}",
        "a disk of 64 MiB filled to its last byte under a finished study, then the stage again",
        line,
        "nothing: with room again, the stage gives the same bytes; nothing half-written lies there",
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_read_only_disk(made: Study, disk: Path, record: Record, stage: str) -> None:
    study = made.copy(disk)
    before = study.contents()
    assert _mount("-o", "remount,ro", str(disk))
    line = refused(*study.command(stage))
    assert "Read-only file system" in line or "lmplz" in line
    assert study.contents() == before
    assert _mount("-o", "remount,rw", str(disk))
    study.make(stage)
    assert study.contents() == before
    record(
        f"read-only results, stage {stage}",
        "the disk of a finished study made read-only, then the stage again",
        line,
        "nothing: all files as before, and again after the same stage on a disk that can be written",
    )


# --- lmplz -----------------------------------------------------------------------------------------------------------

DEAD = {
    "ends with status 1": "cat > /dev/null; echo 'it cannot go on' >&2; exit 1",
    "is killed": "cat > /dev/null; kill -9 $$",
    "reads nothing and dies": "exit 3",
    "writes half a model": "cat > /dev/null; for last; do :; done; printf '\\\\data\\\\\\nngram 1=3\\n' > \"$last\"",
    "writes something else": 'cat > /dev/null; for last; do :; done; head -c 9999 /dev/urandom > "$last"',
    "is not there": "",
    "is no program": "-",
}


@pytest.mark.parametrize("how", DEAD)
def test_lmplz_that_dies(study: Study, record: Record, how: str) -> None:
    before = study.contents()
    fake = study.folder.parent / "lmplz"
    if how == "is no program":
        fake.write_bytes(b"\0\1\2\3")
    elif DEAD[how]:
        fake.write_text(f"#!/bin/sh\n{DEAD[how]}\n", encoding="utf-8")
    if fake.exists():
        fake.chmod(0o755)
    command = study.command("kneser-ney")
    command[command.index("--lmplz") + 1] = str(fake)
    line = refused(*command)
    assert "lmplz" in line
    assert study.contents() == before
    record(
        f"lmplz {how}",
        "a stand-in for lmplz, over a finished model",
        line,
        "nothing: the model that was there stayed as it was",
    )


# --- stages outside the study ----------------------------------------------------------------------------------------

SLOW_MIRROR = """
import http.server, sys, time
content = open(sys.argv[1], "rb").read()
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        for place in range(start, len(content), 4096):
            self.wfile.write(content[place : place + 4096])
            self.wfile.flush()
            time.sleep(0.05)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
FETCH = """
import sys
from nplm2003.corpora import fetch
from nplm2003.cli import main
path, port, output = sys.argv[1:]
fetch.BLOCK = 4096
path = fetch.Path(path)
checksum = fetch._checksum(path, "sha256")
toy = fetch.Dataset("toy", "", "https://example.org/toy.bin", "toy.bin", path.stat().st_size, checksum, "none")
fetch.DATASETS["toy"] = toy
sys.exit(main(["fetch", "--corpus", "toy", "--mirror", f"http://127.0.0.1:{port}", "--output", output]))
"""


def test_a_killed_download_is_taken_up_again(tmp_path: Path, record: Record) -> None:
    source, output = tmp_path / "toy.bin", tmp_path / "downloads" / "toy.bin"
    source.write_bytes(os.urandom(1 << 18))
    part = output.with_name("toy.bin.part")
    server = subprocess.Popen([sys.executable, "-c", SLOW_MIRROR, str(source)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        command = [sys.executable, "-c", FETCH, str(source), server.stdout.readline().strip(), str(output)]
        sizes = []
        for _ in range(2):
            process = subprocess.Popen(command)
            least = (sizes[-1] if sizes else 0) + 20_000
            while not part.exists() or part.stat().st_size < least:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
            sizes.append(part.stat().st_size)
            assert not output.exists()
        assert subprocess.run(command, timeout=300).returncode == 0
    finally:
        server.kill()
        server.wait()
    assert output.read_bytes() == source.read_bytes() and not part.exists()
    record(
        "kill -9 in fetch",
        "a download from a slow mirror killed twice, then the same command again",
        f"the second and third start went on after {sizes[0]:,} and {sizes[1]:,} bytes",
        "nothing: the file is whole, its checksum right",
    )


def test_a_killed_build_of_lmplz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Record) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    slow = programs / "lmplz"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    output = tmp_path / "tools" / "lmplz"
    command = [sys.executable, "-m", "nplm2003", "build-lmplz", "--output", str(output)]
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    while not output.parent.exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert not output.exists()
    slow.write_text("#!/bin/sh\ncat > /dev/null; printf '\\\\data\\\\\\n'\n")
    monkeypatch.setenv("PATH", environment["PATH"])
    run("build-lmplz", "--output", output)
    assert output.resolve() == slow.resolve()
    record(
        "kill -9 in build-lmplz",
        "killed while it tries an installed lmplz, then the same command again",
        "no lmplz was there after the kill; the rerun puts it there",
        "nothing",
    )
