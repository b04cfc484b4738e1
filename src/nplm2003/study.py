"""The study: a configuration and its tables of rows, checked and resolved.

`resolve` turns what the user wrote into one plain object (`study.json`) that the rules, the tables and the figures all
read. Whatever is wrong with it is said in one line, before anything runs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from nplm2003.corpora.news import check_months
from nplm2003.errors import UserError
from nplm2003.mixture import WEIGHTS
from nplm2003.neural.architectures import ARCHITECTURES, PAPER, complete_options, parse_options, require_own
from nplm2003.neural.preset import Preset
from nplm2003.plan import is_paper_network
from nplm2003.vocabulary import Split

TABLES = ("policies", "networks", "ngrams", "mixtures", "sweeps")
# Names of tables beside the main one, which `table` names.
EXTENDED = "extended"  # the table of rows beyond the paper's
OTHER_TABLES = (
    "extended",
    "runs",
    "compare",
    "claims",
    "policies",
    "targets",
    "departures",
    "neighbours",
    "oov",
    "sweeps",
    "timings",
    "ways",
)
# Keys of the corpus that only some sources have.
SOURCES_OF_KEY = {
    **dict.fromkeys(("train_file", "valid_file", "test_file", "file", "tokenizer"), ("text",)),
    "folder": ("ap",),
    "first_month": ("ap", "reuters"),
    "last_month": ("ap", "reuters"),
}
# What else lies in the folders of results, where a policy and a model have folders of their own.
TAKEN = {
    "policy": ("presets", "tables", "figures", "benchmarks", "logs"),
    "model": ("tokens", "classes", "every-word"),
}
# KenLM is compiled for orders up to 6 (KENLM_MAX_ORDER); a higher one needs a build of one's own.
KENLM_KINDS = ("kneser-ney", "class-based")
MAX_NGRAM_ORDER = 6
# The kind of a row of one network whose words outside V get features; it stands among the mixtures.
OUT_OF_VOCABULARY = "out-of-vocabulary"
# The n-gram rows whose perplexity is compared across vocabulary policies: (kind, order).
POLICY_NGRAMS = (("interpolated", 3), ("kneser-ney", 3), ("kneser-ney", 5))


# For JSON Schema 1.0 is an integer; in Python it makes another path and another range than 1.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


def resolve(configuration: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Check `configuration` and the tables it names; return the study as plain JSON values.

    Tables are looked for from the working directory first, then from `root`, the folder of the Snakefile, which also
    holds the schemas. Raises UserError, with one line that names the file, the row and the key.
    """
    schemas = root / "workflow" / "schemas"
    _check_text(configuration, "")
    if re.search(r"['\\\\{}\x00-\x1f\x7f]", str(root)):
        raise UserError(
            f"the folder {str(root)!r} has an apostrophe, a backslash, curly brackets or a line break in its name, "
            "which Snakemake hands on wrongly: rename it"
        )
    _check(configuration, _load(schemas / "config.schema.yaml"), "the configuration")
    if configuration["name"] == "reference":
        raise UserError("the configuration: name: results/reference is for copies of results; choose another name")
    if configuration["table"] in OTHER_TABLES:
        raise UserError(f"the configuration: table: {configuration['table']} is another table; choose another name")
    _check_corpus(configuration["corpus"])
    for name, preset in configuration["presets"].items():
        try:
            if preset is not None:
                Preset(**preset)
        except UserError as error:
            raise UserError(f"the configuration: presets.{name}: {error}") from error
    row_schemas = _load(schemas / "rows.schema.yaml")
    tables = {
        table: [] if configuration[table] is None else _read_rows(configuration[table], table, row_schemas, root)
        for table in TABLES
    }

    _leave_out(configuration["presets"], tables)
    if not configuration["extended"]:
        _leave_extended_out(tables)
    policies = tables["policies"]
    _refuse_duplicates("policy", policies, configuration["policies"])
    _refuse_taken("policy", policies, configuration["policies"])
    names = [row["policy"] for row in policies]
    if configuration["policy"] not in names:
        raise UserError(
            f"the configuration: policy {configuration['policy']!r} is no row of {configuration['policies']}; "
            f"it has {', '.join(names)}"
        )
    published = _published(configuration, tables, root)
    rows, extended_rows, sweep_rows = _rows(configuration, tables)
    sweeps = _sweeps(configuration, tables["sweeps"], names, [*rows, *extended_rows, *sweep_rows])
    return {
        "name": configuration["name"],
        "title": configuration["title"],
        "corpus": dict(configuration["corpus"]),
        "policy": configuration["policy"],
        "policies": policies,
        "table": configuration["table"],
        "published": published,
        "rows": rows,
        "extended_rows": extended_rows,
        "sweep_rows": sweep_rows,
        "sweeps": sweeps,
        "cuts": {row["policy"]: row["train"] for row in sweeps if row["train"]},
        "policy_models": [row["model"] for row in rows if (row["kind"], row["order"]) in POLICY_NGRAMS],
        "presets": {name: dict(preset) for name, preset in configuration["presets"].items() if preset is not None},
        "seeds": list(configuration["seeds"]),
        "threads": configuration["threads"],
        "parallel": configuration["parallel"],
    }


def _leave_out(presets: Mapping[str, Any], tables: dict[str, list[dict[str, Any]]]) -> None:
    """Take the networks of presets that are null out of the tables, with the mixtures and the sweep points of them."""
    used = {row["preset"] for row in tables["networks"]}
    for name, preset in presets.items():
        if preset is None and name not in used:
            raise UserError(
                f"the configuration: presets.{name} is null, and no network uses it; they use {', '.join(sorted(used))}"
            )
    gone = {row["model"] for row in tables["networks"] if presets.get(row["preset"], row) is None}
    tables["networks"] = [row for row in tables["networks"] if row["model"] not in gone]
    tables["mixtures"] = [row for row in tables["mixtures"] if not gone & set(row["components"].split(","))]
    tables["sweeps"] = [row for row in tables["sweeps"] if row["model"] not in gone]


def _leave_extended_out(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Take the rows of the extended table out, with the sweep points of them."""
    gone = {
        row["model"]
        for table in ("networks", "ngrams", "mixtures")
        for row in tables[table]
        if row["table"] == EXTENDED
    }
    for table in ("networks", "ngrams", "mixtures", "sweeps"):
        tables[table] = [row for row in tables[table] if row["model"] not in gone]


def _published(configuration: Mapping[str, Any], tables: Mapping[str, list[dict[str, Any]]], root: Path) -> str | None:
    """Where the published table lies, None without one; refuses a row that names none of its lines."""
    name = configuration["published"]
    if name is None:
        return None
    path = _find(name, "published", root)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            models = list(dict.fromkeys(line["model"] for line in csv.DictReader(stream)))
    except (KeyError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"the configuration: published: {name} is no table of published perplexities (UTF-8, commas between cells, "
            "a column model): correct it, or set published to null"
        ) from error
    for table in ("networks", "ngrams", "mixtures"):
        for row in tables[table]:
            if row["published"] is not None and row["published"] not in models:
                raise UserError(
                    f"{configuration[table]}, row {row['model']}: published {row['published']!r} is no model of "
                    f"{name}, which has {', '.join(models)}; correct it or leave it empty"
                )
    return str(path)


def table_file(study: Mapping[str, Any], table: str) -> str:
    """The name of a table's files: the main table (`rows`) has the one the configuration gives, others their own."""
    return str(study["table"]) if table == "rows" else table


def find_row(study: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The row of `model`, in any table or none; raises UserError, with the names there are, where there is none."""
    rows = [*study["rows"], *study["extended_rows"], *study["sweep_rows"]]
    for row in rows:
        if row["model"] == model:
            return dict(row)
    names = ", ".join(row["model"] for row in rows)
    raise UserError(f"the study has no row {model}: name one of {names}")


def _rows(
    configuration: Mapping[str, Any], tables: Mapping[str, list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """The models of the main table, those of the extended table, and those that only sweeps use.

    They stand in the order of the paper's tables: networks and their mixtures first, then n-grams,
    then mixtures of n-grams alone.
    """
    presets, seeds = configuration["presets"], list(configuration["seeds"])
    (policy,) = (row for row in tables["policies"] if row["policy"] == configuration["policy"])
    columns = ("order", "classes", "hidden", "features", "direct", "architecture", "options")
    empty = dict.fromkeys((*columns, "word_features", "outputs", "preset"))
    networks, ngrams = [], []
    for row in tables["networks"]:
        where = f"{configuration['networks']}, row {row['model']}"
        if row["preset"] not in presets:
            raise UserError(f"{where}: no preset {row['preset']!r}; the configuration has {', '.join(sorted(presets))}")
        _check_architecture(row, where, presets[row["preset"]])
        if row["hidden"] == 0 and not row["direct"] and row["architecture"] == PAPER:
            raise UserError(f"{where}: with hidden 0 and direct no, the output ignores the context; change one of them")
        if row["outputs"] != "words" and presets[row["preset"]]["objective"] != "softmax":
            raise UserError(
                f"{where}: outputs {row['outputs']} is trained by its exact objective; choose a preset with softmax"
            )
        if row["outputs"] != "words" and presets[row["preset"]]["self_normalisation"]:
            raise UserError(
                f"{where}: the preset {row['preset']} has a penalty on log Z, which outputs {row['outputs']} does not "
                "know; choose a preset with self_normalisation 0"
            )
        exact = row["outputs"] == "words" and presets[row["preset"]]["objective"] == "softmax"
        if (configuration["parallel"] or {}).get("scheme") == "vocabulary" and not exact:
            raise UserError(
                f"{where}: the vocabulary is split for exact softmax over all words alone; "
                "choose another parallel.scheme"
            )
        _check_classes(row, where, policy, row["outputs"] in ("classes", "tree"))
        networks.append({**empty, **row, "kind": "network", "seeds": seeds[: row["seeds"]]})
    for row in tables["ngrams"]:
        where = f"{configuration['ngrams']}, row {row['model']}"
        if row["kind"] in KENLM_KINDS and row["order"] > MAX_NGRAM_ORDER:
            raise UserError(
                f"{where}: order {row['order']} is above {MAX_NGRAM_ORDER}, the highest that KenLM is compiled for; "
                "use a lower one"
            )
        if row["kind"] == "interpolated" and row["order"] != 3:
            raise UserError(f"{where}: the interpolated model of the paper is a trigram; set order to 3")
        _check_classes(row, where, policy, row["kind"] == "class-based")
        ngrams.append({**empty, **row, "seeds": [0]})
    # A mixture of the main table mixes models of that table; others may take any that stand in a table.
    models = {row["model"]: row for row in networks + ngrams if row["table"]}
    main = [model for model, row in models.items() if row["table"] != EXTENDED]
    mixtures = []
    for row in tables["mixtures"]:
        components = row["components"].split(",")
        alone = row["weights"] not in WEIGHTS
        if (len(components) == 1) != alone:
            raise UserError(
                f"{configuration['mixtures']}, row {row['model']}: components is {row['components']!r}; with weights "
                f"{row['weights']} it names {'one network alone' if alone else 'two models or more'}"
            )
        if len(set(components)) < len(components):
            raise UserError(f"{configuration['mixtures']}, row {row['model']}: a component stands there twice")
        known = list(models) if row["table"] == EXTENDED else main
        for component in components:
            if component not in known:
                raise UserError(
                    f"{configuration['mixtures']}, row {row['model']}: component {component!r} is no network or n-gram "
                    f"row of {'a' if row['table'] == EXTENDED else 'the main'} table; there are {', '.join(known)}"
                )
        if alone and not is_paper_network(models[components[0]]):
            raise UserError(
                f"{configuration['mixtures']}, row {row['model']}: component {components[0]!r} is no network with the "
                f"architecture {PAPER} and the outputs words: features for words outside the vocabulary need one"
            )
        # A mixture is described by its network, as in the paper's table (MLP2 has the shape of MLP1).
        nets = [models[component] for component in components if models[component]["kind"] == "network"]
        first = nets[0] if nets else {**empty, "order": max(models[c]["order"] for c in components)}
        shape = {key: first[key] for key in empty}
        kind = OUT_OF_VOCABULARY if alone else "mixture"
        # Where the networks of a mixture have not the same seeds: those that all of them have.
        seeds_of = min((net["seeds"] for net in nets), key=len, default=[0])
        mixtures.append({**shape, **row, "components": components, "kind": kind, "seeds": seeds_of})
    for table, rows in (("networks", networks), ("ngrams", ngrams), ("mixtures", mixtures)):
        _refuse_duplicates("model", rows, configuration[table])
        _refuse_taken("model", rows, configuration[table])
    _refuse_duplicates("model", networks + ngrams + mixtures, "the tables of rows together")
    if not models:
        raise UserError(
            f"{configuration['networks']} and {configuration['ngrams']}: no row is in the main table; add one, or set "
            "its column table to yes"
        )

    def of(table: bool | str) -> list[dict[str, Any]]:
        mine = [[row for row in rows if row["table"] == table] for rows in (networks, mixtures, ngrams)]
        with_networks, of_ngrams = _interleave(mine[0], mine[1])
        return [*with_networks, *mine[2], *of_ngrams]

    return of(True), of(EXTENDED), of(False)


def _check_architecture(row: Mapping[str, Any], where: str, preset: Mapping[str, Any]) -> None:
    """A row of another architecture than the paper's leaves alone what is made for the paper's network."""
    architecture = row["architecture"]
    if architecture.startswith(("bidirectional", "bi-")):
        raise UserError(
            f"{where}: architecture {architecture}: a model that reads what follows a word gives it no probability "
            "that can be compared with a language model's (docs/beyond.md): choose one that reads from left to right"
        )
    if architecture not in (PAPER, *ARCHITECTURES):
        raise UserError(f"{where}: no architecture {architecture!r}; there are {', '.join((PAPER, *ARCHITECTURES))}")
    try:
        require_own(
            architecture,
            options=complete_options(architecture, parse_options(row["options"])),
            **{key: row[key] for key in ("hidden", "direct", "outputs", "word_features")},
            **{key: preset[key] for key in ("weight_decay", "objective")},
        )
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _sweeps(
    configuration: Mapping[str, Any],
    sweeps: list[dict[str, Any]],
    policies: list[str],
    rows: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """The points of the sweeps: `sweep`, `policy` (a folder of results), `train` (a share, or None for all), `model`.

    Tokens of which only a share of train is used are kept under a policy of their own, named after the share.
    """
    models = [row["model"] for row in rows if row["kind"] not in ("mixture", OUT_OF_VOCABULARY)]
    points: list[dict[str, Any]] = []
    for row in sweeps:
        where = f"{configuration['sweeps']}, row {row['sweep']} {row['model']}"
        if row["model"] not in models:
            raise UserError(
                f"{where}: the model is no row of {configuration['networks']} or {configuration['ngrams']}; correct "
                "it, or set sweeps to null"
            )
        for column in ("policy", "train"):
            if row[column] and row["sweep"] != column:
                raise UserError(
                    f"{where}: {column} {row[column]!r} is for the sweep {column} only: a curve varies one thing"
                )
        if row["policy"] and row["policy"] not in policies:
            raise UserError(
                f"{where}: policy {row['policy']!r} is no row of {configuration['policies']}; it has "
                f"{', '.join(policies)}"
            )
        policy = row["policy"] or configuration["policy"]
        if row["train"]:
            policy = f"{policy}-train-{row['train'].replace('/', '-')}"
            if policy in policies:
                raise UserError(
                    f"{configuration['policies']}: policy {policy!r} is the name that the sweep train gives to a share "
                    "of the training tokens; give the policy another name"
                )
        point = {**row, "policy": policy}
        if point in points:
            raise UserError(f"{where}: the point stands there twice; leave one out")
        points.append(point)
    return points


def _check_classes(row: Mapping[str, Any], where: str, policy: Mapping[str, Any], needed: bool) -> None:
    """A row that needs word classes, and no other, has a number of classes that the vocabulary allows."""
    classes = row["classes"]
    if needed != (classes is not None):
        asked = "says how many classes it has" if classes is None else "has classes; leave the cell empty"
        raise UserError(
            f"{where}: classes is {classes or 'empty'}: a row that is class-based or whose outputs are classes or a "
            f"tree, and no other, {asked}"
        )
    if classes is not None and policy["cut"] == "rank" and classes >= policy["size"]:
        raise UserError(
            f"{where}: {classes} classes for the {policy['size']} words of policy {policy['policy']}; use fewer classes"
        )


def _interleave(
    networks: list[dict[str, Any]], mixtures: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every network followed by the mixtures it comes first in; and the mixtures without a network."""
    rows, left = [], list(mixtures)
    for network in networks:
        rows.append(network)
        mine = [row for row in left if network["model"] in row["components"]]
        rows += mine
        left = [row for row in left if row not in mine]
    return rows, left


def _read_rows(name: str, table: str, schemas: Mapping[str, Any], root: Path) -> list[dict[str, Any]]:
    """Read one tab-separated table, give its cells their types and check every row."""
    path = _find(name, table, root)
    schema = {"$ref": f"#/$defs/{table}", **schemas}
    columns = list(schemas["$defs"][table]["properties"])
    try:
        # utf-8-sig: spreadsheets put a byte-order mark in front, which is no part of the first column's name.
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = [line for line in csv.reader(stream, delimiter="\t") if line and not line[0].startswith("#")]
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8 ({error}): save it as UTF-8 text") from error
    except csv.Error as error:
        raise UserError(f"{name} cannot be read as a table ({error}): separate cells by tabs, rows by lines") from error
    if not lines:
        raise UserError(f"{name} is empty: its first line must be {' '.join(columns)}, separated by tabs")
    header, *body = lines
    if sorted(header) != sorted(columns):
        said = [f"unknown column {column!r}" for column in header if column not in columns][:1]
        said += [f"no column {column!r}" for column in columns if column not in header][:1]
        raise UserError(f"{name}: {' and '.join(said or ['a column twice'])}; the columns are {', '.join(columns)}")
    rows = []
    for line in body:
        if len(line) != len(header):
            raise UserError(
                f"{name}, row {line[0]}: {len(line)} cells for {len(header)} columns; separate them by tabs"
            )
        row = {column: _typed(cell) for column, cell in zip(header, line, strict=True)}
        _check(row, schema, f"{name}, row {line[0]}")
        size = row.get("size")
        if row.get("cut") == "rank" and isinstance(size, int) and size < 2:
            raise UserError(f"{name}, row {line[0]}: size {size} leaves no vocabulary; cut rank needs 2 or more")
        rows.append(row)
    return rows


def _typed(cell: str) -> str | int | bool | None:
    """A cell's value: yes/no, a whole number, nothing, or text."""
    cell = cell.strip()
    if cell in ("yes", "no"):
        return cell == "yes"
    if cell == "":
        return None
    return int(cell) if re.fullmatch(r"-?\d{1,9}", cell) else cell


def _check_text(value: Any, key: str) -> None:
    """Refuse keys that are no text, and text that would break a line or a path of Snakemake, anywhere in `value`."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            if not isinstance(name, str):
                raise UserError(f"the configuration: the key {name!r} of {key or 'the top level'} is no text: quote it")
            _check_text(below, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            _check_text(below, f"{key}.{number}")
    elif isinstance(value, str):
        if re.search(r"[\x00-\x1f\x7f\u2028\u2029]", value):
            raise UserError(
                f"the configuration: {key}: {value!r:.60} holds a line break or control character: take it out"
            )
        if key != "title" and re.search(r"[{}]", value):
            raise UserError(
                f"the configuration: {key}: {value!r:.60} has curly brackets, which Snakemake reads as wildcards: use "
                "another name"
            )


def _check(instance: Any, schema: Mapping[str, Any], where: str) -> None:
    """Raise UserError with the one line that helps most where `instance` does not follow `schema`."""
    error = jsonschema.exceptions.best_match(_Validator(schema).iter_errors(instance))
    if error is None:
        return
    key = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = list(error.schema["properties"])
        unknown = sorted(set(error.instance) - set(allowed))[0]
        place = f"{key}.{unknown}" if key else unknown
        raise UserError(f"{where}: unknown key {place!r}; known here: {', '.join(allowed)}")
    at = f"{where}: {key}" if key else where
    raise UserError(f"{at}: {error.message}")


def _check_corpus(corpus: Mapping[str, Any]) -> None:
    """What the schema cannot say of the corpus: which keys go with which source."""
    source = corpus["source"]
    parts = [key for key in ("train_file", "valid_file", "test_file") if corpus.get(key)]
    where = "the configuration: corpus"
    for key, sources in SOURCES_OF_KEY.items():
        if corpus.get(key) and source not in sources:
            raise UserError(f"{where}.{key} is only for source: {' or '.join(sources)}; this source is {source}")
    check_months((corpus.get("first_month"), corpus.get("last_month")))
    if source == "text":
        if parts and (len(parts) < 3 or corpus.get("file")):
            raise UserError(f"{where}: give either file, or all of train_file, valid_file and test_file")
        if not parts and not corpus.get("file"):
            raise UserError(f"{where}: source text needs file, or train_file, valid_file and test_file")
    if source == "ap" and not corpus.get("folder"):
        raise UserError(f"{where}.folder is missing: name the folder that holds your AP files")
    if not parts and not corpus.get("split"):
        raise UserError(f"{where}.split is missing: say how many tokens, or which share, train and valid get")
    if not parts:
        Split(**corpus["split"]).shares()


def _refuse_taken(key: str, rows: list[dict[str, Any]], where: str) -> None:
    """Refuse names that other folders of the results have; in either case, since some file systems take them as one."""
    for row in rows:
        if row[key].lower() in TAKEN[key]:
            raise UserError(f"{where}: {key} {row[key]!r} is the name of another folder of the results; choose another")


def _refuse_duplicates(key: str, rows: list[dict[str, Any]], where: str) -> None:
    seen = set()
    for row in rows:
        if row[key] in seen:
            raise UserError(f"{where}: {key} {row[key]!r} stands there twice; every row needs a name of its own")
        seen.add(row[key])


def _find(name: str, key: str, root: Path) -> Path:
    for path in (Path(name), root / name):
        if path.is_file():
            return path
    raise UserError(f"the configuration: {key}: there is no file {name}")


def _load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
