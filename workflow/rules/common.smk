"""What the rules share: the checked study, the layout of the results, and the options each stage takes from its row."""

import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from snakemake.exceptions import WorkflowError

from nplm2003.errors import UserError
from nplm2003.figures import FIGURES
from nplm2003.files import whole, write_json
from nplm2003.scoring import SPLITS
from nplm2003.study import find_row, resolve

try:
    STUDY = resolve(config, ROOT)
except UserError as error:
    raise WorkflowError(str(error)) from None

# The commands of the rules run this package with the Python that runs Snakemake, unless conda supplies both.
shell.prefix(
    f"export PYTHONPATH={shlex.quote(str(ROOT / 'src'))}; "
    + (f"export NPLM2003_MIRROR={shlex.quote(config['mirror'])}; " if config["mirror"] else "")
    + f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
)

RESULTS = f"results/{STUDY['name']}"
POLICY = STUDY["policy"]
MAIN = f"{RESULTS}/{POLICY}"
BENCHMARKS = f"{RESULTS}/benchmarks"
LOGS = f"{RESULTS}/logs"
CORPUS = STUDY["corpus"]
POLICIES = {row["policy"]: row for row in STUDY["policies"]}
BROWN = "data/downloads/brown.zip"

MODELS = [row["model"] for row in STUDY["rows"]]


def models_of(kind):
    """Names of the models of one kind; never empty, so that it can constrain a wildcard."""
    return [row["model"] for row in STUDY["rows"] if row["kind"] == kind] or ["-"]


def any_of(names):
    """A regular expression that matches exactly these names."""
    return "|".join(str(name).replace(".", r"\.") for name in names)


wildcard_constraints:
    policy=any_of(POLICIES),
    model=any_of(MODELS),
    seed=r"\d+",


def modules(*names):
    """Source files of package modules. Snakemake does not see edits under src/, so the rules name what they run."""
    return [str(ROOT / "src" / "nplm2003" / f"{name}.py") for name in names]


def scores_of(folder):
    """The files of a scores folder."""
    return [f"{folder}/{split}.npy" for split in SPLITS] + [f"{folder}/scores.json"]


def seed_of(model, seed):
    """The seed a component of a mixture is taken at: the mixture's own, or 0 for a model that draws nothing."""
    return seed if find_row(STUDY, model)["kind"] == "network" else 0


def component_folders(wildcards):
    """The scores folders that a mixture mixes."""
    row = find_row(STUDY, wildcards.model)
    return [
        f"{RESULTS}/{wildcards.policy}/{component}/seed{seed_of(component, wildcards.seed)}/scores"
        for component in row["components"]
    ]


def runs(models=None):
    """Folders of every model and seed of the main table."""
    return [
        f"{MAIN}/{row['model']}/seed{seed}"
        for row in STUDY["rows"]
        if models is None or row["model"] in models
        for seed in row["seeds"]
    ]


def row_value(key):
    """A function of the wildcards that gives one cell of the model's row."""
    return lambda wildcards: find_row(STUDY, wildcards.model)[key]


def options(**values):
    """Command-line options: --key value, --key for True, nothing for None and False."""
    words = []
    for key, value in values.items():
        if value is None or value is False:
            continue
        words.append("--" + key.replace("_", "-"))
        if value is not True:
            words.append(shlex.quote(str(value)))
    return " ".join(words)


def corpus_options(wildcards):
    """What `build-tokens` is told of the corpus and of the vocabulary policy."""
    row = POLICIES[wildcards.policy]
    keys = ("count_on", "cut", "size", "lowercase", "marks", "split_clitics")
    files = {key: CORPUS.get(key) for key in ("file", "train_file", "valid_file", "test_file", "tokenizer")}
    if CORPUS["source"] == "brown":
        files["file"] = BROWN
    return options(
        corpus=STUDY["name"],
        source=CORPUS["source"],
        **files,
        **(CORPUS.get("split") or {}),
        policy=wildcards.policy,
        **{key: row[key] for key in keys},
    )


def corpus_files(wildcards):
    """The files the corpus is read from."""
    if CORPUS["source"] == "brown":
        return [BROWN]
    return [CORPUS[key] for key in ("file", "train_file", "valid_file", "test_file") if CORPUS.get(key)]


def network_options(wildcards):
    """The shape of a network, from its row."""
    row = find_row(STUDY, wildcards.model)
    return options(**{key: row[key] for key in ("order", "hidden", "features", "direct", "preset")})


def preset_file(wildcards):
    """The file of the preset that a network's row names."""
    return f"{RESULTS}/presets/{find_row(STUDY, wildcards.model)['preset']}.json"


def table_files(stem):
    """The files of one table; the first goes into the report."""
    return [f"{RESULTS}/tables/{stem}.{suffix}" for suffix in ("html", "csv", "md", "tex")]
