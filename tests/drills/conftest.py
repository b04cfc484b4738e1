"""The drills: each makes one fault, sees it answered in one line, and shows that nothing was lost.

What a drill saw goes into a table, one row a fault: `--faults STEM` writes it as STEM.md and STEM.csv when every drill
of the run has passed. `--kills N` says how often every kind of rule is killed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import FAULTS, Fault, Record, write_table
from kenlm_tools import require_lmplz
from stages import Study

from nplm2003.files import write_json
from nplm2003.neural.preset import Preset


@pytest.fixture
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A function that puts a fault into the table: a drill calls it last, when all it asserts has held."""
    base = re.escape(str(tmp_path_factory.getbasetemp()))

    def add(fault: str, made: str, seen: str, lost: str) -> None:
        # Of a path, what lies inside the drill's own folder.
        texts = [re.sub(rf"{base}/[^/]*/?", "", " ".join(text.split())) for text in (fault, made, seen, lost)]
        FAULTS.append(Fault(*texts, f"{request.path.stem}.{request.node.name}"))

    return add


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the table, where all drills of the run have passed."""
    stem = session.config.getoption("--faults")
    if stem and exitstatus == 0:
        write_table(stem)


@pytest.fixture(scope="session")
def made(
    tmp_path_factory: pytest.TempPathFactory, invented_text: Callable[..., str], make_preset: Callable[..., Preset]
) -> Study:
    """The small study with every stage done; nobody writes into it."""
    study = Study(tmp_path_factory.mktemp("made"))
    (study.folder / "text.txt").write_text(invented_text(280), encoding="utf-8")
    quick = make_preset(rate=0.3, reduction="mean", epochs_direct=3)
    write_json(study.folder / "presets.json", {"presets": {"quick": quick.as_dict()}})
    (study.folder / "lmplz").symlink_to(require_lmplz().absolute())
    study.make()
    return study


@pytest.fixture
def study(made: Study, tmp_path: Path) -> Study:
    """A copy of the small study that a drill may damage."""
    return made.copy(tmp_path)
