"""pyproject.toml (pip), environment.yml (conda) and what the package imports name the same dependencies."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]

# PyPI name -> conda name, where they differ.
CONDA_NAMES = {"matplotlib": "matplotlib-base", "snakemake": "snakemake-minimal", "torch": "pytorch"}
# In environment.yml only: Python and pip themselves, what snakemake[reports] brings on PyPI, and what apt or brew
# supplies to pip users, for compiling kenlm and lmplz.
CONDA_ONLY = {"python", "pip", "pygments", "cxx-compiler", "make", "cmake", "libboost-devel", "zlib", "bzip2", "xz"}
# Import name -> PyPI name, where they differ.
DISTRIBUTIONS = {"pytorch_lightning": "pytorch-lightning", "yaml": "pyyaml"}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pinned(requirements: list[str]) -> dict[str, str]:
    """Requirement lines 'name[extra]==version' as {name: version}; anything but an exact pin is refused."""
    pins = {}
    for requirement in requirements:
        match = re.fullmatch(r"([A-Za-z0-9-]+)(?:\[[a-z]+\])? ?==([0-9][0-9.]*)", requirement)
        assert match, f"{requirement!r} is not an exact pin"
        pins[match[1].lower()] = match[2]
    return pins


def pip_pins() -> dict[str, str]:
    extras = project()["optional-dependencies"]
    return pinned([*project()["dependencies"], *extras["dev"], *extras["cluster"]])


def conda_requirements() -> tuple[list[str], list[str]]:
    """The lines of environment.yml: conda packages and pip packages."""
    lines = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip_section,) = [line for line in lines if isinstance(line, dict)]
    return [line for line in lines if isinstance(line, str)], pip_section["pip"]


def test_pip_and_conda_pin_the_same_versions() -> None:
    conda, by_pip = conda_requirements()
    shared = [line for line in conda if line.split()[0] not in CONDA_ONLY]
    named = {CONDA_NAMES.get(name, name): version for name, version in pip_pins().items()}
    assert pinned(shared) | pinned(by_pip) == named
    assert not set(pinned(shared)) & set(pinned(by_pip))


def test_conda_only_packages_are_all_there() -> None:
    conda, _ = conda_requirements()
    assert {line.split()[0] for line in conda} >= CONDA_ONLY


def test_pip_and_conda_allow_the_same_pythons() -> None:
    conda, _ = conda_requirements()
    assert f"python {project()['requires-python']}" in conda


@pytest.mark.parametrize("requirement", ["numpy>=2", "numpy", "numpy==2.*"])
def test_a_loose_pin_is_refused(requirement: str) -> None:
    with pytest.raises(AssertionError, match="not an exact pin"):
        pinned([requirement])


def test_the_installed_versions_are_the_pinned_ones() -> None:
    for name, version in pip_pins().items():
        # '2.13.0+cpu' is a build of 2.13.0.
        assert metadata.version(name).split("+")[0] == version, name


def test_everything_imported_is_declared() -> None:
    declared = set(pinned(project()["dependencies"]))
    imported: dict[str, str] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            imported |= {name.split(".")[0]: str(path.relative_to(ROOT)) for name in names}
    for name in set(imported) - set(sys.stdlib_module_names) - {"nplm2003"}:
        assert DISTRIBUTIONS.get(name, name) in declared, f"{imported[name]} imports {name}, not in pyproject.toml"
