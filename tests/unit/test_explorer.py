"""The explorer page as a file: what is rounded and read back, words that look like markup, limits, and bad input."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from explorer_study import ODD, POLICY, SHAPES, TRIGRAM
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nplm2003 import explorer
from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.explorer import decode, encode, frequent_words, network_record, plane, quantise, read_network, render
from nplm2003.files import read_json, write_json
from nplm2003.neighbours import principal_plane
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.scoring import load_network
from nplm2003.outcomes import Outcomes
from nplm2003.plan import explorer_rows
from nplm2003.vocabulary import TokenStore


@pytest.fixture(scope="module")
def data(explorer_results: Path) -> dict[str, Any]:
    return explorer.page_data(Outcomes(explorer_results / "study.json", explorer_results))


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_quantise_by_hand() -> None:
    rows, scale = quantise(np.array([[1.27, -0.64, 0.004], [0, 0, 0]], dtype=np.float32))
    assert rows.dtype == np.int8 and rows.tolist() == [[127, -64, 0], [0, 0, 0]]
    assert scale.dtype == np.float32 and scale.tolist() == [pytest.approx(0.01), 0]


@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.floats(-1e6, 1e6, width=32)),
)
@settings(max_examples=50, deadline=None)
def test_no_number_moves_by_more_than_half_a_step(matrix: np.ndarray) -> None:
    rows, scale = quantise(matrix)
    largest = np.abs(matrix).max(axis=1)
    assert np.all(np.abs(rows * scale[:, None].astype(np.float64) - matrix) <= 0.5001 * largest[:, None] / 127 + 1e-37)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "float32"])
def test_arrays_come_back(dtype: str) -> None:
    array = np.array([[0, 1, 2], [3, 100, 127]], dtype=dtype)
    assert np.array_equal(decode(encode(array), dtype), array.ravel())


@pytest.mark.parametrize(("hidden", "direct"), [(6, False), (0, True), (4, True)])
def test_a_network_comes_back_but_for_rounding(hidden: int, direct: bool) -> None:
    torch.manual_seed(hidden)
    model = NeuralLanguageModel(30, 4, hidden, 5, direct)
    record = json.loads(json.dumps(network_record(model)))
    again = read_network(record, 30)
    for name in ("H", "d", "b"):
        old, new = getattr(model, name), getattr(again, name)
        assert (old is None and new is None) or torch.equal(old, new)
    for name in ("C", "O"):
        old, new = getattr(model, name), getattr(again, name)
        assert 0 < float((old - new).detach().abs().max()) <= 0.51 * float(old.detach().abs().max()) / 127
    # What was rounded once is rounded to itself.
    assert network_record(again)["O"] == record["O"]
    contexts = torch.randint(30, (20, 3))
    assert torch.allclose(model(contexts), again(contexts), atol=0.1)
    assert torch.allclose(again(contexts).exp().sum(dim=1), torch.ones(20))


def test_the_rounding_that_the_page_states_is_that_of_every_word_in_contexts_of_valid(
    data: dict[str, Any], explorer_results: Path
) -> None:
    store = TokenStore(explorer_results / POLICY / "tokens")
    for record in data["networks"]:
        model = load_network(explorer_results / POLICY / record["model"] / "seed1" / "weights.pt", store)
        rounded = read_network(record, store.size)
        order = model.order
        stream = np.concatenate([store.history("valid", order - 1), store["valid"]]).astype(np.int64)
        contexts = np.stack([stream[order - 2 - back :][: len(store["valid"])] for back in range(order - 1)], axis=1)
        places = np.linspace(0, len(contexts) - 1, 64).astype(int)
        chosen = torch.from_numpy(contexts[places])
        moved = (model(chosen) - rounded(chosen)).detach().abs().numpy()
        assert record["rounding"] == pytest.approx({"largest": moved.max(), "typical": np.sqrt(np.mean(moved**2))})
        assert 0 < record["rounding"]["largest"] < 0.1


# --- words and maps --------------------------------------------------------------------------------------------------


def test_frequent_words_are_in_order_and_never_the_merged_symbol(tiny_store: TokenStore) -> None:
    words = frequent_words(tiny_store)
    counts = tiny_store.train_counts
    assert 0 not in words and len(words) == np.count_nonzero(counts[1:])  # fewer than 100 have been seen at all
    assert np.all(np.diff(counts[words]) <= 0)


def test_the_map_is_the_principal_plane_and_two_features_are_drawn_as_they_are() -> None:
    features = np.random.default_rng(1).normal(size=(20, 5))
    frequent = np.arange(3, 18)
    found = plane(features, frequent)
    points = (features[frequent] - found["centre"]) @ np.array(found["directions"]).T
    assert points == pytest.approx(principal_plane(features[frequent]))
    flat = plane(features[:, :2], frequent)
    assert (features[:, :2] - flat["centre"]) @ np.array(flat["directions"]).T == pytest.approx(features[:, :2])


# --- the page --------------------------------------------------------------------------------------------------------


class Scripts(HTMLParser):
    """The text of every script element, and every attribute that names a file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside = False
        self.addresses: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"
        self.texts += [""] if self.inside else []
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, text: str) -> None:
        if self.inside:
            self.texts[-1] += text


def test_words_that_look_like_markup_stay_words(data: dict[str, Any]) -> None:
    assert set(ODD) <= set(data["words"])
    text = render(data)
    scripts = Scripts(text)
    values, script = scripts.texts
    assert json.loads(values) == data
    assert script.strip() == (explorer.PAGE / "explorer.js").read_text(encoding="utf-8").strip()
    assert "<title>Explorer: A &lt;small&gt; study</title>" in text
    assert text.count("</script>") == 2


def test_the_page_names_no_other_file(data: dict[str, Any]) -> None:
    addresses = Scripts(render(data)).addresses
    assert addresses and all(address and address.startswith(("#", "data:,")) for address in addresses)
    page = "".join((explorer.PAGE / f"explorer.{part}").read_text(encoding="utf-8") for part in ("html", "css", "js"))
    assert not [
        word for word in ("http:", "https:", "@import", "fetch(", "XMLHttpRequest", "innerHTML") if word in page
    ]


def test_what_the_page_holds(data: dict[str, Any], explorer_results: Path) -> None:
    # One of each shape, at its first seed; of the sweeps the one that has a plane of its own.
    assert [(net["model"], net["seed"]) for net in data["networks"]] == [(model, 1) for model in SHAPES]
    assert [mixture["model"] for mixture in data["mixtures"]] == ["MIX", f"NET3 + {TRIGRAM}", f"FLAT + {TRIGRAM}"]
    study = read_json(explorer_results / "study.json")
    assert [row["model"] for row in explorer_rows(study)] == list(SHAPES)
    evaluations = {
        model: read_json(explorer_results / POLICY / model / "seed1" / "evaluation.json") for model in (*SHAPES, "MIX")
    }
    assert data["best"] == min(SHAPES, key=lambda model: evaluations[model]["perplexity"]["valid"])
    assert data["mixtures"][0]["perplexity"] == evaluations["MIX"]["perplexity"]["test"]
    train = TokenStore(explorer_results / POLICY / "tokens")["train"]
    assert np.array_equal(decode(data["train"]["ids"], f"uint{8 * data['train']['bytes']}"), train)
    assert data["networks"][2]["plane"]["directions"] == [[1, 0], [0, 1]]


def test_a_row_of_another_architecture_is_no_network_of_the_paper() -> None:
    study: dict[str, Any] = {"rows": [], "extended_rows": [], "sweep_rows": []}
    shape = {"order": 3, "hidden": 4, "features": 5, "direct": True, "outputs": "words", "architecture": "mlp"}
    row = {"model": "x", "kind": "network", **shape}
    assert explorer_rows({**study, "rows": [row, {**row, "model": "y"}]}) == [row]
    assert not explorer_rows({**study, "rows": [{**row, "architecture": "tied"}]})
    # Of those that are not in the main table, the page shows the ones that have a plane of their own.
    for table in ("extended_rows", "sweep_rows"):
        assert not explorer_rows({**study, table: [row]})
        assert explorer_rows({**study, table: [{**row, "features": 2}]})


# --- the command -----------------------------------------------------------------------------------------------------


def write(results: Path, output: Path, *more: str) -> int:
    told = ("--study", results / "study.json", "--results", results, "--output", output)
    return main(["write-explorer", *map(str, told), *more])


def test_the_command_writes_the_networks_that_it_is_told(explorer_results: Path, tmp_path: Path) -> None:
    assert write(explorer_results, tmp_path / "page.html", "--model", "FLAT", "--model", "NET3") == 0
    values, _ = Scripts((tmp_path / "page.html").read_text(encoding="utf-8")).texts
    assert [net["model"] for net in json.loads(values)["networks"]] == ["FLAT", "NET3"]


@pytest.mark.parametrize(
    ("model", "said"),
    [("NET4", "no row NET4: name one of NET5, "), ("TREE", "TREE is no network of the"), (TRIGRAM, "is no network of")],
)
def test_a_model_that_cannot_be_shown_is_one_line(
    explorer_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, said: str
) -> None:
    assert write(explorer_results, tmp_path / "page.html", "--model", model) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_page_that_is_too_large_is_refused(data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "LARGEST", 20_000)
    with pytest.raises(
        UserError, match=r"would take 0 MB, more than 0 MB: name fewer or smaller networks with --model"
    ):
        render(data)


def test_a_network_of_another_architecture_is_refused(
    explorer_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = shutil.copytree(explorer_results, tmp_path / "results")
    home, network = results / POLICY, results / POLICY / "NET5" / "seed1"
    quick = read_json(results / "study.json")["presets"]["quick"]
    write_json(tmp_path / "presets.json", {"presets": {"quick": {**quick, "weight_decay": 0.0}}})
    preset = ("--preset-file", tmp_path / "presets.json", "--preset", "quick", "--seed", "1", "--output", network)
    shape = ("--architecture", "tied", "--order", "5", "--hidden", "6", "--features", "4")
    assert main(["train", "--tokens", str(home / "tokens"), *map(str, (*shape, *preset))]) == 0
    capsys.readouterr()
    assert write(results, tmp_path / "page.html") == 1
    assert "weights.pt is no network of the paper's form" in capsys.readouterr().err
    told = ("--tokens", home / "tokens", "--network", network, "--output", tmp_path / "found.json")
    assert main(["add-sentence", *map(str, told)]) == 1
    assert "weights.pt is no network of the paper's form" in capsys.readouterr().err


def test_missing_foreign_and_damaged_files_are_one_line(
    explorer_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = shutil.copytree(explorer_results, tmp_path / "results")
    path = results / POLICY / "NET3" / "seed1" / "added-sentence.json"
    content = read_json(path)

    def refused() -> str:
        assert write(results, tmp_path / "page.html") == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and not (tmp_path / "page.html").exists()
        return error

    path.unlink()
    assert "run `nplm2003 add-sentence` on NET3, seed 1, first" in refused()
    write_json(path, {**content, "vocabulary": "another"})
    assert "was made on other tokens than" in refused()
    write_json(path, {**content, "rates": "many"})
    assert "is damaged, its rates is 'many'" in refused()
    write_json(path, content)
    (results / POLICY / "NET3" / "seed1" / "weights.pt").write_bytes(b"nothing")
    assert "cannot be read as a network" in refused()
    study = read_json(results / "study.json")
    rows = [row for row in study["rows"] if row["kind"] == "interpolated"]
    write_json(results / "study.json", {**study, "rows": rows, "sweep_rows": []})
    assert "has no network of the paper's form" in refused()


def test_a_study_without_a_trigram_has_a_page_too(explorer_results: Path) -> None:
    outcomes = Outcomes(explorer_results / "study.json", explorer_results)
    outcomes.study["rows"] = [row for row in outcomes.study["rows"] if row["kind"] == "network"]
    found = explorer.page_data(outcomes)
    assert found["trigram"] is None and found["mixtures"] == []
