"""What the rules share: the checked study, the layout of the results, and the options each stage takes from its row."""

import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from snakemake.settings.types import DeploymentMethod

from nplm2003 import plan
from nplm2003.corpora import SOURCES
from nplm2003.errors import UserError
from nplm2003.figures import FIGURES, figures_of
from nplm2003.files import write_json
from nplm2003.neural.architectures import ARCHITECTURES, PAPER
from nplm2003.ngram import SMOOTHED_KINDS
from nplm2003.reference import copy_results
from nplm2003.scoring import SPLITS
from nplm2003.study import find_row, resolve, table_file

try:
    STUDY = resolve(config, ROOT)
    CORPUS_FILES = plan.corpus_files(STUDY["corpus"])
except UserError as error:
    # One line, without the trace that Snakemake adds to an exception.
    sys.exit(f"nplm2003: error: {error}")

# The commands of the rules run this package, with the Python that runs Snakemake unless conda supplies one.
# The mirror travels in the environment, since it is no reason to fetch again what is there.
EXPORTS = {"PYTHONPATH": shlex.quote(str(ROOT / "src"))}
if config["mirror"]:
    EXPORTS["NPLM2003_MIRROR"] = shlex.quote(config["mirror"])
if DeploymentMethod.CONDA not in workflow.deployment_settings.deployment_method:
    EXPORTS["PATH"] = f"{shlex.quote(str(Path(sys.executable).parent))}:$PATH"
shell.prefix(f"export {' '.join(f'{name}={value}' for name, value in EXPORTS.items())}; ")

RESULTS = f"results/{STUDY['name']}"
POLICY = STUDY["policy"]
MAIN = f"{RESULTS}/{POLICY}"
BENCHMARKS = f"{RESULTS}/benchmarks"
LOGS = f"{RESULTS}/logs"
POLICIES = [row["policy"] for row in STUDY["policies"]]
DOWNLOAD = plan.download(STUDY["corpus"])  # None: the corpus is not fetched

PROCESSES = STUDY["parallel"]["processes"] if STUDY["parallel"] else 1  # that train one network

TABLES_OF_ROWS = ("rows", "extended_rows")
ROWS = [*STUDY["rows"], *STUDY["extended_rows"], *STUDY["sweep_rows"]]


def models_of(*kinds):
    """Names of the models of these kinds, in the main table or not; never empty, so that it can constrain a wildcard."""
    return [row["model"] for row in ROWS if row["kind"] in kinds] or ["-"]


def any_of(names):
    """A regular expression that matches exactly these names."""
    return "|".join(str(name).replace(".", r"\.") for name in names)


wildcard_constraints:
    policy=any_of([*POLICIES, *STUDY["cuts"]]),
    model=any_of(row["model"] for row in ROWS),
    seed=any_of([0, *STUDY["seeds"]]),


def modules(*names):
    """Source files of package modules. Snakemake does not see edits under src/, so the rules name what they run."""
    return [str(ROOT / "src" / "nplm2003" / f"{name}.py") for name in names]


def scores_of(folder):
    """The files of a scores folder."""
    return [*(f"{folder}/{split}.npy" for split in SPLITS), f"{folder}/scores.json"]


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


def component_scores(wildcards):
    """The files that a mixture mixes."""
    return [file for folder in component_folders(wildcards) for file in scores_of(folder)]


def component_network(wildcards):
    """The one network that a row is made of, and its own scores."""
    (scores,) = component_folders(wildcards)
    folder = Path(scores).parent
    return {"network": f"{folder}/weights.pt", "training": f"{folder}/training.json", "plain": f"{scores}/scores.json"}


def component_options(wildcards):
    """What `mix` is told of its components."""
    return " ".join(plan.options(component=folder) for folder in component_folders(wildcards))


def runs(models=None, tables=("rows",)):
    """Folders of every model and seed of the main table, or of others, too."""
    return [
        f"{MAIN}/{row['model']}/seed{seed}"
        for row in [row for table in tables for row in STUDY[table]]
        if models is None or row["model"] in models
        for seed in row["seeds"]
    ]


def sweep_folders(*kinds):
    """Folders of the points of all sweeps, at the first seed; of the models of these kinds where any are named."""
    return [
        f"{RESULTS}/{point['policy']}/{row['model']}/seed{row['seeds'][0]}"
        for point in STUDY["sweeps"]
        if (row := find_row(STUDY, point["model"])) and (not kinds or row["kind"] in kinds)
    ]


def doubling(megabytes):
    """The memory of a job: this much at first and twice as much at each further attempt, for jobs that are killed for it.

    Only the cluster profiles try again. A job on a cluster also holds the Snakemake that runs it, about 250 MB.
    """
    return lambda wildcards, attempt: megabytes * 2 ** (attempt - 1)


def row_value(key):
    """A function of the wildcards that gives one cell of the model's row."""
    return lambda wildcards: find_row(STUDY, wildcards.model)[key]


def class_files(wildcards):
    """The table of word classes, and its description, that a row takes its classes from; nothing where it has none."""
    classes = find_row(STUDY, wildcards.model)["classes"]
    if classes is None:
        return {}
    folder = f"{RESULTS}/{wildcards.policy}/classes/{classes}"
    return {"classes": f"{folder}/classes.tsv", "description": f"{folder}/classes.json"}


def corpus_options(wildcards):
    """What `build-tokens` is told of the corpus and of the vocabulary policy."""
    return plan.corpus_options(STUDY, wildcards.policy)


def network_options(wildcards):
    """The shape of a network, from its row, and how many processes train it."""
    return plan.network_options(find_row(STUDY, wildcards.model), STUDY["parallel"])


def network_code(wildcards):
    """The modules that train a network; only one whose features do not start at random depends on where they come from."""
    features = {"learnt": [], "word2vec": ["neural/word2vec"], "svd": ["neural/cooccurrence"]}
    architecture = find_row(STUDY, wildcards.model)["architecture"]
    others = []
    if architecture != PAPER:
        others = ["neural/variant", f"neural/architectures/{ARCHITECTURES[architecture].module}"]
    return modules(
        "neural/model",
        "neural/objectives",
        "neural/outputs",
        "neural/data",
        "neural/preset",
        "neural/parallel",
        "neural/training",
        *features[find_row(STUDY, wildcards.model)["word_features"]],
        *others,
    )


def preset_file(wildcards):
    """The file of the preset that a network's row names."""
    return f"{RESULTS}/presets/{find_row(STUDY, wildcards.model)['preset']}.json"


def table_stem(table):
    """The files of one table without their suffixes."""
    return f"{RESULTS}/tables/{table_file(STUDY, table)}"


def table_files(table):
    """The files of one table; the first goes into the report."""
    return [f"{table_stem(table)}.{suffix}" for suffix in ("html", "csv", "md", "tex")]


def figure_modules(figure):
    """The modules that draw a figure."""
    name = FIGURES[figure][0]
    return modules("figures/style", f"figures/{name}", "outcomes", *FIGURE_CODE.get(name, []))
