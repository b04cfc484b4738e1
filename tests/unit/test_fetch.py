"""Fetching against a server on 127.0.0.1: resume, cut connections, wrong bytes, mirrors, proxies, offline."""

from __future__ import annotations

import csv
import hashlib
import random
import socket
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nplm2003.cli import main
from nplm2003.corpora.fetch import DATASETS, Dataset, fetch
from nplm2003.errors import UserError

REPOSITORY = Path(__file__).parents[2]
CONTENT = random.Random(1).randbytes(300_000)


class Server(ThreadingHTTPServer):
    """Serves `content` at the paths in `places`; after `cuts[0]` body bytes of a request it closes the connection."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.places = {"/corpora/toy.zip"}
        self.cuts: list[int] = []
        self.ranges = True
        self.requests: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.requests.append((self.path, wanted))
        if self.path not in self.server.places:
            self.send_error(404)
            return
        body = self.server.content
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start and start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        cut = self.server.cuts.pop(0) if self.server.cuts else len(body)
        self.wfile.write(body[start : start + cut])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def checksum(content: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def toy(url: str = "http://127.0.0.1:9/corpora/toy.zip", checksums: str = "") -> Dataset:
    return Dataset("toy", "a toy", url, "corpora/toy.zip", len(CONTENT), checksums or checksum(CONTENT), "free to use")


@pytest.fixture
def dataset(server: Server) -> Dataset:
    return toy(f"{server.url}/corpora/toy.zip")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "toy.zip"


def part_of(output: Path) -> Path:
    return output.with_name("toy.zip.part")


def check_done(output: Path) -> None:
    assert output.read_bytes() == CONTENT
    assert [path.name for path in output.parent.iterdir()] == ["toy.zip"]


def failure(dataset: Dataset, output: Path, mirror: str | None = None) -> str:
    """The one line of the error; the output must not be there."""
    with pytest.raises(UserError) as error:
        fetch(dataset, output, mirror)
    assert not output.exists()
    message = str(error.value)
    assert "\n" not in message
    return message


def test_whole_download(server: Server, dataset: Dataset, output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fetch(dataset, output)
    check_done(output)
    assert server.requests == [("/corpora/toy.zip", None)]
    assert capfd.readouterr() == ("", "")  # no progress bar in a log


def test_resumes_what_an_earlier_run_left(server: Server, dataset: Dataset, output: Path) -> None:
    output.parent.mkdir()
    part_of(output).write_bytes(CONTENT[:123_456])
    fetch(dataset, output)
    check_done(output)
    assert server.requests == [("/corpora/toy.zip", "bytes=123456-")]


def test_a_complete_part_needs_no_connection(server: Server, dataset: Dataset, output: Path) -> None:
    output.parent.mkdir()
    part_of(output).write_bytes(CONTENT)
    fetch(dataset, output)
    check_done(output)
    assert server.requests == []


def test_cut_connection_is_taken_up_again(server: Server, dataset: Dataset, output: Path) -> None:
    server.cuts = [100_000, 50_000]
    fetch(dataset, output)
    check_done(output)
    assert [wanted for _, wanted in server.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_dead_connection_keeps_the_part_for_the_next_run(server: Server, dataset: Dataset, output: Path) -> None:
    server.cuts = [100_000, 0]
    assert "100,000 of 300,000 bytes are kept" in failure(dataset, output)
    assert part_of(output).read_bytes() == CONTENT[:100_000]
    fetch(dataset, output)
    check_done(output)
    assert server.requests[-1][1] == "bytes=100000-"


def test_server_that_cannot_resume(server: Server, dataset: Dataset, output: Path) -> None:
    server.ranges = False
    output.parent.mkdir()
    part_of(output).write_bytes(b"x" * 1000)
    fetch(dataset, output)
    check_done(output)


def test_wrong_bytes_are_removed(server: Server, dataset: Dataset, output: Path) -> None:
    server.content = bytes(len(CONTENT))
    message = failure(dataset, output)
    assert "not the pinned toy corpus" in message
    assert f"{checksum(server.content)}, expected {dataset.checksums}" in message
    assert not part_of(output).exists()


def test_wrong_size_is_refused_before_it_is_read(server: Server, dataset: Dataset, output: Path) -> None:
    server.content = b"<html>please log in</html>"
    assert "a file of 26 bytes, not 300,000" in failure(dataset, output)
    assert not part_of(output).exists()


def test_part_longer_than_the_file_of_the_server(server: Server, dataset: Dataset, output: Path) -> None:
    server.content = b"short"
    output.parent.mkdir()
    part_of(output).write_bytes(CONTENT[:1000])
    assert "416" in failure(dataset, output)
    assert not part_of(output).exists()


@pytest.mark.parametrize("mirror", [None, "prefix"])
def test_not_found(server: Server, dataset: Dataset, output: Path, mirror: str | None) -> None:
    server.places = set()
    message = failure(dataset, output, mirror and f"{server.url}/nowhere/")
    assert "404" in message
    assert (dataset.url if mirror is None else "/nowhere/") in message


def test_offline_names_the_three_ways(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as closing:
        port = closing.getsockname()[1]
    message = failure(toy(f"http://127.0.0.1:{port}/corpora/toy.zip"), output)
    for way in ("URL prefix", "`mirror`", "NPLM2003_MIRROR", "local folder that holds corpora/toy.zip", str(output)):
        assert way in message


@pytest.mark.parametrize(
    ("place", "mirror"),
    [
        ("/corpora/toy.zip", ""),
        ("/pub/corpora/toy.zip", "/pub/"),
        ("/pub/nltk/corpora/toy.zip", "/pub"),
        ("/gh-pages/packages/corpora/toy.zip", "/gh-pages"),
        ("/toy.zip", ""),
        ("/any/name.zip", "/any/name.zip"),
    ],
)
def test_mirror_by_url(server: Server, output: Path, place: str, mirror: str) -> None:
    server.places = {place}
    fetch(toy(), output, server.url + mirror)
    check_done(output)


def test_proxy_variables_are_honoured(server: Server, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setattr(urllib.request, "_opener", None)  # urllib reads the variables when it makes its opener
    server.places = {"http://corpus.invalid/toy.zip"}
    fetch(toy("http://corpus.invalid/toy.zip"), output)
    check_done(output)


@pytest.mark.parametrize("layout", ["corpora/toy.zip", "nltk/corpora/toy.zip", "packages/corpora/toy.zip", "toy.zip"])
def test_mirror_by_folder(tmp_path: Path, output: Path, layout: str) -> None:
    place = tmp_path / "a mirror" / layout
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    fetch(toy(), output, str(tmp_path / "a mirror"))
    check_done(output)


@pytest.mark.parametrize("as_url", [False, True])
def test_mirror_by_file(tmp_path: Path, output: Path, as_url: bool) -> None:
    place = tmp_path / "a copy.dat"
    place.write_bytes(CONTENT)
    fetch(toy(), output, place.as_uri() if as_url else str(place))
    check_done(output)


def test_damaged_local_file(tmp_path: Path, output: Path) -> None:
    place = tmp_path / "toy.zip"
    place.write_bytes(CONTENT[:-1])
    message = failure(toy(), output, str(tmp_path))
    assert str(place) in message
    assert "not the pinned toy corpus" in message


def test_any_of_the_pinned_checksums_will_do(tmp_path: Path, output: Path) -> None:
    (tmp_path / "toy.zip").write_bytes(b"packed otherwise")
    known = f"{checksum(CONTENT)} {checksum(b'packed otherwise', 'md5')}"
    fetch(toy(checksums=known), output, str(tmp_path))
    assert output.read_bytes() == b"packed otherwise"
    (tmp_path / "toy.zip").write_bytes(b"another")
    output.unlink()
    assert f"{checksum(b'another')}, expected {checksum(CONTENT)}" in failure(
        toy(checksums=known), output, str(tmp_path)
    )


def test_local_mirror_without_the_file(tmp_path: Path, output: Path) -> None:
    message = failure(toy(), output, str(tmp_path))
    assert str(tmp_path) in message
    assert "corpora/toy.zip" in message


def test_right_output_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "toy.zip"
    output.write_bytes(CONTENT)
    before = output.stat().st_mtime_ns
    fetch(toy(), output, "/nowhere")  # would fail if it were asked
    assert output.stat().st_mtime_ns == before


def test_wrong_output_is_replaced(server: Server, dataset: Dataset, tmp_path: Path) -> None:
    output = tmp_path / "toy.zip"
    output.write_bytes(b"half a file")
    fetch(dataset, output)
    check_done(output)


def test_command_takes_its_mirror_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NPLM2003_MIRROR", str(tmp_path / "from-environment"))
    arguments = ["fetch", "--corpus", "brown", "--output", str(tmp_path / "out" / "brown.zip")]
    assert main(arguments) == 1
    assert "from-environment" in capsys.readouterr().err
    assert main([*arguments, "--mirror", str(tmp_path / "from-option")]) == 1
    assert "from-option" in capsys.readouterr().err


def test_dataset_list_agrees_with_the_code() -> None:
    with (REPOSITORY / "data/reference/datasets.csv").open(newline="", encoding="utf-8") as stream:
        listed = list(csv.DictReader(stream))
    assert listed == [{key: str(value) for key, value in asdict(dataset).items()} for dataset in DATASETS.values()]
