"""A tiny study in a copy of the repository, for the tests of the workflow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "environment.yml", "workflow", "src", "config", "paper", "profiles", "data/reference")

STUDY = """\
name: tiny
title: A tiny study
corpus:
  source: text
  file: data/a tiny text.txt
  tokenizer: whitespace
  split: {train: 0.7, valid: 0.15}
policy: rank30
policies: config/tiny/policies.tsv
networks: config/tiny/networks.tsv
ngrams: config/tiny/ngrams.tsv
mixtures: config/tiny/mixtures.tsv
sweeps: config/tiny/sweeps.tsv
table: main
seeds: [1, 2]
presets:
  modern: {epochs_direct: 2, epochs_without_direct: 2}
  paper: {epochs_direct: 1, epochs_without_direct: 1}
  tiny:
    {objective: sampled-softmax, noise_words: 20, noise_power: 1.0, self_normalisation: 0.1, batch: 32, reduction: mean,
    rate: 1.0, schedule: cosine, rate_decay: 0.0, weight_decay: 0.0, dropout: 0.1, bias_start: unigram,
    epochs_direct: 2, epochs_without_direct: 2, patience: 2, valid_every: 1, matmul: medium}
"""
TABLES = {
    "policies": """\
policy	count_on	cut	size	lowercase	marks	split_clitics	numbers	proper_nouns
rank30	stream	rank	30	no	no	no	no	no
freq2-train	train	frequency	2	yes	yes	no	yes	yes
""",
    "networks": """\
model	published	architecture	order	hidden	features	direct	options	word_features	outputs	classes	preset	seeds	table
MLP1	MLP1	mlp	5	4	6	yes		learnt	words		modern		yes
MLP7		mlp	3	4	3	yes		learnt	words		modern		yes
MLP9-paper	MLP9	mlp	5	5	3	no		learnt	words		paper	1	yes
MLP9-svd		mlp	5	5	3	no		svd	words		paper	1	yes
MLP9-tree		mlp	5	5	3	no		learnt	tree	6	paper	1	yes
lstm-net		lstm	6	8	6	no	rate=0.01	learnt	words		tiny	1	extended
log-bilinear-net		log-bilinear	4	0	6	no		learnt	words		tiny	1	extended
short		mlp	4	4	3	yes		learnt	words		modern	1	no
""",  # noqa: E501
    "ngrams": """\
model	published	kind	classes	order	table
interpolated-trigram	Deleted interpolation	interpolated		3	yes
kneser-ney-3	Kneser-Ney back-off	kneser-ney		3	yes
kneser-ney-5	Kneser-Ney back-off	kneser-ney		5	yes
classes-6-3		class-based	6	3	yes
classes-6-4		class-based	6	4	yes
maximum-likelihood-3		maximum-likelihood		3	yes
kneser-ney-2		kneser-ney		2	no
add-k-3		add-k		3	no
katz-3		katz		3	no
absolute-discounting-4		absolute-discounting		4	no
""",
    "mixtures": """\
model	published	components	weights	table
MLP2	MLP2	MLP1,interpolated-trigram	fixed	yes
MLP1-kn5-binned		MLP1,kneser-ney-5	binned	yes
kn5-classes-learnt		kneser-ney-5,classes-6-3	learnt	yes
ml3-kn5-learnt		maximum-likelihood-3,kneser-ney-5	learnt	yes
lstm-mixed		lstm-net,MLP1,kneser-ney-5	learnt	extended
MLP1-oov		MLP1	expected	extended
""",
    "sweeps": """\
sweep	policy	train	model
order			MLP7
order			short
order			kneser-ney-2
order			kneser-ney-3
order			add-k-3
order			katz-3
order			absolute-discounting-4
train		1/2	MLP7
train			MLP7
train		1/2	kneser-ney-3
train		1/2	interpolated-trigram
policy			interpolated-trigram
policy	freq2-train		interpolated-trigram
""",
}


@dataclass(frozen=True)
class Clone:
    """A copy of what a clone of the repository holds, with the files of the tiny study in it."""

    folder: Path

    def start(self, *arguments: str | Path, cores: int = 2) -> subprocess.Popen[str]:
        """Start Snakemake in the clone, as the leader of a process group of its own."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "NPLM"))}
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", str(cores), *map(str, arguments)],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *arguments: str | Path, status: int = 0) -> str:
        """Run Snakemake to its end; its output, both streams together. Fails unless it ends with `status`."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=3600)
        assert process.returncode == status, output
        return output

    def tiny(self, *arguments: str | Path, status: int = 0) -> str:
        """Run the tiny study."""
        return self.snakemake(*arguments, "--configfile", "config/tiny/study.yaml", status=status)

    def planned(
        self, *arguments: str | Path, configfiles: Sequence[str] = ("config/tiny/study.yaml",)
    ) -> dict[str, int]:
        """How often a dry run would run each rule, target rules left out."""
        output = self.snakemake("--dry-run", *arguments, "--configfile", *configfiles)
        return planned_jobs(output)

    @contextmanager
    def changed(self, name: str, old: str, new: str) -> Iterator[None]:
        """Replace `old` by `new` in one file of the clone for a while."""
        path = self.folder / name
        before = path.read_text(encoding="utf-8")
        assert old in before
        path.write_text(before.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")


def planned_jobs(output: str) -> dict[str, int]:
    """The table of jobs that a dry run prints, target rules left out."""
    targets = ("all", "tables", "figures", "paper", "report", "explorer", "total")
    jobs = {rule: int(count) for rule, count in re.findall(r"^([\w-]+) +(\d+)$", output, flags=re.MULTILINE)}
    return {rule: count for rule, count in jobs.items() if rule not in targets}


def make_clone(folder: Path, text: str) -> Clone:
    """Copy the repository's own files to `folder` and add the tiny study, on `text`."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in PARTS:
        source, target = REPOSITORY / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copy(source, target)
    (folder / "data" / "a tiny text.txt").write_text(text, encoding="utf-8")
    tiny = folder / "config" / "tiny"
    tiny.mkdir()
    (tiny / "study.yaml").write_text(STUDY, encoding="utf-8")
    for name, content in TABLES.items():
        (tiny / f"{name}.tsv").write_text(content, encoding="utf-8")
    return Clone(folder)


def place_lmplz(clone: Clone) -> None:
    """Put an lmplz that is there already into the clone; else the workflow's own rule finds or builds one."""
    target = clone.folder / "data" / "tools" / "lmplz"
    for path in (os.environ.get("NPLM2003_LMPLZ"), REPOSITORY / "data" / "tools" / "lmplz"):
        if path and Path(path).is_file():
            target.parent.mkdir(parents=True)
            shutil.copy(path, target)
            return
    missing = [program for program in ("cmake", "make", "c++") if not shutil.which(program)]
    if not (shutil.which("lmplz") or (not missing and Path("/usr/include/boost/version.hpp").is_file())):
        pytest.skip(
            "NO PIPELINE TEST RAN: there is no lmplz (NPLM2003_LMPLZ, data/tools/lmplz, PATH), and none can be built "
            f"here without {', '.join(missing) or 'Boost'}"
        )
