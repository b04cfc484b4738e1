"""The configuration and its tables: the committed ones resolve, and every mistake is one clear line."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nplm2003.corpora import SOURCES
from nplm2003.errors import UserError
from nplm2003.figures.comparisons import network_label
from nplm2003.neural.preset import AMOUNTS, CHOICES, COUNTS, Preset
from nplm2003.plan import CORPUS_OPTIONS, POLICY_OPTIONS
from nplm2003.published import PUBLISHED_CORPORA
from nplm2003.study import MAX_NGRAM_ORDER, TABLES, find_row, resolve
from nplm2003.vocabulary import COUNT_ON, CUTS, Policy

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
Config = dict[str, Any]


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> Config:
    """`over` laid over `base`, key by key at every level, as Snakemake does with --configfile."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = overlay(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return result


def load(name: str) -> Config:
    content: Config = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return content


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The committed configuration, resolved from an empty working directory."""
    monkeypatch.chdir(tmp_path)
    return load("config/config.yaml")


def read_table(name: str) -> list[list[str]]:
    with (ROOT / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream, delimiter="\t"))


def use_table(config: Config, table: str, lines: list[list[str]]) -> None:
    """Let `config` read `lines` as its `table`, from a file my-TABLE.tsv in the working directory."""
    config[table] = f"my-{table}.tsv"
    Path(config[table]).write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


# --- what is right ---------------------------------------------------------------------------------------------------


def test_the_brown_study_resolves(config: Config) -> None:
    study = resolve(config, ROOT)
    assert (study["name"], study["policy"], study["seeds"]) == ("brown", "top16383", [1, 2, 3])
    rows = {row["model"]: row for row in study["rows"]}
    for k in (1, 3, 5, 7, 9):
        net, mixture = rows[f"MLP{k}"], rows[f"MLP{k + 1}"]
        assert (net["kind"], net["preset"], net["published"], net["seeds"]) == (
            "network",
            "modern",
            f"MLP{k}",
            [1, 2, 3],
        )
        assert mixture["kind"] == "mixture" and mixture["weights"] == "fixed"
        assert mixture["components"] == [f"MLP{k}", "interpolated-trigram"]
        # A mixture has the shape of its network, as in the paper's table.
        assert all(mixture[key] == net[key] for key in ("order", "hidden", "features", "direct"))
    assert rows["MLP9"]["direct"] is False and rows["MLP3"]["hidden"] == 0
    for model in ("MLP1-paper", "MLP9-paper", "MLP2-paper"):  # too long for more than one seed
        assert (rows[model]["preset"], rows[model]["seeds"]) == ("paper", [1])
    assert rows["interpolated-trigram"]["seeds"] == [0] and rows["kneser-ney-5"]["order"] == 5
    assert study["policy_models"] == ["interpolated-trigram", "kneser-ney-3", "kneser-ney-5"]
    assert len(study["policies"]) >= 8
    assert Path(study["published"]).is_file()
    for row in study["rows"]:
        assert {"model", "published", "kind", "order", "classes", "hidden", "features", "direct", "preset"} < set(row)


def test_networks_stand_before_their_mixtures_and_ngrams_last(config: Config) -> None:
    models = [row["model"] for row in resolve(config, ROOT)["rows"]]
    assert models[:4] == ["MLP1", "MLP2", "MLP3", "MLP4"]
    place = models.index("interpolated-trigram")
    assert models[place + 1 : place + 5] == ["kneser-ney-3", "kneser-ney-4", "kneser-ney-5", "classes-150-3"]
    assert models[-1] == "kn5-classes-binned"  # of n-grams alone


def test_the_demo_overlay_resolves_to_the_same_rows(config: Config) -> None:
    brown, demo = resolve(config, ROOT), resolve(overlay(config, load("config/demo.yaml")), ROOT)
    assert (demo["name"], demo["corpus"]["source"], demo["published"]) == ("demo", "embedded", None)
    assert [row["model"] for row in demo["rows"]] == [row["model"] for row in brown["rows"]]
    # The overlay changes the epochs alone: the recipes are those of the real study.
    for name, preset in demo["presets"].items():
        differing = {key for key, value in preset.items() if value != brown["presets"][name][key]}
        assert differing <= {"epochs_direct", "epochs_without_direct", "batch", "rate"}


def test_the_exact_study_is_that_of_brown_but_for_its_objective(config: Config) -> None:
    brown, exact = resolve(config, ROOT), resolve(overlay(config, load("config/exact.yaml")), ROOT)
    differing = {key for key in brown if brown[key] != exact[key]}
    assert differing == {"name", "title", "presets", "rows", "extended_rows", "sweeps", "cuts"}
    assert exact["rows"] == [row for row in brown["rows"] if row["preset"] not in ("exact", "nce", "paper")]
    ours, theirs = brown["presets"]["modern"], exact["presets"]["modern"]
    changed = {key for key in ours if ours[key] != theirs[key]}
    assert changed == {"objective", "noise_words", "noise_power", "self_normalisation"}
    assert set(exact["presets"]) == {"modern", "strong"} and not exact["extended_rows"]


def test_a_penalty_is_for_one_softmax_over_all_words(config: Config) -> None:
    config["presets"]["exact"]["self_normalisation"] = 0.01
    with pytest.raises(UserError, match="row MLP9-classes: the preset exact has a penalty on log Z"):
        resolve(config, ROOT)


def test_a_preset_of_null_is_left_out_with_all_that_uses_it(config: Config) -> None:
    whole, quick = resolve(config, ROOT), resolve(overlay(config, load("config/quick.yaml")), ROOT)
    gone = ("paper", "exact", "nce")
    assert quick["rows"] == [row for row in whole["rows"] if row["preset"] not in gone]
    assert {"MLP2-paper", "MLP10-paper"} <= {row["model"] for row in whole["rows"] if row["preset"] in gone}
    assert set(quick["presets"]) == {"modern", "strong"} and not quick["sweeps"]
    swept = resolve(overlay(config, {"presets": {"modern": None}}), ROOT)
    assert {find_row(swept, point["model"])["kind"] for point in swept["sweeps"]} == {"kneser-ney", "interpolated"}


def test_a_misspelt_preset_of_null_is_refused(config: Config) -> None:
    with pytest.raises(UserError, match="presets.papr is null, and no network uses it; they use exact, modern, "):
        resolve(overlay(config, {"presets": {"papr": None}}), ROOT)


def test_reuters_and_licensed_ap_have_the_same_rows(config: Config) -> None:
    on_reuters = overlay(config, load("config/reuters.yaml"))
    on_ap = overlay(on_reuters, load("config/ap.yaml"))
    reuters, ap = resolve(on_reuters, ROOT), resolve(on_ap, ROOT)
    assert (reuters["corpus"]["source"], ap["corpus"]["source"], ap["policy"]) == ("reuters", "ap", "ap")
    assert {key for key in reuters if reuters[key] != ap[key]} == {"name", "title", "corpus"}
    assert {key for key in on_reuters if on_reuters[key] != on_ap[key]} == {"name", "title", "corpus"}
    assert {ap["presets"][name]["weight_decay"] for name in ("paper", "modern")} == {1e-5}
    rows = {row["model"]: row for row in ap["rows"]}
    assert (rows["MLP10"]["published"], rows["MLP10"]["components"]) == ("MLP10", ["MLP-n6", "interpolated-trigram"])
    assert [rows["MLP10"][key] for key in ("order", "hidden", "features", "direct")] == [6, 60, 100, True]
    # Every published line of Table 2 has a row, and the proportions of the split are the paper's.
    published = {row["published"] for row in ap["rows"]} - {None}
    assert published == {"MLP10", "Deleted interpolation", "Kneser-Ney back-off"}
    tokens = PUBLISHED_CORPORA["table2_apnews"]["tokens"]
    for split, share in ap["corpus"]["split"].items():
        assert share == pytest.approx(tokens[split] / sum(tokens.values()), abs=1e-4)
    policy = next(row for row in ap["policies"] if row["policy"] == ap["policy"])
    assert policy["size"] == PUBLISHED_CORPORA["table2_apnews"]["vocabulary_size"]


def test_a_table_of_the_working_directory_comes_first(config: Config) -> None:
    Path("config").mkdir()
    config["sweeps"] = None  # they use n-grams that the new table lacks
    lines = read_table("config/ngrams.tsv")
    Path("config/ngrams.tsv").write_text("\n".join("\t".join(line) for line in lines), encoding="utf-8")
    use_table(config, "mixtures", read_table("config/mixtures.tsv")[:1])
    Path("config/ngrams.tsv").write_text("\t".join(lines[0]) + "\nmine\t\tinterpolated\t\t3\tyes\n", encoding="utf-8")
    assert find_row(resolve(config, ROOT), "mine")["published"] is None


def test_comments_and_spreadsheet_marks_in_tables(config: Config) -> None:
    lines = read_table("config/ngrams.tsv")
    text = "\ufeff" + "\r\n".join(["\t".join(lines[0]), "# a remark", *("\t".join(line) for line in lines[1:])])
    config["ngrams"] = "my-ngrams.tsv"
    Path("my-ngrams.tsv").write_text(text, encoding="utf-8")
    assert resolve(config, ROOT)["rows"] == resolve(load("config/config.yaml"), ROOT)["rows"]


def test_mixtures_of_ngrams_alone_draw_nothing(config: Config) -> None:
    lines = [*read_table("config/mixtures.tsv"), ["both", "", "interpolated-trigram,kneser-ney-5", "learnt", "yes"]]
    use_table(config, "mixtures", lines)
    config["seeds"] = [1, 2]
    study = resolve(config, ROOT)
    both = find_row(study, "both")
    assert (both["order"], both["hidden"], both["seeds"]) == (5, None, [0])
    assert find_row(study, "MLP2")["seeds"] == [1, 2]


def test_features_for_words_outside_the_vocabulary_are_a_row_of_one_network(config: Config) -> None:
    study = resolve(config, ROOT)
    network, row, rare = (find_row(study, model) for model in ("MLP9", "MLP9-oov", "MLP9-oov-rare"))
    assert (row["kind"], row["components"], row["weights"]) == ("out-of-vocabulary", ["MLP9"], "expected")
    assert (rare["kind"], rare["weights"]) == ("out-of-vocabulary", "rare")
    assert all(row[key] == network[key] for key in ("order", "hidden", "features", "preset", "seeds"))


def test_a_row_trains_with_as_many_seeds_as_it_says(config: Config) -> None:
    use_table(config, "networks", changed("MLP9", "seeds", "2")(read_table("config/networks.tsv")))
    line = ["both", "", "MLP9,MLP1", "learnt", "yes"]
    use_table(config, "mixtures", [*read_table("config/mixtures.tsv"), line])
    config["seeds"] = [7, 8, 9]
    study = resolve(config, ROOT)
    seeds = {model: find_row(study, model)["seeds"] for model in ("MLP1", "MLP9", "MLP10", "both")}
    assert seeds == {"MLP1": [7, 8, 9], "MLP9": [7, 8], "MLP10": [7, 8], "both": [7, 8]}
    config["seeds"] = [5]  # fewer than a row could use
    assert find_row(resolve(config, ROOT), "MLP9")["seeds"] == [5]


def test_rows_that_only_sweeps_use_are_in_no_table(config: Config) -> None:
    study = resolve(config, ROOT)
    table, swept = ({row["model"] for row in study[key]} for key in ("rows", "sweep_rows"))
    assert "MLP9-svd" in table and {"MLP9-n2", "kneser-ney-6"} <= swept and not table & swept
    assert {point["model"] for point in study["sweeps"]} <= table | swept
    assert not {"kneser-ney-2", "kneser-ney-6"} & set(study["policy_models"])
    assert find_row(study, "MLP9-n8")["order"] == 8


def test_a_share_of_train_is_a_policy_of_its_own(config: Config) -> None:
    study = resolve(config, ROOT)
    assert study["cuts"] == {f"top16383-train-1-{k}": f"1/{k}" for k in (16, 8, 4, 2)}
    points = {(point["model"], point["policy"]): point["train"] for point in study["sweeps"]}
    assert points["MLP9", "top16383-train-1-16"] == "1/16"
    assert points["MLP9", "top16383"] is None
    assert points["MLP9", "freq3-marks"] is None


def test_a_curve_never_mixes_presets(config: Config) -> None:
    study = resolve(config, ROOT)
    for sweep, column in (("order", "order"), ("hidden", "hidden"), ("features", "features")):
        rows = [find_row(study, point["model"]) for point in study["sweeps"] if point["sweep"] == sweep]
        curves: dict[str, set[int]] = {}
        for row in (row for row in rows if row["kind"] == "network"):
            curves.setdefault(network_label(row, varied=column), set()).add(row[column])
        assert all(len(places) > 1 for places in curves.values())


def test_a_study_without_sweeps(config: Config) -> None:
    study = resolve(overlay(config, {"sweeps": None}), ROOT)
    assert (study["sweeps"], study["cuts"]) == ([], {})


def test_no_such_row() -> None:
    with pytest.raises(UserError, match="no row MLP1: name one of MLP3, MLP5"):
        find_row({"rows": [{"model": "MLP3"}], "extended_rows": [], "sweep_rows": [{"model": "MLP5"}]}, "MLP1")


def test_schemas_are_in_step_with_the_code() -> None:
    schema = load("workflow/schemas/config.schema.yaml")
    preset = schema["properties"]["presets"]["additionalProperties"]
    fields = {field.name for field in dataclasses.fields(Preset)}
    assert set(preset["properties"]) == set(preset["required"]) == fields
    enumerated = {name: tuple(key["enum"]) for name, key in preset["properties"].items() if "enum" in key}
    assert enumerated == CHOICES
    assert set(enumerated) | set(COUNTS) | set(AMOUNTS) | {"noise_words"} == fields
    rows = load("workflow/schemas/rows.schema.yaml")["$defs"]
    assert set(TABLES) <= set(rows)
    policy = rows["policies"]
    assert {"policy", *(field.name for field in dataclasses.fields(Policy))} - {"name"} == set(policy["properties"])
    assert policy["properties"]["count_on"]["enum"] == list(COUNT_ON)
    assert policy["properties"]["cut"]["enum"] == list(CUTS)
    corpus = schema["properties"]["corpus"]["properties"]
    assert set(corpus["source"]["enum"]) == set(SOURCES)
    assert set(corpus) == {"source", "split", *CORPUS_OPTIONS}
    assert set(POLICY_OPTIONS) == set(policy["properties"]) - {"policy"}
    for table in TABLES:
        assert rows[table]["additionalProperties"] is False
        assert set(rows[table]["required"]) == set(rows[table]["properties"])


def test_every_committed_preset_makes_a_preset(config: Config) -> None:
    for preset in config["presets"].values():
        assert Preset(**preset).as_dict() == preset


@pytest.mark.parametrize(
    ("name", "value"),
    [("schedule", "linear"), ("batch", 0), ("patience", 1.5), ("rate", "1e-3"), ("rate", math.nan), ("dropout", 1.0)],
)
def test_a_preset_refuses_what_training_does_not_know(config: Config, name: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"^{name} is {value!r}; it is "):
        Preset(**{**config["presets"]["modern"], name: value})


# --- what is refused -------------------------------------------------------------------------------------------------


def refusal(config: Mapping[str, Any]) -> str:
    """The one line with which `config` is refused."""
    with pytest.raises(UserError) as error:
        resolve(config, ROOT)
    line = str(error.value)
    assert line and "\n" not in line
    assert len(line) < 400  # a line that is read, not a dump
    return line


KEYS: dict[str, tuple[Config, list[str]]] = {
    "misspelt key": ({"polcy": "top16383"}, ["the configuration", "unknown key 'polcy'", "policy"]),
    "misspelt key below": ({"corpus": {"spilt": {}}}, ["unknown key 'corpus.spilt'", "split"]),
    "misspelt preset key": ({"presets": {"modern": {"droput": 0.1}}}, ["'presets.modern.droput'", "dropout"]),
    "wrong type": ({"threads": "two"}, ["threads", "'two' is not of type 'integer'"]),
    "wrong type below": ({"presets": {"paper": {"rate": "1e-3"}}}, ["presets.paper.rate", "not of type 'number'"]),
    "fractional batch": ({"presets": {"paper": {"batch": 1.5}}}, ["presets.paper.batch", "1.5"]),
    "one process": ({"parallel": {"scheme": "data", "processes": 1}}, ["parallel.processes", "minimum of 2"]),
    "unknown scheme": ({"parallel": {"scheme": "model", "processes": 2}}, ["parallel.scheme", "'model'", "'data'"]),
    "vocabulary of sampled networks": (
        {"parallel": {"scheme": "vocabulary", "processes": 2}},
        ["config/networks.tsv, row MLP1", "exact softmax", "parallel.scheme"],
    ),
    "no threads": ({"threads": 0}, ["threads", "0 is less than the minimum of 1"]),
    "dropout of everything": ({"presets": {"modern": {"dropout": 1.0}}}, ["presets.modern.dropout", "1.0"]),
    "unknown objective": ({"presets": {"modern": {"objective": "nce"}}}, ["presets.modern.objective", "'softmax'"]),
    "half a preset": ({"presets": {"mine": {"rate": 1.0}}}, ["presets.mine", "required"]),
    "unknown source": ({"corpus": {"source": "apnews"}}, ["corpus.source", "'apnews'", "'brown'"]),
    "ap without a folder": ({"corpus": {"source": "ap"}}, ["corpus.folder is missing", "AP files"]),
    "folder of brown": ({"corpus": {"folder": "ap"}}, ["corpus.folder", "only for source: ap", "brown"]),
    "months of brown": ({"corpus": {"last_month": "1996-12"}}, ["corpus.last_month", "only for source: ap or reuters"]),
    "no month": ({"corpus": {"source": "reuters", "first_month": "March"}}, ["'March'", "YYYY-MM", "first_month"]),
    "months backwards": (
        {"corpus": {"source": "reuters", "first_month": "1987-06", "last_month": "1987-02"}},
        ["first_month 1987-06 is after last_month 1987-02"],
    ),
    "unknown policy": ({"policy": "top999"}, ["policy 'top999'", "config/policies.tsv", "top16383"]),
    "seed beyond 32 bits": ({"seeds": [10**30]}, ["seeds.0", "maximum"]),
    "no number of a rate": ({"presets": {"paper": {"rate": math.inf}}}, ["presets.paper: rate is inf"]),
    "noise for exact softmax": (
        {"presets": {"paper": {"noise_words": 9}}},
        ["presets.paper: noise_words is 9; with the objective softmax it is 0"],
    ),
    "shares above 1": ({"corpus": {"split": {"train": 0.9, "valid": 0.2}}}, ["[0.9, 0.2] adds up to more than 1"]),
    "tokens and shares": ({"corpus": {"split": {"train": 900, "valid": 0.2}}}, ["mixes token counts and fractions"]),
    "name of the copies": ({"name": "reference"}, ["results/reference is for copies"]),
    "name of another table": ({"table": "claims"}, ["claims is another table"]),
    "no seed": ({"seeds": []}, ["seeds", "[]"]),
    "seed 0": ({"seeds": [0]}, ["seeds.0", "0 is less than the minimum of 1"]),
    "seed twice": ({"seeds": [1, 1]}, ["seeds", "non-unique"]),
    "name with a slash": ({"name": "my/corpus"}, ["name", "'my/corpus'"]),
    "share of 0": ({"corpus": {"split": {"train": 0}}}, ["corpus.split.train", "0"]),
    "missing table": ({"networks": "config/nets.tsv"}, ["networks", "no file config/nets.tsv"]),
    "missing published": ({"published": "data/none.csv"}, ["published", "no file data/none.csv"]),
    "file of brown": ({"corpus": {"file": "x.txt"}}, ["corpus.file", "only for source: text", "brown"]),
    "text without a file": ({"corpus": {"source": "text"}}, ["source text needs file"]),
    "no test file": (
        {"corpus": {"source": "text", "train_file": "a", "valid_file": "b"}},
        ["all of train_file, valid_file and test_file"],
    ),
    "no split": ({"corpus": {"split": None}}, ["corpus.split is missing"]),
    # In YAML 1.0 is a number and `true` none, but in Python both are equal to 1.
    "seed 1.0": ({"seeds": [1.0]}, ["seeds.0", "1.0 is not of type 'integer'"]),
    "threads true": ({"threads": True}, ["threads", "True is not of type 'integer'"]),
    "threads without end": ({"threads": 10**9}, ["threads", "maximum"]),
    "batch true": ({"presets": {"paper": {"batch": True}}}, ["presets.paper.batch", "True is not of type 'integer'"]),
    "batch without end": ({"presets": {"paper": {"batch": 10**12}}}, ["presets.paper: batch is 1000000000000; it is"]),
    "noise without end": ({"presets": {"modern": {"noise_words": 10**9}}}, ["presets.modern: noise_words is 1000"]),
    "power without end": ({"presets": {"modern": {"noise_power": 400}}}, ["noise_power is 400; it is", "0 to 2"]),
    "preset with a number for a name": ({"presets": {1: None}}, ["the key 1 of presets is no text: quote it"]),
    "preset with a path for a name": ({"presets": {"../x": None}}, ["presets", "'../x' does not match"]),
    "name with a line break": ({"name": "brown\n"}, ["name: 'brown\\n' holds a line break"]),
    "control character": ({"corpus": {"file": "a\x1bb"}}, ["corpus.file: 'a\\x1bb' holds a line break or control"]),
    "curly brackets": ({"corpus": {"file": "{a}.txt"}}, ["corpus.file: '{a}.txt' has curly brackets"]),
}


@pytest.mark.parametrize("case", KEYS)
def test_a_bad_key_is_one_clear_line(config: Config, case: str) -> None:
    change, said = KEYS[case]
    line = refusal(overlay(config, change))
    assert all(part in line for part in said), line


def test_a_missing_key_is_named(config: Config) -> None:
    for key in config:
        line = refusal({k: v for k, v in config.items() if k != key})
        assert f"'{key}' is a required property" in line


def changed(model: str, column: str, cell: str) -> Callable[[list[list[str]]], list[list[str]]]:
    """The table with one cell of one row changed."""

    def change(lines: list[list[str]]) -> list[list[str]]:
        place = lines[0].index(column)
        return [[*line[:place], cell, *line[place + 1 :]] if line[0] == model else line for line in lines]

    return change


def twice(model: str) -> Callable[[list[list[str]]], list[list[str]]]:
    return lambda lines: lines + [line for line in lines if line[0] == model]


def extra(*cells: str) -> Callable[[list[list[str]]], list[list[str]]]:
    return lambda lines: [*lines, list(cells)]


ROWS: dict[str, tuple[str, Callable[[list[list[str]]], list[list[str]]], list[str]]] = {
    "network twice": ("networks", twice("MLP3"), ["'MLP3' stands there twice"]),
    "n-gram twice": ("ngrams", twice("kneser-ney-4"), ["'kneser-ney-4' stands there twice"]),
    "mixture twice": ("mixtures", twice("MLP2"), ["'MLP2' stands there twice"]),
    "policy twice": ("policies", twice("freq3"), ["'freq3' stands there twice"]),
    "order 7": ("ngrams", changed("kneser-ney-5", "order", "7"), ["row kneser-ney-5", "order 7 is above 6", "KenLM"]),
    "interpolated of order 4": (
        "ngrams",
        changed("interpolated-trigram", "order", "4"),
        ["row interpolated-trigram", "set order to 3"],
    ),
    "no number of classes": (
        "ngrams",
        changed("classes-500-3", "classes", ""),
        ["row classes-500-3", "classes is empty", "class-based", "and no other, says how many"],
    ),
    "classes of words": ("ngrams", changed("kneser-ney-3", "classes", "9"), ["row kneser-ney-3", "classes is 9"]),
    "one class": ("ngrams", changed("classes-500-3", "classes", "1"), ["row classes-500-3: classes", "minimum of 2"]),
    "more classes than words": (
        "ngrams",
        changed("classes-500-3", "classes", "16383"),
        ["row classes-500-3", "16383 classes for the 16383 words of policy top16383"],
    ),
    "unknown kind": ("ngrams", changed("katz-3", "kind", "kats"), ["row katz-3: kind", "'kats'"]),
    "unknown preset": ("networks", changed("MLP1", "preset", "mdern"), ["row MLP1", "no preset 'mdern'", "modern"]),
    "nothing to look at": ("networks", changed("MLP3", "direct", "no"), ["row MLP3", "hidden 0 and direct no"]),
    "order 1": ("networks", changed("MLP1", "order", "1"), ["row MLP1: order", "1 is less than the minimum of 2"]),
    "words for a number": ("networks", changed("MLP1", "hidden", "fifty"), ["row MLP1: hidden", "'fifty'"]),
    "a fraction": ("networks", changed("MLP1", "hidden", "50.5"), ["row MLP1: hidden", "'50.5'"]),
    "direct true": ("networks", changed("MLP1", "direct", "true"), ["row MLP1: direct", "'true'", "boolean"]),
    "empty cell": ("networks", changed("MLP1", "order", ""), ["row MLP1: order", "None"]),
    "name with a slash": ("networks", changed("MLP1", "model", "MLP/1"), ["row MLP/1: model"]),
    "unknown component": (
        "mixtures",
        changed("MLP2", "components", "MLP11,interpolated-trigram"),
        ["row MLP2", "component 'MLP11'", "MLP1"],
    ),
    "mixture of mixtures": (
        "mixtures",
        changed("MLP2", "components", "MLP4,interpolated-trigram"),
        ["row MLP2", "component 'MLP4' is no network or n-gram row"],
    ),
    "mixture outside the table": (
        "mixtures",
        changed("MLP2", "components", "MLP9-n2,interpolated-trigram"),
        ["row MLP2", "component 'MLP9-n2'", "of the main table"],
    ),
    "unknown architecture": (
        "networks",
        changed("MLP9", "architecture", "rbm"),
        ["MLP9: no architecture 'rbm'", "lstm"],
    ),
    "both directions": (
        "networks",
        changed("MLP9", "architecture", "bidirectional-lstm"),
        ["MLP9: architecture bidirectional-lstm: a model that reads what follows", "docs/beyond.md"],
    ),
    "direct recurrence": (
        "networks",
        changed("MLP1", "architecture", "lstm"),
        ["MLP1: the architecture lstm", "direct"],
    ),
    "options of the paper's": (
        "networks",
        changed("MLP9", "options", "rate=1"),
        ["MLP9: options", "mlp has no 'rate'"],
    ),
    "options that another has": ("networks", changed("gru", "options", "heads=3"), ["gru: options", "has no 'heads'"]),
    "no hidden units": (
        "networks",
        changed("gru", "hidden", "0"),
        ["row gru: the architecture gru", "set hidden to 1"],
    ),
    "energy by the exact cost": ("networks", changed("energy", "preset", "exact"), ["row energy", "sampled-softmax"]),
    "heads that do not divide": ("networks", changed("transformer", "hidden", "30"), ["row transformer", "4 heads"]),
    "options in words": ("networks", changed("MLP9", "options", "rate"), ["MLP9: options: 'rate' is not of the form"]),
    "architecture that decays": (
        "networks",
        changed("MLP9-paper", "architecture", "lstm"),
        ["MLP9-paper: the architecture lstm", "has no weight decay"],
    ),
    "unknown features": ("networks", changed("MLP9-svd", "word_features", "lsi"), ["MLP9-svd: word_features", "'lsi'"]),
    "outputs of a sampled network": ("networks", changed("MLP9", "outputs", "tree"), ["row MLP9", "exact objective"]),
    "classes for one softmax": ("networks", changed("MLP9", "classes", "50"), ["row MLP9: classes is 50", "no other"]),
    "classes for frequent words": (
        "networks",
        changed("MLP9-adaptive", "classes", "50"),
        ["row MLP9-adaptive: classes is 50", "no other"],
    ),
    "frequent words of a sampled network": (
        "networks",
        changed("MLP9-adaptive", "preset", "modern"),
        ["row MLP9-adaptive", "exact objective"],
    ),
    "unknown sweep": ("sweeps", extra("depth", "", "", "MLP9"), ["row depth: sweep", "'depth'"]),
    "words outside V in a sweep": ("sweeps", extra("order", "", "", "MLP9-oov"), ["row order MLP9-oov", "no row of"]),
    "unknown model of a sweep": (
        "sweeps",
        extra("order", "", "", "MLP11"),
        ["row order MLP11", "no row of config/networks.tsv", "null"],
    ),
    "mixture in a sweep": (
        "sweeps",
        extra("order", "", "", "MLP10"),
        ["row order MLP10", "no row of config/networks.tsv"],
    ),
    "point twice": ("sweeps", extra("order", "", "", "MLP9"), ["row order MLP9", "twice"]),
    "unknown policy of a sweep": ("sweeps", extra("policy", "top9", "", "MLP9"), ["row policy MLP9", "'top9'"]),
    "share of more than all": ("sweeps", extra("train", "", "3/2", "MLP9"), ["row train: train", "'3/2'"]),
    "share in another sweep": ("sweeps", extra("order", "", "1/2", "MLP9"), ["row order MLP9", "sweep train only"]),
    "policy in another sweep": ("sweeps", extra("train", "freq3", "", "MLP9"), ["row train MLP9", "sweep policy only"]),
    "component twice": ("mixtures", changed("MLP2", "components", "MLP1,MLP1"), ["row MLP2", "component", "twice"]),
    "unknown published": (
        "networks",
        changed("MLP1", "published", "MLP99"),
        ["row MLP1: published 'MLP99'", "table1_brown.csv", "MLP2"],
    ),
    "two signs": ("networks", changed("MLP1", "hidden", "--5"), ["row MLP1: hidden", "'--5'"]),
    "endless number": ("networks", changed("MLP1", "hidden", "9" * 30), ["row MLP1: hidden"]),
    "endless cell": ("networks", changed("MLP1", "hidden", "9" * 200_000), ["cannot be read as a table", "limit"]),
    "one word": ("policies", changed("top16383", "size", "1"), ["row top16383: size 1", "2 or more"]),
    "one component": (
        "mixtures",
        changed("MLP2", "components", "MLP1"),
        ["row MLP2: components", "'MLP1'", "two models or more"],
    ),
    "features from two networks": (
        "mixtures",
        changed("MLP9-oov", "components", "MLP9,MLP1"),
        ["row MLP9-oov: components", "'MLP9,MLP1'", "with weights expected it names one network alone"],
    ),
    "features from an n-gram": (
        "mixtures",
        changed("MLP9-oov", "components", "kneser-ney-3"),
        ["row MLP9-oov", "'kneser-ney-3' is no network with the architecture mlp and the outputs words"],
    ),
    "features from classes": (
        "mixtures",
        changed("MLP9-oov", "components", "MLP9-classes"),
        ["row MLP9-oov", "'MLP9-classes' is no network with"],
    ),
    "network named every-word": (
        "networks",
        changed("MLP9-svd", "model", "every-word"),
        ["'every-word' is the name of another"],
    ),
    "unknown weights": ("mixtures", changed("MLP2", "weights", "best"), ["row MLP2: weights", "'best'"]),
    "unknown cut": ("policies", changed("freq3", "cut", "random"), ["row freq3: cut", "'random'"]),
    "missing column": ("networks", lambda lines: [line[:-1] for line in lines], ["no column 'table'"]),
    "unknown column": ("networks", lambda lines: [[*line, "x"] for line in lines], ["unknown column 'x'"]),
    "column twice": ("ngrams", lambda lines: [[*line, line[-1]] for line in lines], ["a column twice"]),
    "ragged row": ("networks", lambda lines: [*lines, ["MLP11", "", "5"]], ["row MLP11", "3 cells for 14 columns"]),
    "spaces for tabs": ("ngrams", lambda lines: [[" ".join(line)] for line in lines], ["unknown column", "no column"]),
    "empty": ("networks", lambda lines: [], ["is empty", "model published architecture order"]),
    # Folders that lie beside those of the models and policies.
    "network named tokens": ("networks", changed("MLP9-svd", "model", "tokens"), ["'tokens' is the name of another"]),
    "n-gram named Classes": ("ngrams", changed("kneser-ney-6", "model", "Classes"), ["'Classes' is the name of"]),
    "policy named tables": ("policies", changed("freq3", "policy", "tables"), ["policy 'tables' is the name of"]),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_row_is_one_clear_line(config: Config, case: str) -> None:
    table, change, said = ROWS[case]
    use_table(config, table, change(read_table(f"config/{table}.tsv")))
    line = refusal(config)
    assert all(part in line for part in [f"my-{table}.tsv", *said]), line


@pytest.mark.parametrize("content", [b"name,test\nMLP1,3\n", b"model,test\n\xff,3\n", b"", b"\x00\xff"])
def test_a_published_table_that_is_none_is_refused(config: Config, content: bytes) -> None:
    Path("published.csv").write_bytes(content)
    config["published"] = "published.csv"
    line = refusal(config)
    assert "published.csv" in line


def test_tables_without_rows_are_refused(config: Config) -> None:
    for table in ("networks", "ngrams", "mixtures", "sweeps"):
        use_table(config, table, read_table(f"config/{table}.tsv")[:1])
    config["published"] = None
    assert "my-networks.tsv and my-ngrams.tsv: no row is in the main table" in refusal(config)


@pytest.mark.parametrize("name", ["it's", "a\\b", "{a}", "a\nb"])
def test_folders_that_snakemake_cannot_hand_on_are_refused(config: Config, tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="has an apostrophe, a backslash, curly brackets or a line break"):
        resolve(config, tmp_path / name)


def test_a_policy_named_like_a_share_is_refused(config: Config) -> None:
    lines = read_table("config/policies.tsv")
    use_table(config, "policies", [*lines, ["top16383-train-1-2", *lines[1][1:]]])
    assert "'top16383-train-1-2' is the name that the sweep train gives" in refusal(config)


def test_one_name_in_two_tables_is_refused(config: Config) -> None:
    use_table(config, "ngrams", [*read_table("config/ngrams.tsv"), ["MLP1", "", "kneser-ney", "", "3", "yes"]])
    assert "'MLP1' stands there twice" in refusal(config)


def test_a_table_that_is_no_utf8_is_refused(config: Config) -> None:
    config["ngrams"] = "my-ngrams.tsv"
    Path("my-ngrams.tsv").write_bytes(b"model\tpublished\tkind\torder\ttable\nna\xefve\t\tinterpolated\t3\tyes\n")
    line = refusal(config)
    assert "my-ngrams.tsv" in line and "UTF-8" in line


def test_kenlm_orders_end_at_6(config: Config) -> None:
    assert find_row(resolve(config, ROOT), "kneser-ney-6")["order"] == 6 == MAX_NGRAM_ORDER
