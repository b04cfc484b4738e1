"""The explorer page in a browser: what it shows against what Python computes, by mouse, keyboard and eye.

Headless Chromium opens the page as a file. Playwright drives the Chromium of the system (scripts/bootstrap tests brings
it), so that nothing is downloaded beside the pinned packages.
"""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from explorer_study import ODD, POLICY, SHAPES, TRIGRAM

from nplm2003 import explorer
from nplm2003.files import read_json
from nplm2003.neighbours import nearest
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.scoring import load_network
from nplm2003.ngram.interpolated import InterpolatedTrigram, TrigramCounts, read_weights
from nplm2003.outcomes import Outcomes
from nplm2003.vocabulary import TokenStore

sync_api = pytest.importorskip("playwright.sync_api", reason="NO BROWSER TEST RAN: there is no playwright")

# As scripts/bootstrap looks for it.
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NO BROWSER TEST RAN: there is no Chromium (Debian: apt-get install chromium)"
)
PATIENCE = 120_000  # milliseconds; a browser that starts on a busy machine takes its time
# JavaScript sums in float64, torch in float32.
ABSOLUTE = 1e-5


@dataclass
class Model:
    """The same models in Python: the networks of the page, rounded as it has them and as they were trained."""

    store: TokenStore
    data: dict[str, Any]
    rounded: dict[str, NeuralLanguageModel]
    trained: dict[str, NeuralLanguageModel]
    trigram: InterpolatedTrigram

    def ids(self, text: str) -> list[int]:
        return [self.store.words.index(word) if word in self.store.words else 0 for word in text.split()]

    def distribution(self, name: str, text: str, networks: dict[str, NeuralLanguageModel] | None = None) -> np.ndarray:
        """P(. | text) over V: float64, shape (|V|,)."""
        ids = self.ids(text)
        if name == TRIGRAM:
            u, v = [self.store.size, self.store.size, *ids][-2:]
            return self.trigram.distribution(u, v)
        mixture = {each["model"]: each["network"] for each in self.data["mixtures"]}.get(name)
        if mixture:
            return 0.5 * self.distribution(mixture, text, networks) + 0.5 * self.distribution(TRIGRAM, text)
        network = (networks or self.rounded)[name]
        context = ([0] * network.order + ids)[::-1][: network.order - 1]
        with torch.no_grad():
            return network(torch.tensor([context]))[0].double().exp().numpy()


@pytest.fixture(scope="module")
def model(explorer_results: Path) -> Model:
    home = explorer_results / POLICY
    store = TokenStore(home / "tokens")
    data = explorer.page_data(Outcomes(explorer_results / "study.json", explorer_results))
    counts = TrigramCounts(store["train"], store.size)
    weights, _ = read_weights(home / TRIGRAM / "seed0" / "weights.json", store, counts)
    return Model(
        store,
        data,
        {net["model"]: explorer.read_network(net, store.size) for net in data["networks"]},
        {name: load_network(home / name / "seed1" / "weights.pt", store) for name in SHAPES},
        InterpolatedTrigram(counts, weights),
    )


@dataclass
class Opened:
    """The page in the browser, and what went wrong or over the network since it was opened."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def field(self, label: str) -> Any:
        """The text field whose label starts so."""
        return self.page.get_by_role("textbox", name=re.compile(f"^{label}"))

    def type(self, label: str, text: str) -> None:
        """Empty the field with this label and type a text, key by key."""
        self.field(label).fill("")
        self.field(label).press_sequentially(text)

    def lists(self) -> dict[str, list[tuple[str, float]]]:
        """The words and probabilities that each model shows."""
        words = "[...column.querySelectorAll('button.next')].map(b => [b.dataset.word, Number(b.dataset.probability)])"
        columns = "[...document.querySelectorAll('#columns > section')]"
        return self.page.evaluate(f"Object.fromEntries({columns}.map(column => [column.dataset.model, {words}]))")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # A sandbox of its own is not to be had where tests run as root.
        arguments = ["--disable-background-networking", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("a page") / "explorer.html"
    path.write_text(explorer.render(model.data), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium: Any, page_file: Path) -> Iterator[Opened]:
    """The page, opened from its file; at the end nothing may have gone wrong, and nothing but the file been read."""
    page = chromium.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(PATIENCE)
    found = Opened(page)
    page.on("console", lambda message: found.said.append(message.text))
    page.on("pageerror", lambda error: found.said.append(str(error)))
    page.on("request", lambda request: found.asked.append(request.url))
    page.goto(page_file.as_uri())
    yield found
    page.close()
    assert found.said == []
    assert [address for address in found.asked if not address.startswith("data:")] == [page_file.as_uri()]


def test_it_says_what_it_shows(opened: Opened, model: Model) -> None:
    assert opened.page.title() == "Explorer: A <small> study"
    text = opened.page.locator("body").inner_text()
    commit = (model.data["commit"] or "unknown")[:12]
    for part in ("Study small", POLICY, commit, *SHAPES, "the probabilities of all words of V sum to 1", "50 symbols"):
        assert part in text, part


def test_next_words_are_those_of_python(opened: Opened, model: Model) -> None:
    for box in opened.page.locator("#models input").all():
        box.check()
    for text in ("the small cat", "the", "", f"{ODD[0]} {ODD[2]} .", "no such words"):
        opened.type("Context", text)
        lists = opened.lists()
        assert list(lists) == [*SHAPES, TRIGRAM, *(mixture["model"] for mixture in model.data["mixtures"])]
        for name, shown in lists.items():
            P = model.distribution(name, text)
            assert [probability for _, probability in shown] == pytest.approx(np.sort(P)[::-1][:10], abs=ABSOLUTE)
            for word, probability in shown:
                assert probability == pytest.approx(P[model.store.words.index(word)], abs=ABSOLUTE)
        sums = opened.page.evaluate("[...document.querySelectorAll('.sum')].map(line => Number(line.dataset.sum))")
        assert sums == pytest.approx(np.ones(len(lists)), abs=1e-12)


def test_every_probability_is_that_of_the_network_but_for_the_rounding_it_states(opened: Opened, model: Model) -> None:
    stated = {net["model"]: net["rounding"]["largest"] for net in model.data["networks"]}
    for text in ("the small cat", "every dog", ". the"):
        for name in SHAPES:
            shown = np.array(
                opened.page.evaluate("([name, ids]) => [...distribution(name, ids)]", [name, model.ids(text)])
            )
            assert np.log(shown) == pytest.approx(np.log(model.distribution(name, text)), abs=1e-4)
            moved = np.abs(np.log(shown) - np.log(model.distribution(name, text, model.trained))).max()
            assert moved < 2 * stated[name]  # stated for other contexts than these


def test_words_outside_the_vocabulary_are_shown_as_merged(opened: Opened) -> None:
    opened.type("Context", "the zebra\ufeff cat.")
    tokens = [token.inner_text() for token in opened.page.locator("#read .token").all()]
    assert tokens == ["the", "zebra\ufeff \u2192 <rare>", "cat", "."]


def test_a_word_that_is_asked_for_has_its_probability_and_place(opened: Opened, model: Model) -> None:
    opened.type("Context", "the small")
    opened.type("P of one word", "dog")
    column = opened.page.locator(f"#columns [data-model='{TRIGRAM}']")
    P = model.distribution(TRIGRAM, "the small")
    dog = model.store.words.index("dog")
    assert float(column.locator(".asked").get_attribute("data-probability")) == pytest.approx(P[dog], abs=1e-9)
    assert column.locator(".asked").inner_text().endswith(f"place {1 + int(np.sum(P[dog] < P))}")


def test_the_keyboard_is_enough_to_write_on(opened: Opened) -> None:
    opened.type("Context", "the small")
    button = opened.page.locator(f"[data-model='{TRIGRAM}'] button.next").first
    word = button.get_attribute("data-word")
    button.focus()
    opened.page.keyboard.press("Enter")
    assert opened.field("Context").input_value() == f"the small {word}"
    assert opened.page.evaluate("document.activeElement.id") == "context"


@pytest.mark.parametrize("name", SHAPES)
def test_neighbours_and_the_map_are_those_of_python(opened: Opened, model: Model, name: str) -> None:
    opened.page.locator("#features-of").select_option(name)
    opened.type("Word", "cat")
    shown = opened.page.evaluate(
        "[...document.querySelectorAll('#neighbours button')].map(b => [b.dataset.word, Number(b.dataset.cosine)])"
    )
    features, frequent = model.rounded[name].C.detach().numpy(), np.array(model.data["frequent"])
    expected = nearest(features, model.store.words.index("cat"), frequent, 10)
    assert [word for word, _ in shown] == [model.store.words[i] for i, _ in expected]
    assert [cosine for _, cosine in shown] == pytest.approx([cosine for _, cosine in expected], abs=ABSOLUTE)

    plane = next(net["plane"] for net in model.data["networks"] if net["model"] == name)
    points = (features[frequent] - plane["centre"]) @ np.array(plane["directions"]).T
    assert opened.page.evaluate("name => DATA.frequent.map(id => place(name, id))", name) == pytest.approx(
        points, abs=ABSOLUTE
    )


def test_the_map_names_the_word_under_the_mouse_and_a_click_chooses_it(opened: Opened, model: Model) -> None:
    page, canvas = opened.page, opened.page.locator("#map")
    canvas.scroll_into_view_if_needed()
    # The word that is farthest from all others, so that no other is nearer to the mouse.
    place = "projection().toPixels(points($('features-of').value).get(id))"
    pixels = np.array(page.evaluate(f"DATA.frequent.map(id => {place})"))
    between = np.linalg.norm(pixels[:, None] - pixels[None], axis=2) + np.diag(np.full(len(pixels), np.inf))
    lonely = int(between.min(axis=1).argmax())
    word = model.store.words[model.data["frequent"][lonely]]
    box = canvas.bounding_box()
    x, y = pixels[lonely] + [box["x"] + 1, box["y"] + 1]  # the border
    page.mouse.move(x, y)
    assert page.locator("#map-word").inner_text().startswith(f"{word}: ")
    page.mouse.click(x, y)
    assert opened.field("Word").input_value() == word

    # Closer and back by the wheel, the keys and the buttons; what is under the mouse stays there.
    zoom = "view.zoom"
    page.mouse.wheel(0, -100)
    page.wait_for_function(f"{zoom} > 1.1")
    assert page.evaluate(f"(id => {place})({model.data['frequent'][lonely]})") == pytest.approx(pixels[lonely], abs=1.5)
    canvas.focus()
    page.keyboard.press("0")
    assert page.evaluate(zoom) == 1
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(zoom) == 1.5 and page.evaluate("view.x") > 0
    page.get_by_role("button", name="Whole map").click()
    assert page.evaluate("[view.zoom, view.x, view.y]") == [1, 0, 0]
    assert "of the features of" in canvas.get_attribute("aria-label")


@pytest.mark.parametrize("name", SHAPES)
def test_the_worked_example_is_what_the_command_found(opened: Opened, explorer_results: Path, name: str) -> None:
    opened.page.locator("#sentence-of").select_option(name)
    found = read_json(explorer_results / POLICY / name / "seed1" / "added-sentence.json")
    for role in ("added", "other", "scrambled", "unrelated"):
        for kind in ("network", "trigram"):
            shown = opened.page.locator(f"#sentence-tables [data-role={role}][data-kind={kind}]")
            changes = [
                sum(sentence[kind]["after"]) - sum(sentence[kind]["before"])
                for sentence in found["sentences"]
                if sentence["role"] == role
            ]
            assert float(shown.get_attribute("data-change")) == pytest.approx(np.mean(changes), abs=1e-9)
        added, other = found["sentences"][:2]
        shown = opened.page.locator(f"#sentence-tables [data-role=apart][data-kind={kind}]")
        apart = [word not in added["words"] for word in other["words"]]
        change = np.subtract(other[kind]["after"], other[kind]["before"])[apart].sum()
        assert float(shown.get_attribute("data-change")) == pytest.approx(change, abs=1e-9)

    def apart(sentence: dict[str, Any]) -> float:
        changes = np.subtract(sentence["network"]["after"], sentence["network"]["before"])
        return float(changes[[word not in added["words"] for word in sentence["words"]]].sum())

    controls = [apart(each) for each in found["sentences"][2:]]
    beaten = sum(apart(other) > control for control in controls)
    assert f"more than {beaten} of {len(controls)} controls" in opened.page.locator("#verdict").inner_text()
    text = opened.page.locator("#sentence").inner_text()
    assert "A dog was running in a room" in text and f"{len(found['rates'])} updates" in text
    assert "walking \u2192 <rare>" in text


def test_a_sentence_without_a_trigram_is_shown_by_the_network_alone(
    chromium: Any, model: Model, tmp_path: Path
) -> None:
    data = copy.deepcopy(model.data)
    for sentence in data["networks"][0]["sentence"]["sentences"]:
        sentence["trigram"] = None
    path = tmp_path / "explorer.html"
    path.write_text(explorer.render(data), encoding="utf-8")
    page = chromium.new_page()
    page.goto(path.as_uri())
    assert page.locator("#sentence-tables [data-role=other]").count() == 1
    page.locator("#sentence-of").select_option(data["networks"][1]["model"])
    assert page.locator("#sentence-tables [data-role=other]").count() == 2
    page.close()


def test_it_fits_a_small_window_and_every_field_has_a_label(opened: Opened) -> None:
    page = opened.page
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    unnamed = "[...document.querySelectorAll('input, select, button')].filter(e => !e.labels?.length && !e.innerText)"
    assert page.evaluate(f"{unnamed}.length") == 0
