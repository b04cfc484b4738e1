"""Outputs are whole or absent, whatever goes wrong while they are written."""

from __future__ import annotations

import hashlib
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm2003.errors import UserError
from nplm2003.files import (
    array_checksum,
    misfit,
    name_infinities,
    number_infinities,
    read_array,
    read_json,
    read_object,
    sha256,
    whole,
    write_array,
    write_array_in_parts,
    write_json,
    write_text,
)


def test_whole_makes_folders_and_keeps_the_suffix(tmp_path: Path) -> None:
    target = tmp_path / "a folder" / "deeper" / "figure.png"
    with whole(target) as temporary:
        assert temporary.parent == target.parent and temporary.suffix == ".png"
        temporary.write_bytes(b"content")
        assert not target.exists()  # nobody sees it before it is complete
    assert target.read_bytes() == b"content"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(error), whole(target) as temporary:
        temporary.write_text("half of the ne")
        raise error
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '.*table\.csv'"), whole(tmp_path / "table.csv"):
        raise OSError(28, "No space left on device")


def test_a_failure_leaves_nothing_new(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), whole(tmp_path / "table.csv") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_is_removed_by_the_next_write(tmp_path: Path) -> None:
    left, other = tmp_path / ".table.ab3_x9z0.csv", tmp_path / ".table.of somebody.csv"
    for path in (left, other):
        path.write_text("half")
    with whole(tmp_path / "table.csv") as mine:
        assert not left.exists()
        write_text(tmp_path / "table.csv", "by another process")  # which leaves the one at work alone
        mine.write_text("mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "table.csv"]
    assert (tmp_path / "table.csv").read_text() == "mine"


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "text", "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "text").stat().st_mode) == 0o640


def test_json_round_trip(tmp_path: Path) -> None:
    content = {"perplexity": 276.5, "word": "naïve", "none": None, "list": [1, 2]}
    write_json(tmp_path / "x.json", content)
    assert read_json(tmp_path / "x.json") == content
    assert "naïve" in (tmp_path / "x.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_holds_no_nan(tmp_path: Path, value: float) -> None:
    write_json(tmp_path / "x.json", {"perplexity": 1.0})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", {"perplexity": value})
    assert read_json(tmp_path / "x.json") == {"perplexity": 1.0}


@pytest.mark.parametrize("content", [b"", b'{"perplexity": 27', b"\xff\xfe", b"[" * 100_000])
def test_broken_json_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(UserError, match=r"x\.json cannot be read as JSON") as error:
        read_json(tmp_path / "x.json")
    assert "\n" not in str(error.value)


SHAPE = {"name": str, "seed": int, "values": [{"nats": float}], "counts": {str: int}, "kind": ("a", None)}
FITS: dict[str, Any] = {
    "name": "x",
    "seed": 1,
    "values": [{"nats": 1}, {"nats": 0.5}],
    "counts": {"b": 2},
    "kind": None,
}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, None),
        ({"more": 1, "values": [], "counts": {}, "kind": "a"}, None),
        ({"name": 3}, "its name is 3"),
        ({"seed": 1.0}, "its seed is 1.0"),
        ({"seed": True}, "its seed is True"),
        ({"values": {"nats": 1}}, "its values is {'nats': 1}"),
        ({"values": [{"nats": 1}, {"bits": 1}]}, "it has no values.1.nats"),
        ({"values": [{"nats": None}]}, "its values.0.nats is None"),
        ({"values": [{"nats": True}]}, "its values.0.nats is True"),
        ({"counts": {"b": "2"}}, "its counts.b is '2'"),
        ({"counts": None}, "its counts is None"),
        ({"kind": "b"}, "its kind is 'b'"),
    ],
)
def test_shapes_by_hand(tmp_path: Path, change: dict[str, Any], wrong: str | None) -> None:
    content = FITS | change
    assert misfit(content, SHAPE) == wrong
    if wrong:
        (tmp_path / "x.json").write_text(str(content).replace("'", '"').replace("None", "null").replace("True", "true"))
        with pytest.raises(UserError, match="x.json is damaged, it"):
            read_object(tmp_path / "x.json", SHAPE)


def test_infinite_numbers_are_named_where_that_is_asked_for(tmp_path: Path) -> None:
    content = {"a": [1.5, math.inf, None, True], "b": {"c": -math.inf, "d": "inf"}}
    write_json(tmp_path / "x.json", name_infinities(content))
    assert read_json(tmp_path / "x.json") == {"a": [1.5, "+infinity", None, True], "b": {"c": "-infinity", "d": "inf"}}
    assert number_infinities(read_json(tmp_path / "x.json")) == content
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", name_infinities({"a": math.nan}))


def test_an_infinite_number_is_none() -> None:
    assert misfit({"nats": float("nan")}, {"nats": float}) == "its nats is nan"
    assert misfit({"nats": float("inf")}, {"nats": float}) == "its nats is inf"


def test_the_checksum_of_an_array_is_that_of_its_numbers() -> None:
    expected = hashlib.sha256(b"\x01\x00\x02\x00\x03\x00").hexdigest()
    assert array_checksum(np.array([1, 2, 3], dtype="<u2")) == expected
    assert array_checksum(np.array([1, 2, 3], dtype=">u2")) == expected
    assert array_checksum(np.array([1, 0, 2, 0, 3, 0], dtype=np.uint16)[::2]) == expected


@pytest.mark.parametrize("bit", range(0, 8 * 128, 3))
def test_a_flipped_bit_of_an_array_is_refused_or_another_array(tmp_path: Path, bit: int) -> None:
    """Whatever bit of the header flips, nothing but a UserError comes of it."""
    array = np.arange(100, dtype=np.float32)
    write_array(tmp_path / "x.npy", array)
    content = bytearray((tmp_path / "x.npy").read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    (tmp_path / "x.npy").write_bytes(content)
    try:
        read = read_array(tmp_path / "x.npy")
    except UserError as error:
        assert "x.npy cannot be read as an array" in str(error)
    else:
        assert isinstance(array_checksum(read), str)


def test_array_round_trip_is_mapped_and_read_only(tmp_path: Path) -> None:
    array = np.array([[1.5, -2.0]], dtype=np.float32)
    write_array(tmp_path / "x.npy", array)
    read = read_array(tmp_path / "x.npy")
    assert read.dtype == np.float32 and np.array_equal(read, array)
    assert isinstance(read, np.memmap) and not read.flags.writeable


def test_objects_are_not_pickled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_array(tmp_path / "x.npy", np.array([object()]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [0, 5, 100, 150])
def test_a_truncated_array_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "x.npy"
    write_array(path, np.arange(100, dtype=np.float32))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"x\.npy cannot be read as an array") as error:
        read_array(path)
    assert "\n" not in str(error.value)


def test_a_pickle_is_no_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(UserError, match="cannot be read as an array"):
        read_array(tmp_path / "x.npy")


def test_sha256_of_a_known_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")  # the example of FIPS 180-2
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@settings(deadline=None)  # files are written: that waits for the machine
@given(lengths=st.lists(st.integers(0, 7), max_size=5))
def test_an_array_in_parts_is_the_array_as_a_whole(
    lengths: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    parts = [np.arange(length, dtype=np.float64) - 3 for length in lengths]
    together = np.concatenate([np.zeros(0), *parts]).astype(np.float32)
    assert write_array_in_parts(folder / "parts.npy", parts, np.float32) == len(together)
    write_array(folder / "whole.npy", together)
    assert (folder / "parts.npy").read_bytes() == (folder / "whole.npy").read_bytes()


def test_an_array_whose_parts_fail_is_not_written(tmp_path: Path) -> None:
    def parts() -> Iterator[np.ndarray]:
        yield np.zeros(3)
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_array_in_parts(tmp_path / "a.npy", parts(), np.float32)
    assert list(tmp_path.iterdir()) == []
