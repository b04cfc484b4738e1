"""Where the tests find lmplz, and what they do without it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[2] / "data" / "tools" / "lmplz"


def require_lmplz() -> Path:
    """The lmplz named by NPLM2003_LMPLZ, else the one the workflow built, else the one on PATH; skips without one."""
    named = os.environ.get("NPLM2003_LMPLZ") or (str(BUILT) if BUILT.exists() else shutil.which("lmplz"))
    if not named:
        pytest.skip(
            "KNESER-NEY IS NOT TESTED: run `nplm2003 build-lmplz --output data/tools/lmplz` or set NPLM2003_LMPLZ"
        )
    return Path(named)
