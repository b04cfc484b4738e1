"""scripts/slurm-one-node where it must not act. That it starts a Slurm is tested by tests/slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "slurm-one-node"


def refusal(programs: Path, argument: str, user: int) -> str:
    """What the script says when this user runs it on a machine with these programs; it must fail."""
    for name in ("bash", "uname"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (programs / "id").write_text(f"#!{programs}/bash\necho {user}\n", encoding="utf-8")
    (programs / "id").chmod(0o755)
    done = subprocess.run(
        [str(programs / "bash"), str(SCRIPT), argument],
        env={**os.environ, "PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    return done.stderr


@pytest.mark.parametrize(
    ("argument", "user", "said"),
    [
        ("up", 1000, "only root"),
        ("down", 1000, "only root"),
        ("up", 0, "needs Debian"),
        ("restart", 0, "`up` or `down`"),
    ],
)
def test_it_refuses_in_one_line(tmp_path: Path, argument: str, user: int, said: str) -> None:
    message = refusal(tmp_path, argument, user)
    assert message.startswith("slurm-one-node: error: ") and said in message and message.count("\n") == 1
