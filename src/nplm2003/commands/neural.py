"""Sub-commands of the networks: train and score."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nplm2003.commands.arguments import add_command, add_scores, add_tokens, positive, seed
from nplm2003.errors import UserError
from nplm2003.files import read_object
from nplm2003.neural.architectures import ARCHITECTURES, PAPER, parse_options
from nplm2003.provenance import provenance
from nplm2003.scoring import SPLITS, write_scores


def register(subparsers: Any) -> None:
    """Add `train`, `score` and `score-oov`."""
    parser = add_command(
        subparsers,
        "train",
        _train,
        "train one network",
        "Train one network of the paper on the training tokens, choosing the epoch on validation. Writes weights.pt, "
        "features.npy (the word features C), learning_curve.csv and training.json into --output. A run that was killed "
        "goes on from its last finished epoch when the same command is run again. With --processes, several "
        "processes of this machine share the work, on the CPU: see --parallel.",
        "nplm2003 train --tokens results/brown/top16383/tokens --order 5 --hidden 100 --features 30 \\\n"
        "      --preset-file results/brown/study.json --preset modern --seed 1 --output results/my-net",
    )
    add_tokens(parser)
    parser.add_argument("--order", type=positive, required=True, metavar="N", help="n: N - 1 words of context")
    parser.add_argument("--hidden", type=int, required=True, metavar="H", help="h: hidden units; 0 for none")
    parser.add_argument("--features", type=positive, required=True, metavar="M", help="m: features of each word")
    parser.add_argument("--direct", action="store_true", help="direct connections W from the features to the output")
    parser.add_argument(
        "--architecture",
        choices=(PAPER, *ARCHITECTURES),
        default=PAPER,
        metavar="NAME",
        help=f"{PAPER}, the paper's (the default), {', '.join(ARCHITECTURES)}: nplm2003/neural/architectures says how",
    )
    parser.add_argument("--options", metavar="TEXT", help='options of another architecture: "layers=2 rate=0.002"')
    parser.add_argument(
        "--word-features",
        choices=("learnt", "word2vec", "svd"),
        default="learnt",
        help="C: learnt from a random start or from the vectors of word2vec, or fixed singular vectors of the "
        "co-occurrence counts of train (default: learnt)",
    )
    parser.add_argument(
        "--outputs",
        choices=("words", "classes", "adaptive", "tree"),
        default="words",
        help="output layer: one softmax over all words, one over --classes and one in each class, the same by how "
        "frequent words are, or a binary tree of --classes (default: words)",
    )
    parser.add_argument("--classes", type=Path, metavar="FILE", help="the classes.tsv of `learn-classes`")
    parser.add_argument(
        "--preset-file", type=Path, required=True, metavar="FILE", help="JSON with a `presets` object (study.json)"
    )
    parser.add_argument("--preset", required=True, metavar="NAME", help="which of them")
    parser.add_argument("--seed", type=seed, required=True, help="seed of the weights, the order and the dropout")
    parser.add_argument("--threads", type=positive, default=1, help="CPU threads of each process (default: 1)")
    parser.add_argument("--processes", type=positive, default=1, metavar="P", help="processes (default: 1)")
    parser.add_argument(
        "--parallel",
        choices=("data", "asynchronous", "vocabulary"),
        help="how they share the work; needed with 2 and more. data: each takes a share of the examples of every "
        "update; vocabulary: each takes a block of the words, for exact softmax alone; both end as one process does, "
        "but for rounding. asynchronous: each takes its own updates of shared parameters, without waiting; ends a "
        "little differently in every run",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="folder of the trained network")

    parser = add_command(
        subparsers,
        "score",
        _score,
        "score every token with a trained network",
        "Write the natural-log probability of every token of train, valid and test under a trained network: exact "
        "probabilities, which sum to 1 over the vocabulary. Products are in float32 for valid and test, and for train "
        "as the preset says (`matmul`).",
        "nplm2003 score --tokens results/brown/top16383/tokens --network results/my-net --model my-net \\\n"
        "      --output results/my-net/scores",
    )
    _add_network(parser)
    add_scores(parser)

    parser = add_command(
        subparsers,
        "score-oov",
        _score_oov,
        "score every token with features for words outside the vocabulary",
        "Read validation and test in stream order, give every word that the vocabulary merges features from the "
        "contexts it was met in (section 5 of the paper), and score every token with them in the contexts; train as "
        "the network itself scores it. --words-output: what that does to the tokens that follow such words, and how "
        "likely these words are once the softmax knows them.",
        "nplm2003 score-oov --tokens results/brown/top16383/tokens --every-word results/brown/top16383/every-word \\\n"
        "      --network my-net --scores my-net/scores --features expected --model my-oov \\\n"
        "      --output my-oov/scores --words-output my-oov/out_of_vocabulary.json",
    )
    _add_network(parser)
    parser.add_argument(
        "--every-word",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the same tokens under a policy that merges nothing, or less (`build-tokens --cut frequency --size 0`)",
    )
    parser.add_argument("--scores", type=Path, required=True, metavar="FOLDER", help="its scores, from `score`")
    parser.add_argument(
        "--features",
        required=True,
        choices=("expected", "rare"),
        help="from all words as they are expected, as in the paper, or from rare ones alone",
    )
    add_scores(parser)
    parser.add_argument("--words-output", type=Path, required=True, metavar="FILE", help="the evaluation (JSON)")


def _add_network(parser: argparse.ArgumentParser) -> None:
    add_tokens(parser)
    parser.add_argument("--network", type=Path, required=True, metavar="FOLDER", help="the folder `train` wrote")
    parser.add_argument("--threads", type=positive, default=1, help="CPU threads to use (default: 1)")


def _train(options: argparse.Namespace) -> None:
    from nplm2003.neural.preset import Preset
    from nplm2003.neural.training import train
    from nplm2003.ngram.classes import read_classes
    from nplm2003.vocabulary import TokenStore

    presets = read_object(options.preset_file, {"presets": {str: dict}})["presets"]
    if options.preset not in presets:
        raise UserError(f"no preset {options.preset!r} in {options.preset_file}; it has {', '.join(sorted(presets))}")
    try:
        preset = Preset(**presets[options.preset])
    except (TypeError, UserError) as error:
        raise UserError(f"{options.preset_file}: preset {options.preset}: {error}") from error
    if options.hidden < 0 or options.order < 2:
        raise UserError(
            f"--order {options.order} --hidden {options.hidden}: a network needs order >= 2 and hidden >= 0"
        )
    if options.hidden == 0 and not options.direct and options.architecture == PAPER:
        raise UserError("a network with --hidden 0 needs --direct, or its output ignores the context")
    if (options.processes > 1) != (options.parallel is not None):
        raise UserError("--processes above 1 needs --parallel, which says how they share the work, and the reverse")
    store = TokenStore(options.tokens)
    class_of = None if options.classes is None else read_classes(options.classes, store)[0]
    with _memory_errors():
        summary = train(
            store,
            order=options.order,
            hidden=options.hidden,
            features=options.features,
            direct=options.direct,
            word_features=options.word_features,
            outputs=options.outputs,
            class_of=class_of,
            architecture=options.architecture,
            options=parse_options(options.options),
            preset=preset,
            seed=options.seed,
            output=options.output,
            threads=options.threads,
            scheme=options.parallel,
            processes=options.processes,
            progress=sys.stderr.isatty(),
            provenance=provenance({"preset": options.preset}),
        )
    print(
        f"best epoch {summary['best_epoch']}: validation perplexity {summary['valid_perplexity']:.2f}", file=sys.stderr
    )


@contextmanager
def _memory_errors() -> Iterator[None]:
    """What torch raises where memory is short is a RuntimeError like any other; make it Python's own."""
    try:
        yield
    except RuntimeError as error:
        if re.search(r"allocate memory|out of memory|size calculation overflowed", str(error)):
            raise MemoryError(str(error).splitlines()[0]) from error
        raise


def _score(options: argparse.Namespace) -> None:
    from nplm2003.neural.preset import CHOICES
    from nplm2003.neural.scoring import load_network, score
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    model = load_network(options.network / "weights.pt", store)
    shape = {"seed": int, "preset": {"matmul": CHOICES["matmul"]}, "provenance": dict}
    training = read_object(options.network / "training.json", shape)
    # Train is the larger part and decides nothing: its products may be as rough as those of training.
    matmul = {"train": training["preset"]["matmul"]}
    write_scores(
        options.output,
        {
            split: score(model, store, split, threads=options.threads, matmul=matmul.get(split, "highest"))
            for split in SPLITS
        },
        model=options.model,
        seed=training["seed"],
        vocabulary=store.fingerprint,
        provenance=provenance(
            {key: value for key, value in training.items() if key != "provenance"}, training=training["provenance"]
        ),
    )


def _score_oov(options: argparse.Namespace) -> None:
    from nplm2003.files import write_json
    from nplm2003.neural import out_of_vocabulary as oov
    from nplm2003.neural.outputs import Words
    from nplm2003.neural.scoring import load_paper_network, settle
    from nplm2003.scoring import Scores
    from nplm2003.vocabulary import TokenStore

    store, plain = TokenStore(options.tokens), Scores(options.scores)
    model = load_paper_network(options.network / "weights.pt", store)
    if not isinstance(model.output, Words):
        raise UserError(f"{options.network} is no network of the paper with the outputs words: choose one that is")
    training = read_object(options.network / "training.json", {"seed": int, "provenance": dict})
    made = {key: value for key, value in training.items() if key != "provenance"}
    if plain.metadata["provenance"].get("configuration") != made:
        raise UserError(f"{options.scores} are no scores of the network {options.network}: score it first")
    settle(options.threads)
    reading = oov.Reading(store, TokenStore(options.every_word), model.order)
    words = oov.meet(model, reading, options.features, store.train_counts)
    scores = {split: oov.score_followers(model, reading, words, split, plain[split]) for split in oov.HELD_OUT}
    before = {split: plain[split] for split in oov.HELD_OUT}
    judged = oov.judge(model, reading, words, before, scores, store.statistics["merged_types"])
    made_by = provenance({**made, "features": options.features}, training=training["provenance"])
    common = {"model": options.model, "seed": training["seed"], "vocabulary": store.fingerprint}
    write_json(options.words_output, {**common, "features": options.features, **judged, "provenance": made_by})
    write_scores(
        options.output,
        {"train": [plain["train"]], **{split: [each] for split, each in scores.items()}},
        **common,
        provenance=made_by,
    )
