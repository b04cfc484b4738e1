"""The score file: complete or absent, and never compared across vocabularies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import in_parts

from nplm2003 import scoring
from nplm2003.errors import UserError
from nplm2003.files import read_json, write_array, write_array_in_parts, write_json
from nplm2003.scoring import SPLITS, Scores, require_same_tokens, write_scores

VALUES = {
    "train": np.array([-1.0, -2.5, -0.5], dtype=np.float32),
    "valid": np.array([-3.0, -4.0], dtype=np.float32),
    "test": np.array([-7.0], dtype=np.float32),
}


def write(folder: Path, vocabulary: str = "v1", impossible: bool = False, **changed: Any) -> Scores:
    scores, made = in_parts({**VALUES, **changed}), {"commit": "abc"}
    write_scores(folder, scores, model="MLP9", seed=3, vocabulary=vocabulary, provenance=made, impossible=impossible)
    return Scores(folder)


def test_round_trip(tmp_path: Path) -> None:
    scores = write(tmp_path / "some scores")
    assert (scores.model, scores.seed, scores.vocabulary) == ("MLP9", 3, "v1")
    assert scores.metadata["tokens"] == {"train": 3, "valid": 2, "test": 1}
    assert scores.metadata["provenance"] == {"commit": "abc"}
    for split in SPLITS:
        assert scores[split].dtype == np.float32
        assert np.array_equal(scores[split], VALUES[split])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([-1.0, np.nan]), "must be finite"),
        (np.array([-1.0, -np.inf]), "must be finite"),
        (np.array([-1.0, 0.5]), "a log-probability above 0"),
        (np.array([[-1.0], [-2.0]]), "one per token"),
    ],
)
def test_impossible_scores_are_refused(tmp_path: Path, values: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=f"MLP9, valid: .*{said}"):
        write(tmp_path / "scores", valid=values)
    assert [path.name for path in (tmp_path / "scores").iterdir()] == ["train.npy"]  # no scores.json: not complete


def test_a_probability_of_0_is_a_score_where_the_model_says_so(tmp_path: Path) -> None:
    impossible = np.array([-1.0, -np.inf], dtype=np.float32)
    scores = write(tmp_path, valid=impossible, impossible=True)
    assert scores.impossible and not write(tmp_path / "other").impossible
    assert scores["valid"].tolist() == [-1.0, -math.inf]
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must be finite"):
            write(tmp_path, valid=np.array([-1.0, value]), impossible=True)
    # The same numbers in the folder of another model are damage.
    write_array(tmp_path / "other" / "valid.npy", impossible)
    with pytest.raises(UserError, match=r"valid\.npy does not hold log-probabilities"):
        Scores(tmp_path / "other")["valid"]


def test_rounding_of_certainty_is_no_error(tmp_path: Path) -> None:
    scores = write(tmp_path, valid=np.array([1e-6, -1.0], dtype=np.float32))
    assert scores["valid"].tolist() == [0.0, -1.0]


def test_metadata_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def noting(write_one: Callable[..., Any]) -> Callable[..., Any]:
        def noted(path: Path, *content: Any) -> Any:
            result = write_one(path, *content)
            written.append(path.name)
            return result

        return noted

    monkeypatch.setattr(scoring, "write_array_in_parts", noting(write_array_in_parts))
    monkeypatch.setattr(scoring, "write_json", noting(write_json))
    write(tmp_path)
    assert written == ["train.npy", "valid.npy", "test.npy", "scores.json"]


def test_a_failed_rewrite_does_not_look_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)

    def full(path: Path, parts: Iterable[np.ndarray], dtype: type[np.generic]) -> int:
        if path.name == "valid.npy":
            raise OSError("No space left on device")
        return write_array_in_parts(path, parts, dtype)

    monkeypatch.setattr(scoring, "write_array_in_parts", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, train=np.array([-9.0], dtype=np.float32))
    with pytest.raises(UserError, match=r"holds no scores\.json"):
        Scores(tmp_path)


def test_a_folder_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no scores\.json: name the scores folder"):
        Scores(tmp_path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    write_json(tmp_path / "scores.json", read_json(tmp_path / "scores.json") | {"format": 99})
    with pytest.raises(UserError, match="has format 99, not 2: make it again"):
        Scores(tmp_path)


def test_a_truncated_array_is_refused(tmp_path: Path) -> None:
    scores = write(tmp_path)
    path = tmp_path / "valid.npy"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"valid\.npy") as error:
        scores["valid"]
    assert "\n" not in str(error.value)


def test_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    scores = write(tmp_path)
    path = tmp_path / "valid.npy"
    content = bytearray(path.read_bytes())
    content[-4] ^= 1  # the last bit of one float: a score like any other
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"valid\.npy is damaged, its checksum is not"):
        scores["valid"]
    assert np.array_equal(scores["test"], VALUES["test"])


def test_an_array_of_another_length_is_refused(tmp_path: Path) -> None:
    scores = write(tmp_path)
    write_array(tmp_path / "valid.npy", VALUES["train"])
    with pytest.raises(UserError, match=r"valid\.npy holds \(3,\) scores, its scores\.json says 2"):
        scores["valid"]


def test_different_vocabularies_or_splits_are_not_compared(tmp_path: Path) -> None:
    one, same = write(tmp_path / "one"), write(tmp_path / "same")
    require_same_tokens(one, same)
    require_same_tokens(one)
    other_words = write(tmp_path / "words", vocabulary="v2")
    other_split = write(tmp_path / "split", test=np.array([-1.0, -1.0], dtype=np.float32))
    for other in (other_words, other_split):
        with pytest.raises(UserError, match="scored on different vocabularies or splits") as error:
            require_same_tokens(one, same, other)
        assert str(other.folder) in str(error.value)


@pytest.mark.parametrize(
    "values",
    [
        np.array([-1.0, np.nan], dtype=np.float32),
        np.array([-np.inf, -1.0], dtype=np.float32),
        np.array([-1.0, 3.0], dtype=np.float32),
        np.array([False, False]),
        np.array([-1, -2]),
        np.array([-1.0, -2.0]),  # float64: not what was written
    ],
)
def test_scores_that_are_none_are_refused(tmp_path: Path, values: np.ndarray) -> None:
    scores = write(tmp_path)
    write_array(tmp_path / "valid.npy", values)
    with pytest.raises(UserError, match="valid.npy does not hold log-probabilities .*: score it again"):
        scores["valid"]


@pytest.mark.parametrize("content", [[], None, {"format": 2}, {"format": 2, "model": "m", "seed": 1, "tokens": {}}])
def test_damaged_metadata_is_refused(tmp_path: Path, content: Any) -> None:
    write(tmp_path)
    write_json(tmp_path / "scores.json", content)
    with pytest.raises(UserError, match="scores.json (holds no JSON object|is damaged, it has no .*): make it again"):
        Scores(tmp_path)
