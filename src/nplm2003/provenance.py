"""What stands beside every result: which code, configuration and machine made it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nplm2003 import __version__

PACKAGES = ("numpy", "torch", "pytorch-lightning", "kenlm", "nltk")


def _git(*arguments: str) -> str | None:
    """Output of a git command in the folder of this source tree, or None where git or the repository is missing."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def provenance(configuration: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Describe this run: version, commit (with `modified` true when `src` has uncommitted edits), package versions,
    machine and `configuration`, all plain JSON values. `more` adds fields, such as `departures` or `threads`."""
    status = _git("status", "--porcelain", "--", ".")
    return {
        "nplm2003": __version__,
        "commit": _git("rev-parse", "HEAD") or os.environ.get("NPLM_COMMIT"),
        "modified": None if status is None else bool(status),
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in PACKAGES},
        "machine": {"system": platform.system(), "architecture": platform.machine(), "cpus": os.cpu_count()},
        "configuration": dict(configuration),
        **more,
    }
