"""A small study for the explorer page, made by the commands that the rules run: three networks, one of them of two
features, the trigram and a mixture, on an invented language in which some words are fragments of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from synthetic import NO_SWEEPS, policy, row

from nplm2003.cli import main
from nplm2003.files import write_json
from nplm2003.neural.preset import Preset

POLICY = "top50"
TRIGRAM = "interpolated-trigram"
# Words that would end the script, open a comment, or name what every JavaScript object has.
ODD = ("</script>", "<!--", "__proto__", "&lt;", '"\\')
SHAPES = {
    "NET5": {"order": 5, "hidden": 6, "features": 4, "direct": False},
    "NET3": {"order": 3, "hidden": 0, "features": 5, "direct": True},
    "FLAT": {"order": 3, "hidden": 4, "features": 2, "direct": True},
}


def _row(model: str, kind: str, **settings: Any) -> dict[str, Any]:
    return row(model, kind, word_features="learnt", outputs="words", preset="quick", seeds=[1], **settings)


def study_of(preset: Preset) -> dict[str, Any]:
    """The study: `FLAT` is in a sweep alone; `AGAIN` has the shape of NET3, and `TREE` another output layer."""
    networks = {model: _row(model, "network", **shape) for model, shape in SHAPES.items()}
    parts = {"components": ["NET5", TRIGRAM], "weights": "fixed"}
    return {
        "name": "small",
        "title": "A <small> study",
        "corpus": {"source": "text"},
        "policy": POLICY,
        "policies": [policy(POLICY, cut="rank", size=50, marks=False)],
        "table": "table1",
        "published": None,
        "rows": [
            networks["NET5"],
            _row("MIX", "mixture", **SHAPES["NET5"], **parts),
            networks["NET3"],
            {**networks["NET3"], "model": "AGAIN"},
            {**networks["NET3"], "model": "TREE", "hidden": 9, "outputs": "tree"},
            row(TRIGRAM, "interpolated", order=3),
        ],
        **NO_SWEEPS,
        "sweep_rows": [networks["FLAT"]],
        "policy_models": [],
        "presets": {"quick": preset.as_dict()},
    }


def _run(*arguments: Any, **options: Any) -> None:
    told = [part for key, value in options.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    assert main([*map(str, arguments), *told]) == 0, arguments


def make_explorer_study(folder: Path, text: str, preset: Preset) -> Path:
    """Make the study in `folder`, which stands for results/CORPUS; returns it."""
    home = folder / POLICY
    lines = text.split("\n")
    lines[2::9] = [f"{line} {' '.join(ODD)} ." for line in lines[2::9]]
    folder.mkdir(parents=True)
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    write_json(folder / "study.json", study_of(preset))
    tokens = home / "tokens"
    corpus = {"corpus": "small", "source": "text", "file": folder / "text.txt", "train": 0.7, "valid": 0.15}
    rules = {"policy": POLICY, "count_on": "stream", "cut": "rank", "size": 50}
    _run("build-tokens", **corpus, **rules, output=tokens)

    trigram = home / TRIGRAM / "seed0"
    _run("estimate-interpolated", tokens=tokens, output=trigram / "weights.json")
    scores = {"tokens": tokens, "model": TRIGRAM, "output": trigram / "scores"}
    _run("score-interpolated", weights=trigram / "weights.json", **scores)
    networks = {model: home / model / "seed1" for model in SHAPES}
    for model, network in networks.items():
        shape = {key: SHAPES[model][key] for key in ("order", "hidden", "features")}
        direct = ["--direct"] if SHAPES[model]["direct"] else []
        trained = {"preset_file": folder / "study.json", "preset": "quick", "seed": 1, "output": network}
        _run("train", *direct, tokens=tokens, **shape, **trained)
        _run("score", tokens=tokens, network=network, model=model, output=network / "scores")
        told = {"trigram": trigram / "weights.json", "output": network / "added-sentence.json"}
        _run("add-sentence", tokens=tokens, network=network, **told)
    mixture = home / "MIX" / "seed1"
    parts = [part for each in (networks["NET5"], trigram) for part in ("--component", each / "scores")]
    mixed = {"tokens": tokens, "weights": "fixed", "model": "MIX", "seed": 1}
    _run("mix", *parts, **mixed, output=mixture / "scores", weights_output=mixture / "weights.json")
    for run in (trigram, mixture, *networks.values()):
        _run("evaluate", tokens=tokens, scores=run / "scores", output=run / "evaluation.json")
    return folder
