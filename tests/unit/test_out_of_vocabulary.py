"""Features for words outside V: by hand, against a reader that takes one token after the other, and what must hold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_network_scoring import save

from nplm2003.cli import main
from nplm2003.errors import UserError
from nplm2003.neural import out_of_vocabulary as oov
from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.scoring import score
from nplm2003.scoring import SPLITS, Scores
from nplm2003.vocabulary import Split, TokenStore

Build = Callable[[str, Split, int], TokenStore]
SPLIT = Split(300, 200, 200)
SIZE = 12  # of V: two tokens in five are outside of it


def stores(build_store: Build, text: str, split: Split, size: int) -> tuple[TokenStore, TokenStore]:
    """The tokens of `text` under a vocabulary of `size`, and with every word in the vocabulary."""
    used = text.split()[: int(split.train + split.valid + (split.test or 0))]
    return build_store(text, split, size), build_store(text, split, len(set(used)) + 1)


@pytest.fixture(scope="module")
def both(build_store: Build, invented_text: Callable[..., str]) -> tuple[TokenStore, TokenStore]:
    return stores(build_store, invented_text(150), SPLIT, SIZE)


def network(store: TokenStore, order: int = 4, hidden: int = 5, direct: bool = True) -> NeuralLanguageModel:
    torch.manual_seed(order)
    model = NeuralLanguageModel(store.size, order, hidden, 3, direct)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model.eval()


def closed_scores(model: NeuralLanguageModel, store: TokenStore) -> dict[str, np.ndarray]:
    return {split: np.concatenate(list(score(model, store, split))) for split in SPLITS}


class Seen(NamedTuple):
    """One token as a plain reader sees it."""

    closed: float  # log P over V
    y: dict[int, float]  # of the words of V
    y_met: dict[int, float]  # of the words met so far
    event: tuple[str, int]  # ("V", id), ("met", word) or ("new", 0)
    counts: dict[int, int]  # of the words met so far


def read_slowly(
    model: NeuralLanguageModel, store: TokenStore, every: TokenStore, features: str, rare_count: int
) -> Iterator[Seen]:
    """Validation and test, token after token."""
    C, O = model.C.detach().double().numpy(), model.O.detach().double().numpy()
    H, d = (None if each is None else each.detach().double().numpy() for each in (model.H, model.d))
    rare = [i for i in range(1, store.size) if store.train_counts[i] <= rare_count]
    ids = np.concatenate([store[split] for split in SPLITS]).astype(int)
    words = np.concatenate([every[split] for split in SPLITS]).astype(int)
    found: dict[int, list[np.ndarray]] = {}
    begin = len(store["train"])
    for t in range(begin, len(ids)):
        x = []
        for back in range(1, model.order):
            slot = t - back
            if ids[slot] == 0 and slot >= begin:
                x.append(np.mean(found[words[slot]], axis=0)[: model.features])
            else:
                x.append(C[ids[slot]])
        x_all = np.concatenate(x)
        a = [] if H is None else np.tanh(d + H @ x_all)
        z = np.concatenate([x_all if model.direct else [], a, [1.0]])
        y = O @ z
        P = np.exp(y) / np.exp(y).sum()
        y_met = {word: float(np.mean(each, axis=0)[model.features :] @ z) for word, each in found.items()}
        word = int(words[t])
        event = ("V", int(ids[t])) if ids[t] else ("met", word) if word in found else ("new", 0)
        counts = {key: len(value) for key, value in found.items()}
        yield Seen(math.log(P[ids[t]]), dict(enumerate(y.tolist())), y_met, event, counts)
        if ids[t] == 0:
            weights = P if features == "expected" else np.where(np.isin(np.arange(store.size), rare), P, 0)
            weights = weights / weights.sum()
            mean_C, mean_O = weights @ C, weights @ O
            if features == "rare":
                mean_C = C[0] + oov.SHARE * (mean_C - C[0])
            found.setdefault(word, []).append(np.concatenate([mean_C, mean_O]))


def distribution(seen: Seen, way: str, beta: float, types: int) -> dict[tuple[str, int], float]:
    """P of every event: the words of V but the merged symbol, the words met so far, and all new ones together."""
    e = {word: math.exp(y) for word, y in seen.y.items()}
    total, merged, J = sum(e.values()), e[0], len(seen.y_met)
    found = {("V", word): value / total for word, value in e.items() if word}
    met = {word: math.exp(y + beta) / J for word, y in seen.y_met.items()}
    if way == "larger":
        Z = total + sum(met.values())
        found = {event: P * total / Z for event, P in found.items()}
        return found | {("met", word): value / Z for word, value in met.items()} | {("new", 0): merged / Z}
    if way == "within":
        choice = {word: value / (merged + sum(met.values())) for word, value in met.items()}
    elif way == "uniform":
        choice = dict.fromkeys(met, 1 / types)
    else:
        N = sum(seen.counts.values())
        choice = {word: seen.counts[word] / (N + J) for word in met}
    P_merged = merged / total
    return (
        found
        | {("met", word): P_merged * share for word, share in choice.items()}
        | {("new", 0): P_merged * (1 - sum(choice.values()))}
    )


@pytest.mark.parametrize("features", oov.FEATURES)
@pytest.mark.parametrize(("order", "hidden", "direct"), [(4, 5, True), (3, 4, False), (2, 0, True)])
def test_the_text_is_read_as_one_token_after_the_other_would(
    both: tuple[TokenStore, TokenStore],
    monkeypatch: pytest.MonkeyPatch,
    features: str,
    order: int,
    hidden: int,
    direct: bool,
) -> None:
    store, every = both
    rare_count = int(np.median(store.train_counts))
    monkeypatch.setattr(oov, "RARE_COUNT", rare_count)
    monkeypatch.setattr(oov, "PART", 37)
    model = network(store, order, hidden, direct)
    plain = closed_scores(model, store)
    reading = oov.Reading(store, every, order)
    words = oov.meet(model, reading, features, store.train_counts)
    slow = list(read_slowly(model, store, every, features, rare_count))
    types = store.statistics["merged_types"]
    biases = {"larger": -0.7, "within": 1.3}
    for split, part in (("valid", slow[: len(store["valid"])]), ("test", slow[len(store["valid"]) :])):
        closed = oov.score_followers(model, reading, words, split, plain[split])
        np.testing.assert_allclose(closed, [seen.closed for seen in part], atol=2e-5)
        judged = oov.Judged(reading, split, oov.enlarge(model, reading, words, split, closed), closed)
        for way in oov.WAYS:
            found = judged.log_probabilities(way, biases, types)
            for token, seen in enumerate(part):
                expected = distribution(seen, way, biases.get(way, 0.0), types)
                assert sum(expected.values()) == pytest.approx(1)
                assert math.exp(found[token]) == pytest.approx(expected[seen.event], rel=1e-3), (way, token)


def test_features_by_hand(build_store: Build) -> None:
    # V is <rare>, a, b. The output is P = (0.2, 0.5, 0.3) whatever the context, but for e^y(b), e^C times as likely.
    text = "a b a b a a   x b y x   b a b"
    store, every = stores(build_store, text, Split(6, 4, 3), 3)
    assert store.words == ["<rare>", "a", "b"] and every.words[3:] == ["x", "y"]
    model = NeuralLanguageModel(3, 2, 0, 1, True)
    model.C.data.copy_(torch.tensor([[10.0], [0.0], [-1.0]]))
    model.O.data.copy_(torch.tensor([[0.0, math.log(0.2)], [0.0, math.log(0.5)], [1.0, math.log(0.3)]]))
    reading = oov.Reading(store, every, 2)
    assert reading.ids.tolist() == [0, 1, 2, 1, 2, 1, 1, 0, 2, 0, 0, 2, 1, 2]  # padded by one
    assert reading.positions.tolist() == [7, 9, 10]
    assert (reading.previous.tolist(), reading.counts.tolist()) == ([-1, -1, 0], [1, 1, 2])
    assert reading.following.tolist() == [10, 14, 14]
    assert reading.contexts(np.array([7, 8, 10, 11])).tolist() == [[1], [3], [4], [5]]
    words = oov.meet(model, reading, "expected", store.train_counts)
    after_a = 0.2 * 10 + 0.5 * 0 + 0.3 * -1  # x, after a: P is 0.2, 0.5, 0.3
    b = 0.3 / math.e  # in the contexts of b, C = -1
    after_b = (0.2 * 10 + b * -1) / (0.7 + b)
    third = 0.3 * math.exp(after_b)  # x again, after y
    again = (0.2 * 10 - third) / (0.7 + third)
    assert words.C[3:, 0].tolist() == pytest.approx([after_a, after_b, (after_a + again) / 2], rel=1e-5)
    assert float(words.O[3, 0]) == pytest.approx(0.3)
    assert float(words.O[3, 1]) == pytest.approx(sum(p * math.log(p) for p in (0.2, 0.5, 0.3)))
    # The token after the first x is b, at e^y(b) = 0.3 e^1.7; the others keep the scores of the network.
    plain = closed_scores(model, store)
    closed = oov.score_followers(model, reading, words, "valid", plain["valid"])
    likely = 0.3 * math.exp(after_a)
    assert math.exp(closed[1]) == pytest.approx(likely / (0.7 + likely), rel=1e-5)
    assert closed[0] == plain["valid"][0] and closed[2] == plain["valid"][2]
    assert math.exp(plain["valid"][1]) == pytest.approx(1, abs=1e-3)  # after C(merged) = 10
    assert reading.met("valid").tolist() == [0, 1, 1, 2] and reading.met("test").tolist() == [2, 2, 2]


def test_the_future_of_a_token_changes_nothing(build_store: Build, invented_text: Callable[..., str]) -> None:
    tokens = invented_text(150).split()[:700]
    changed = [*tokens[:600], *reversed(tokens[600:])]  # as often, in another order
    scores = []
    for stream in (tokens, changed):
        store, every = stores(build_store, " ".join(stream), SPLIT, SIZE)
        model = network(store)
        reading = oov.Reading(store, every, model.order)
        words = oov.meet(model, reading, "expected", store.train_counts)
        plain = closed_scores(model, store)
        scores.append([oov.score_followers(model, reading, words, split, plain[split]) for split in oov.HELD_OUT])
    np.testing.assert_allclose(scores[0][0], scores[1][0], atol=1e-5)
    np.testing.assert_allclose(scores[0][1][:100], scores[1][1][:100], atol=1e-5)
    assert np.abs(scores[0][1][100:] - scores[1][1][100:]).max() > 0.1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=30), st.data())
def test_the_bias_is_the_likeliest(weights: list[float], data: st.DataObject) -> None:
    # The likelihood is concave: nothing nearby is better.
    w = np.array([-math.inf, *weights])
    met = data.draw(st.integers(1, len(weights) - 1))

    def likelihood(beta: float) -> float:
        return float(met * beta - np.logaddexp(0, beta + w).sum())

    beta = oov.likeliest(w, met)
    assert all(likelihood(beta) >= likelihood(beta + step) for step in (-0.01, 0.01))
    assert (1 / (1 + np.exp(-(beta + w)))).sum() == pytest.approx(met, rel=1e-6)


@pytest.fixture
def trained(both: tuple[TokenStore, TokenStore], tmp_path: Path) -> Path:
    """The folder of a network and its scores."""
    store, _ = both
    save(network(store), store, tmp_path / "weights.pt")
    training = {"seed": 3, "preset": {"matmul": "highest"}, "provenance": {"commit": "c"}}
    (tmp_path / "training.json").write_text(json.dumps(training), encoding="utf-8")
    arguments = ["--tokens", str(store.folder), "--network", str(tmp_path), "--model", "net"]
    assert main(["score", *arguments, "--output", str(tmp_path / "scores")]) == 0
    return tmp_path


def run(both: tuple[TokenStore, TokenStore], folder: Path, **changes: Any) -> int:
    """Run `score-oov`; what it writes lies in `folder`/oov."""
    values = {
        "tokens": both[0].folder,
        "every-word": both[1].folder,
        "network": folder,
        "scores": folder / "scores",
        "features": "expected",
        "model": "net-oov",
        "output": folder / "oov",
        "words-output": folder / "oov" / "words.json",
        **changes,
    }
    return main(["score-oov", *(str(part) for key, value in values.items() for part in (f"--{key}", value))])


def test_the_command_writes_scores_and_an_evaluation(both: tuple[TokenStore, TokenStore], trained: Path) -> None:
    assert run(both, trained) == 0
    plain, scores = Scores(trained / "scores"), Scores(trained / "oov")
    assert (scores.model, scores.seed, scores.vocabulary) == ("net-oov", 3, both[0].fingerprint)
    assert np.array_equal(plain["train"], scores["train"]) and not np.array_equal(plain["valid"], scores["valid"])
    written = json.loads((trained / "oov" / "words.json").read_text(encoding="utf-8"))
    assert written["features"] == "expected" and set(written["biases"]) == {"larger", "within"}
    records = {(record["split"], record["group"]): record for record in written["records"]}
    whole, met, new, outside = (
        records["test", group] for group in ("all", "outside V, met before", "outside V, new", "outside V")
    )
    assert whole["tokens"] == 200 and met["tokens"] + new["tokens"] == outside["tokens"]
    assert outside["tokens"] == int((both[0]["test"] == 0).sum())
    for way, split_scores in (("merged", plain["test"]), ("features", scores["test"])):
        assert whole["perplexity"][way] == pytest.approx(math.exp(-split_scores.mean(dtype=np.float64)))
    # The biases are those of validation: there they are better than any other.
    reading = oov.Reading(*both, 4)
    words = oov.meet(network(both[0]), reading, "expected", both[0].train_counts)
    closed = np.array(scores["valid"])
    judged = oov.Judged(reading, "valid", oov.enlarge(network(both[0]), reading, words, "valid", closed), closed)
    for way, beta in written["biases"].items():
        best, *others = (judged.log_probabilities(way, {way: beta + step}, 99).sum() for step in (0, -0.05, 0.05))
        assert best > max(others)
        nats = records["valid", "all"]["perplexity"][way]
        assert nats == pytest.approx(math.exp(-best / 200), rel=1e-6)


def test_tokens_that_are_others_are_refused(
    both: tuple[TokenStore, TokenStore], build_store: Build, invented_text: Callable[..., str], trained: Path
) -> None:
    store, every = both
    for other in (build_store(invented_text(150, 1), SPLIT, every.size - 8), build_store("a b c d", Split(2, 1), 3)):
        with pytest.raises(UserError, match="does not hold the tokens of .* train differs"):
            oov.identities(store, other, "train")
    with pytest.raises(UserError, match="keeping more words"):
        oov.identities(every, store, "train")  # merges more
    assert run((every, store), trained) == 1 and not (trained / "oov").exists()
    # A store that merges less, but still some: what it merges has no features.
    less = build_store(invented_text(150), SPLIT, SIZE + 5)
    known, all_words = (oov.identities(store, each, "valid") for each in (less, every))
    assert 0 < (known >= 0).sum() < (all_words >= 0).sum() == (store["valid"] == 0).sum()


def test_scores_of_another_network_are_refused(
    both: tuple[TokenStore, TokenStore], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    (trained / "training.json").write_text(json.dumps({**training, "order": 9}), encoding="utf-8")
    assert run(both, trained) == 1
    assert "are no scores of the network" in capsys.readouterr().err


def test_what_cannot_be_judged_is_refused(build_store: Build, both: tuple[TokenStore, TokenStore]) -> None:
    store, every = stores(build_store, "a b a b a x b a y", Split(4, 3, 2), 3)
    model = network(store)
    reading, plain = oov.Reading(store, every, model.order), closed_scores(model, store)
    words = oov.meet(model, reading, "expected", store.train_counts)
    with pytest.raises(UserError, match="no word outside the vocabulary is met again in validation"):
        oov.judge(model, reading, words, plain, plain, 2)
    with pytest.raises(UserError, match="no rare ones can stand for"):
        oov.meet(model, reading, "rare", np.full(store.size, oov.RARE_COUNT + 1))
