"""Whole files or none: every output is written beside its place and renamed once it is complete."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nplm2003.errors import UserError


@contextmanager
def whole(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it to `path` on success, remove it on failure.

    The temporary name keeps the suffix of `path`, since some writers choose their format by it.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; outputs get the permissions any other new file would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write `text` (UTF-8) whole or not at all."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, content: Any) -> None:
    """Write `content` as indented JSON, whole or not at all; a NaN or infinity is an error, not a token."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path | str) -> Any:
    """Read a JSON file; raises UserError where it holds no JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no UTF-8
        raise UserError(f"{path} cannot be read as JSON ({error}): make it again") from error


def description_path(path: Path) -> Path:
    """Where the description of the output at `path` lies: model.json beside model.arpa."""
    if path.suffix == ".json":
        raise UserError(f"{path} is where the description goes: give the output another suffix")
    return path.with_suffix(".json")


def read_object(path: Path | str, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Read a JSON file that holds an object with all of `keys`; raises UserError where it holds anything else."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no JSON object: make it again")
    require_keys(path, content, keys)
    return content


def require_keys(path: Path | str, content: Any, keys: Iterable[str]) -> None:
    """Raise UserError where `content`, of the file at `path`, is no object with all of `keys`."""
    missing = [key for key in keys if not isinstance(content, dict) or key not in content]
    if missing:
        raise UserError(f"{path} is damaged, it has no {', '.join(missing)}: make it again")


def write_array(path: Path | str, array: np.ndarray) -> None:
    """Write one NumPy array (`.npy`, no pickles), whole or not at all."""
    with whole(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def write_array_in_parts(path: Path | str, parts: Iterable[np.ndarray], dtype: type[np.generic]) -> int:
    """Write the one-dimensional array that `parts` make one after the other, with one part in memory at a time.

    Whole or not at all; returns its length.
    """
    length = 0
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (length,)}
    with whole(path) as temporary, temporary.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts:
            stream.write(np.ascontiguousarray(part, dtype=dtype).data)
            length += len(part)
        # NumPy leaves room in the header for the length to grow.
        stream.seek(0)
        np.lib.format.write_array_header_1_0(stream, header | {"shape": (length,)})
    return length


def read_array(path: Path | str) -> np.ndarray:
    """Open a NumPy array (`.npy`) read-only and memory-mapped; raises UserError where it is damaged or no array."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} cannot be read as an array ({error}): make it again") from error
    return array


def sha256(*paths: Path | str) -> str:
    """SHA-256, in hexadecimal, of files one after the other (`cat PATHS | sha256sum`)."""
    digest = hashlib.sha256()
    for path in paths:
        with Path(path).open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
