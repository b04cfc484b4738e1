"""Fetch a corpus: from its public address, a mirror, a local folder or a local file; size and checksum are pinned.

A download grows in `OUTPUT.part`, which is kept when the connection breaks and resumed by the next try; it takes its
final name only when its checksum is right. Proxies come from the usual variables (`https_proxy`, `no_proxy`, ...) and
certificates are always verified against the system's (`SSL_CERT_FILE` names others).
"""

from __future__ import annotations

import hashlib
import http.client
import shutil
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from nplm2003.errors import UserError
from nplm2003.files import whole

TIMEOUT = 60  # seconds without a byte
BLOCK = 1 << 16  # bytes


@dataclass(frozen=True)
class Dataset:
    """A file with a public address. `path` is its place in a folder of data (NLTK's layout, or `uci/`). `checksums` are
    written `sha256:...` (`md5:...` where the publisher gives no other) with a space between them: those of the public
    file and of other packings of the same content. `data/reference/datasets.csv` lists the same facts for people; a
    test holds the two together."""

    name: str
    title: str
    url: str
    path: str
    bytes: int
    checksums: str
    licence: str

    @property
    def file(self) -> str:
        """The name of the file."""
        return Path(self.path).name


_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/"
_REUTERS_LICENCE = "Reuters and Carnegie Group: free for research; name it Reuters-21578, Distribution 1.0"

DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="brown",
            title="Brown corpus (Francis and Kucera 1964, revised 1979), tagged, as distributed by NLTK",
            url=f"{_NLTK}corpora/brown.zip",
            path="corpora/brown.zip",
            bytes=3_314_357,
            checksums="sha256:9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6",
            licence="Redistribution permitted by the copyright holder (README in the archive); NLTK: non-commercial "
            "use",
        ),
        Dataset(
            name="reuters",
            title="Reuters-21578 text categorization collection, Distribution 1.0 (Lewis 1997), newswire of 1987",
            url="https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
            path="uci/reuters21578.tar.gz",
            bytes=8_150_596,
            # The second is a packing of the 22 SGML files alone.
            checksums="sha256:3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30 "
            "sha256:fdaac8b4d8a7099b8ca785ccfeb7c078ffdbaa08b3186f091eda8d2ba301e54b",
            licence=_REUTERS_LICENCE,
        ),
        Dataset(
            name="nltk-reuters",
            title="Reuters-21578, ApteMod selection of 10,788 stories, as distributed by NLTK",
            url=f"{_NLTK}corpora/reuters.zip",
            path="corpora/reuters.zip",
            bytes=6_378_691,
            checksums="md5:c2acb24d5cccf8035e0fe8d29f440a68",  # NLTK's index of its data gives MD5 alone
            licence=_REUTERS_LICENCE,
        ),
        Dataset(
            name="abc",
            title="Rural and science news of the Australian Broadcasting Commission (2006), as distributed by NLTK",
            url=f"{_NLTK}corpora/abc.zip",
            path="corpora/abc.zip",
            bytes=1_487_851,
            checksums="sha256:129bb6001beb828049a90a59b7dd3c2f0594a47012e48fc5177dfae38e658565",
            licence="Australian Broadcasting Commission; no licence stated: for research",
        ),
    )
}


def _checksum(path: Path, algorithm: str) -> str:
    with path.open("rb") as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"


def _is_pinned(path: Path, dataset: Dataset) -> bool:
    return any(_checksum(path, known.partition(":")[0]) == known for known in dataset.checksums.split())


def _found(path: Path, dataset: Dataset) -> str:
    """The checksum of a wrong file, for a message, beside the one expected."""
    expected, *_ = dataset.checksums.split()
    return f"{_checksum(path, expected.partition(':')[0])}, expected {expected}"


def require_pinned(path: Path, dataset: Dataset) -> None:
    """Refuse a file that is missing or is not the pinned one."""
    if not path.is_file():
        raise UserError(f"{path} is not there: run `nplm2003 fetch --corpus {dataset.name} --output '{path}'`")
    if not _is_pinned(path, dataset):
        raise UserError(
            f"{path} is not the pinned {dataset.name} corpus ({_found(path, dataset)}): "
            "it is damaged or another release; remove it and fetch it again"
        )


def fetch(dataset: Dataset, output: Path, mirror: str | None = None) -> None:
    """Put `dataset` at `output`, whole and checked, or raise a `UserError` that says how else to supply it.

    `mirror` is a folder that holds `dataset.path`, a file, or a URL prefix (http, https or file); None means
    the public address. An output that is already right is kept.
    """
    if output.is_file() and _is_pinned(output, dataset):
        return
    if mirror is None:
        _download(dataset.url, [dataset.url], dataset, output)
    elif urllib.parse.urlsplit(mirror).scheme in ("http", "https"):
        _download(mirror, _mirror_urls(mirror, dataset), dataset, output)
    else:
        _copy(_find(mirror, dataset), dataset, output)


def _layouts(dataset: Dataset) -> list[str]:
    """Where the file may stand in a mirror: a data folder, its parent, or nltk_data's own tree; a plain folder last."""
    return [dataset.path, f"nltk/{dataset.path}", f"packages/{dataset.path}", dataset.file]


def _mirror_urls(mirror: str, dataset: Dataset) -> list[str]:
    if urllib.parse.urlsplit(mirror).path.endswith(Path(dataset.path).suffix):
        return [mirror]
    return [f"{mirror.rstrip('/')}/{layout}" for layout in _layouts(dataset)]


def _find(mirror: str, dataset: Dataset) -> Path:
    """The file that a local mirror stands for."""
    parts = urllib.parse.urlsplit(mirror)
    place = Path(urllib.request.url2pathname(parts.path) if parts.scheme == "file" else mirror).expanduser()
    if place.is_file():
        return place
    for layout in _layouts(dataset):
        if (place / layout).is_file():
            return place / layout
    raise UserError(
        f"the mirror {mirror} is neither a file nor a folder that holds {dataset.path}: "
        f"correct it, or leave it out to fetch {dataset.url}"
    )


def _copy(source: Path, dataset: Dataset, output: Path) -> None:
    require_pinned(source, dataset)
    with whole(output) as temporary:
        shutil.copyfile(source, temporary)


def _download(address: str, urls: list[str], dataset: Dataset, output: Path) -> None:
    """Download from the first of `urls` that has the file; go on where an earlier try stopped. `address` is what the
    user knows the place by."""
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(output.name + ".part")
    while _size(part) < dataset.bytes:
        before = _size(part)
        try:
            _receive(urls, dataset, part)
            problem = "the connection broke"
        except urllib.error.HTTPError as error:
            problem = f"answer {error.code} ({error.reason})"
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink()  # longer than what the server has: not a part of it
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", None) or error)
        # A connection that broke is taken up again as long as each try brings something new.
        after = _size(part)
        if after <= before:
            kept = f"; {after:,} of {dataset.bytes:,} bytes are kept and will be resumed" if after else ""
            raise UserError(
                f"cannot fetch the {dataset.name} corpus from {address} ({problem}{kept}); supply it in one of three "
                f"ways: a URL prefix that mirrors it, through the config key `mirror` or the variable NPLM2003_MIRROR; "
                f"a local folder that holds {dataset.path} or the file itself, through the same key or variable; "
                f"or put the file at {output}"
            )
    if _size(part) != dataset.bytes or not _is_pinned(part, dataset):
        found = _found(part, dataset)
        part.unlink()
        raise UserError(
            f"what {address} sent is not the pinned {dataset.name} corpus ({found}): it was removed; try again, or "
            "name another `mirror`"
        )
    part.replace(output)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _receive(urls: list[str], dataset: Dataset, part: Path) -> None:
    """One connection: append to `part` what follows its last byte, or start over where the server cannot resume."""
    from tqdm import tqdm

    done = _size(part)
    with _open(urls, {"Range": f"bytes={done}-"} if done else {}) as answer:
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0
        if answer.length is not None and done + answer.length != dataset.bytes:
            raise OSError(f"it offers a file of {done + answer.length:,} bytes, not {dataset.bytes:,}")
        with (
            part.open("ab" if done else "wb") as stream,
            # disable=None: a bar on a terminal, nothing in a log.
            tqdm(desc=dataset.name, total=dataset.bytes, initial=done, unit="B", unit_scale=True, disable=None) as bar,
        ):
            while done <= dataset.bytes and (block := answer.read(BLOCK)):
                stream.write(block)
                done += len(block)
                bar.update(len(block))


def _open(urls: list[str], headers: dict[str, str]) -> http.client.HTTPResponse:
    """The answer of the first URL that is not "404 not found"."""
    for url in urls[:-1]:
        try:
            return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.NOT_FOUND:
                raise
    return urllib.request.urlopen(urllib.request.Request(urls[-1], headers=headers), timeout=TIMEOUT)
