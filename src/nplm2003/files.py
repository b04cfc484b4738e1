"""Whole files or none: every output is written beside its place and renamed once it is complete."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
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
    _remove_left(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix)
    temporary = Path(name)
    try:
        _lock(handle)
        yield temporary
        # mkstemp makes private files; outputs get the permissions any other new file would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # a full disk does not say which file was too much
            error.filename = str(target)
        raise
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


def _remove_left(target: Path) -> None:
    """Remove what processes that were killed have left of `target`: temporary files that no process holds."""
    name = re.compile(rf"\.{re.escape(target.stem)}\.[a-z0-9_]{{8}}{re.escape(target.suffix)}")
    for path in target.parent.iterdir():
        if name.fullmatch(path.name):
            with suppress(OSError), path.open("rb") as stream:
                if _lock(stream.fileno()):
                    path.unlink()


def _lock(handle: int) -> bool:
    """Lock an open file, whether or not that can be done; the system ends the lock with the process, however that
    ends."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or a file system without locks
        return False
    return True


def write_text(path: Path | str, text: str) -> None:
    """Write `text` (UTF-8) whole or not at all."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, content: Any) -> None:
    """Write `content` as indented JSON, whole or not at all; a NaN or infinity is an error, not a token."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


# How JSON files hold an infinite perplexity: as text, since JSON has no such number. No row can have these names.
INFINITE = ("+infinity", "-infinity")


def name_infinities(content: Any) -> Any:
    """Plain JSON values with every infinite number as one of the texts `INFINITE`; a NaN stays one."""
    if isinstance(content, dict):
        return {key: name_infinities(value) for key, value in content.items()}
    if isinstance(content, list):
        return [name_infinities(value) for value in content]
    return INFINITE[content < 0] if isinstance(content, float) and math.isinf(content) else content


def number_infinities(content: Any) -> Any:
    """What `name_infinities` was given."""
    if isinstance(content, dict):
        return {key: number_infinities(value) for key, value in content.items()}
    if isinstance(content, list):
        return [number_infinities(value) for value in content]
    return float(content) if content in INFINITE else content


def read_json(path: Path | str) -> Any:
    """Read a JSON file; raises UserError where it holds no JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8
        raise UserError(f"{path} cannot be read as JSON ({error}): make it again") from error


def description_path(path: Path) -> Path:
    """Where the description of the output at `path` lies: model.json beside model.arpa."""
    if path.suffix == ".json":
        raise UserError(f"{path} is where the description goes: give the output another suffix")
    return path.with_suffix(".json")


def read_object(path: Path | str, shape: dict[Any, Any]) -> dict[str, Any]:
    """Read a JSON file that holds an object of `shape` (see `misfit`); raises UserError where it does not."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no JSON object: make it again")
    # One that says of which format it is, and of another one, need not have the shape.
    if "format" in shape and content.get("format") != shape["format"]:
        raise UserError(f"{path} has format {content.get('format')!r:.40}, not {shape['format']}: make it again")
    if wrong := misfit(content, shape):
        raise UserError(f"{path} is damaged, {wrong}: make it again")
    return content


def misfit(content: Any, shape: Any, place: str = "") -> str | None:
    """What in `content`, plain JSON values that stand at `place`, has not the `shape`; None where all has.

    A shape is a type (`float`: any finite number), or a text, a number or None that must be equal; a tuple of shapes,
    one of which fits; `[shape]`, a list of such; `{key: shape, ...}`, an object with at least these keys; or
    `{str: shape}`, an object whose values are such.
    """
    if isinstance(shape, tuple):
        return None if any(misfit(content, one) is None for one in shape) else _unlike(place, content)
    if isinstance(shape, list) and isinstance(content, list):
        parts = [(str(number), value, shape[0]) for number, value in enumerate(content)]
    elif isinstance(shape, dict) and isinstance(content, dict):
        below = dict.fromkeys(content, shape[str]) if str in shape else shape
        if missing := [f"{place}{key}" for key in below if key not in content]:
            return f"it has no {', '.join(missing)}"
        parts = [(key, content[key], one) for key, one in below.items()]
    else:
        return None if _fits(content, shape) else _unlike(place, content)
    return next((wrong for key, value, one in parts if (wrong := misfit(value, one, f"{place}{key}."))), None)


def _fits(content: Any, shape: Any) -> bool:
    if shape is float:
        return type(content) in (int, float) and math.isfinite(content)
    return type(content) is shape if isinstance(shape, type) else type(content) is type(shape) and content == shape


def _unlike(place: str, content: Any) -> str:
    return f"its {place.rstrip('.') or 'content'} is {content!r:.40}"


def write_array(path: Path | str, array: np.ndarray) -> None:
    """Write one NumPy array (`.npy`, no pickles), whole or not at all."""
    buffer = io.BytesIO()  # what NumPy raises when it writes to a full disk itself does not say so
    np.save(buffer, array, allow_pickle=False)
    with whole(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())


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
    except OSError:
        raise
    except Exception as error:  # a damaged header is parsed as Python, and fails in as many ways
        said = " ".join(str(error).split())
        raise UserError(f"{path} cannot be read as an array ({said:.80}): make it again") from error
    return array


def require_checksum(path: Path | str, found: str, expected: str) -> None:
    """Raise UserError where the checksum of what lies at `path` is not the one that its description says."""
    if found != expected:
        raise UserError(f"{path} is damaged, its checksum is not the one that was written down: make it again")


def array_checksum(array: np.ndarray) -> str:
    """SHA-256, in hexadecimal, of the numbers of an array, little-endian and row after row."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data).hexdigest()


def sha256(*paths: Path | str) -> str:
    """SHA-256, in hexadecimal, of files one after the other (`cat PATHS | sha256sum`)."""
    digest = hashlib.sha256()
    for path in paths:
        with Path(path).open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
