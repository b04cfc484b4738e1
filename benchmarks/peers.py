"""The study beside libraries from PyPI: examples a second that they train on, and tokens a second that they score.

Each trains the output layer and all below it of one network of Table 1, with the vocabulary of Brown, on the same
random words, by stochastic gradient descent: PyTorch (plain, compiled, and with its adaptive softmax), JAX, and
TensorFlow (exact, and its own sampled softmax and NCE). JAX and TensorFlow take part where they are installed:

    pip install 'jax[cpu]' tensorflow-cpu

N-grams are scored beside NLTK's Kneser-Ney. Seconds are CPU seconds of the process, whatever number of threads a
library takes, the best of several rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import torch
from common import presets
from objectives import EXACT, NETWORKS, VOCABULARY, draw, ours, plain, rates

from nplm2003.neural.model import NeuralLanguageModel
from nplm2003.neural.preset import Preset
from nplm2003.neural.scoring import settle

Batch = tuple[torch.Tensor, torch.Tensor]
Shape = dict[str, Any]
NOISE_WORDS = 100


def compiled(shape: Shape, batch: Batch) -> Callable[[], None]:
    """The plain loop with its loss compiled by `torch.compile`."""
    model = NeuralLanguageModel(VOCABULARY, **shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = torch.compile(lambda c, t: torch.nn.functional.cross_entropy(model.before_output(c) @ model.O.T, t))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(*batch).backward()
        optimizer.step()

    return step


def adaptive(shape: Shape, batch: Batch) -> Callable[[], None]:
    """PyTorch's adaptive softmax in the place of the output layer."""
    model = NeuralLanguageModel(VOCABULARY, **shape)
    output = torch.nn.AdaptiveLogSoftmaxWithLoss(model.O.shape[1], VOCABULARY, [2_000, 8_000])
    optimizer = torch.optim.SGD([*model.parameters(), *output.parameters()], lr=0.1)
    contexts, targets = batch

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        output(model.before_output(contexts), targets).loss.backward()
        optimizer.step()

    return step


def jax_exact(shape: Shape, batch: Batch) -> Callable[[], None]:
    """Exact softmax by JAX, compiled; the parameters are given away, so that they are moved in place."""
    import jax
    import jax.numpy as jnp

    model = NeuralLanguageModel(VOCABULARY, **shape)
    contexts, targets = (jnp.asarray(part.numpy()) for part in batch)
    theta = {name: jnp.asarray(value.detach().numpy()) for name, value in model.named_parameters()}

    def cost(theta: dict[str, Any]) -> Any:
        x = theta["C"][contexts].reshape(len(contexts), -1)
        a = [jnp.tanh(theta["d"] + x @ theta["H"].T)] if shape["hidden"] else []
        z = jnp.concatenate([*([x] if shape["direct"] else []), *a, jnp.ones((len(x), 1))], axis=1)
        y = z @ theta["O"].T
        return (jax.nn.logsumexp(y, axis=1) - jnp.take_along_axis(y, targets[:, None], axis=1)[:, 0]).mean()

    def update(theta: dict[str, Any]) -> dict[str, Any]:
        return jax.tree.map(lambda value, gradient: value - gradient, theta, jax.grad(cost)(theta))

    run = jax.jit(update, donate_argnums=0)
    state = [theta]

    def step() -> None:
        state[0] = jax.block_until_ready(run(state[0]))

    return step


def tensorflow(loss: str, shape: Shape, batch: Batch) -> Callable[[], None]:
    """TensorFlow: `exact` cross-entropy, or its `sampled_softmax_loss` or `nce_loss` with noise words of its own."""
    import tensorflow as tf

    model = NeuralLanguageModel(VOCABULARY, **shape)
    contexts, targets = (tf.constant(part.numpy()) for part in batch)
    theta = {name: tf.Variable(value.detach().numpy()) for name, value in model.named_parameters()}

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            x = tf.reshape(tf.gather(theta["C"], contexts), (len(batch[0]), -1))
            parts = [x] if shape["direct"] else []
            if shape["hidden"]:
                parts.append(tf.tanh(theta["d"] + tf.matmul(x, theta["H"], transpose_b=True)))
            z = tf.concat([*parts, tf.ones((len(batch[0]), 1))], axis=1)
            if loss == "exact":
                y = tf.matmul(z, theta["O"], transpose_b=True)
                nats = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, y)
            else:
                zero = tf.zeros(VOCABULARY)  # the bias is the last column of O
                labels = tf.reshape(targets, (-1, 1))
                nats = getattr(tf.nn, loss)(theta["O"], zero, labels, z, NOISE_WORDS, VOCABULARY)
            cost = tf.reduce_mean(nats)
        for value, gradient in zip(theta.values(), tape.gradient(cost, list(theta.values())), strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                value.scatter_sub(gradient)
            else:
                value.assign_sub(gradient)

    return step


def ways(name: str, batch: Batch) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every way to train the network `name`, ours last."""
    shape = NETWORKS[name]
    yield "PyTorch, plain", plain(shape, batch)
    yield "PyTorch, compiled", compiled(shape, batch)
    yield "PyTorch, adaptive softmax", adaptive(shape, batch)
    if importlib.util.find_spec("jax"):
        yield "JAX, exact", jax_exact(shape, batch)
    if importlib.util.find_spec("tensorflow"):
        for loss, label in (("exact", "exact"), ("sampled_softmax_loss", "sampled softmax"), ("nce_loss", "NCE")):
            words = "" if loss == "exact" else f", {NOISE_WORDS} words"
            yield f"TensorFlow, {label}{words}", tensorflow(loss, shape, batch)
    modern = presets()["modern"] | {"rate": 1e-3}
    yield "this study, exact, float32", ours(shape, Preset(**modern | EXACT | {"matmul": "highest"}), batch)
    yield "this study, exact, bfloat16", ours(shape, Preset(**modern | EXACT), batch)
    yield "this study, sampled softmax", ours(shape, Preset(**modern), batch)
    for objective, label in (("sampled-softmax", "sampled softmax"), ("noise-contrastive", "NCE")):
        change = {"objective": objective, "noise_words": NOISE_WORDS, "self_normalisation": 0.0}
        yield f"this study, {label}, {NOISE_WORDS} words", ours(shape, Preset(**modern | change), batch)


def nltk_rate(train: int, scored: int) -> float:
    """Tokens a second that NLTK's Kneser-Ney trigram scores, after `train` tokens of an invented text."""
    from nltk.lm import KneserNeyInterpolated
    from nltk.lm.preprocessing import padded_everygram_pipeline

    words = [f"w{i}" for i in (torch.rand(train + scored).pow(-1).long() % 1_000).tolist()]
    model = KneserNeyInterpolated(3)
    model.fit(*padded_everygram_pipeline(3, [words[:train]]))
    begin = time.process_time()
    for t in range(train, train + scored):
        model.score(words[t], words[t - 2 : t])
    return scored / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=["MLP1", "MLP9"], metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the best counts (default: 5)")
    options = parser.parse_args()
    settle(1)
    torch.manual_seed(1)
    size = presets()["modern"]["batch"]
    found: dict[str, dict[str, float]] = {}
    for name in options.networks:
        found[name] = rates(dict(ways(name, draw(NETWORKS[name], size))), size, options.rounds)
    print(f"|V| {VOCABULARY:,}, {size} examples per update, examples a second of CPU (and against plain PyTorch)\n")
    print(f"| way | {' | '.join(found)} |\n|---|{'--:|' * len(found)}")
    for way in next(iter(found.values())):
        cells = [f"{rate[way]:,.0f} (x {rate[way] / rate['PyTorch, plain']:.1f})" for rate in found.values()]
        print(f"| {way} | {' | '.join(cells)} |")
    print(f"\nNLTK's Kneser-Ney trigram: {math.floor(nltk_rate(2_000, 50)):,} tokens a second")


if __name__ == "__main__":
    main()
