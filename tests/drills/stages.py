"""A small study stage by stage, by the commands that the workflow calls, for drills that damage what lies between."""

from __future__ import annotations

import shutil
from pathlib import Path

from faults import contents, run

# Each stage: the command, its folders and files as inside the study's own folder, and what it writes.
TOKENS = ("--tokens", "/tokens")
STAGES: dict[str, tuple[str, ...]] = {
    "tokens": (
        *("build-tokens", "--corpus", "mine", "--source", "text", "--file", "/text.txt"),
        *("--train", "1200", "--valid", "300", "--policy", "small", "--count-on", "stream"),
        *("--cut", "rank", "--size", "30", "--output", "/tokens"),
    ),
    "network": (
        *("train", *TOKENS, "--order", "3", "--hidden", "4", "--features", "3", "--direct"),
        *("--preset-file", "/presets.json", "--preset", "quick", "--seed", "7", "--output", "/network"),
    ),
    "scores": ("score", *TOKENS, "--network", "/network", "--model", "net", "--output", "/network/scores"),
    "evaluation": (*("evaluate", *TOKENS, "--scores", "/network/scores", "--output", "/network/evaluation.json"),),
    "trigram": ("estimate-interpolated", *TOKENS, "--output", "/trigram/weights.json"),
    "trigram scores": (
        *("score-interpolated", *TOKENS, "--weights", "/trigram/weights.json"),
        *("--model", "trigram", "--output", "/trigram/scores"),
    ),
    "classes": ("learn-classes", *TOKENS, "--classes", "6", "--output", "/classes/classes.tsv"),
    "kneser-ney": (
        *("estimate-kneser-ney", *TOKENS, "--order", "3", "--lmplz", "/lmplz", "--memory", "64M"),
        *("--output", "/kn/model.arpa"),
    ),
    "kneser-ney scores": (
        *("score-kneser-ney", *TOKENS, "--model-file", "/kn/model.arpa", "--model", "kn", "--output", "/kn/scores"),
    ),
    "class n-gram": (
        *("estimate-class-based", *TOKENS, "--classes", "/classes/classes.tsv", "--order", "3", "--lmplz", "/lmplz"),
        *("--memory", "64M", "--output", "/cb/model.arpa"),
    ),
    "mixture": (
        *("mix", *TOKENS, "--component", "/network/scores", "--component", "/trigram/scores", "--weights", "learnt"),
        *("--model", "both", "--seed", "7", "--output", "/both/scores", "--weights-output", "/both/weights.json"),
    ),
}


class Study:
    """The folder of a small study, in which every stage can be run again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, stage: str, **changes: str) -> list[str]:
        """The command of a stage, with some options changed; paths that start with / are inside the folder."""
        words = list(STAGES[stage])
        for option, value in changes.items():
            words[words.index(f"--{option.replace('_', '-')}") + 1] = value
        return [str(self.folder) + word if word.startswith("/") else word for word in words]

    def make(self, *stages: str) -> None:
        """Run the stages, all of them where none is named."""
        for stage in stages or STAGES:
            run(*self.command(stage))

    def copy(self, folder: Path) -> Study:
        """The same study in another folder."""
        return Study(shutil.copytree(self.folder, folder / "study", symlinks=True))

    def contents(self) -> dict[str, str]:
        """What it holds."""
        return contents(self.folder)
