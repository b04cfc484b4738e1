"""The JSON files that describe an estimated n-gram, beside it or in its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nplm2003.errors import UserError
from nplm2003.files import read_object

if TYPE_CHECKING:
    from nplm2003.vocabulary import TokenStore


def read_description(path: Path, store: TokenStore, stage: str, shape: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON file of `shape` that `stage` wrote for the tokens of `store`; any other is refused."""
    try:
        description = read_object(path, {"vocabulary": str, **shape})
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): write it with `nplm2003 {stage}`") from error
    if description["vocabulary"] != store.fingerprint:
        raise UserError(f"{path} was made on other tokens than {store.folder}: run `nplm2003 {stage}` on these")
    return description
