"""Stages of the n-grams: lmplz, modified Kneser-Ney, class-based, the interpolated trigram, and older smoothing."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nplm2003.commands.arguments import add_command, add_scores, add_tokens, positive
from nplm2003.errors import UserError
from nplm2003.ngram import SMOOTHED_KINDS
from nplm2003.ngram.descriptions import read_description

ARPA = {"order": int, "checksum": str}  # what is read of the description of a model in an ARPA file


def register(subparsers: Any) -> None:
    """Add `build-lmplz` and `learn-classes`; `estimate-` and `score-` for each kind of n-gram."""
    parser = add_command(
        subparsers,
        "build-lmplz",
        _build_lmplz,
        "find or build KenLM's lmplz",
        "Put KenLM's estimator lmplz at --output: a link to the one on PATH, or else the program, built once from the "
        "source archive that pip fetches (about a minute; needs a C++ compiler, CMake and Boost).",
        "nplm2003 build-lmplz --output data/tools/lmplz",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="where lmplz is put")

    parser = add_command(
        subparsers,
        "estimate-kneser-ney",
        _estimate_kneser_ney,
        "estimate a Kneser-Ney n-gram",
        "Estimate a modified Kneser-Ney n-gram on train. --output holds the model in the ARPA format, its words being "
        "token ids; the .json beside it the discounts, and whether fallback discounts had to stand in.",
        "nplm2003 estimate-kneser-ney --tokens results/brown/top16383/tokens --order 5 --lmplz data/tools/lmplz \\\n"
        "      --output my-5gram/model.arpa",
    )
    add_tokens(parser)
    _add_estimation(parser)

    parser = add_command(
        subparsers,
        "score-kneser-ney",
        _score_kneser_ney,
        "score every token with a Kneser-Ney n-gram",
        "Write the natural-log probability of every token of train, valid and test under a Kneser-Ney n-gram, the "
        "context reaching back over the split boundary and no sentence mark counted.",
        "nplm2003 score-kneser-ney --tokens results/brown/top16383/tokens --model-file my-5gram/model.arpa \\\n"
        "      --model my-5gram --output my-5gram/scores",
    )
    add_tokens(parser)
    parser.add_argument(
        "--model-file", type=Path, required=True, metavar="FILE", help="what `estimate-kneser-ney` made"
    )
    add_scores(parser)

    parser = add_command(
        subparsers,
        "learn-classes",
        _learn_classes,
        "learn word classes",
        "Assign the words to classes by the exchange algorithm, on the bigrams of train. --output holds the class of "
        "every word (TSV), the .json beside it the log-likelihood of train after each pass.",
        "nplm2003 learn-classes --tokens results/brown/top16383/tokens --classes 500 --output my-classes/classes.tsv",
    )
    add_tokens(parser)
    parser.add_argument("--classes", type=positive, required=True, metavar="C", help="number of classes, at least 2")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the table (classes.tsv)")

    parser = add_command(
        subparsers,
        "estimate-class-based",
        _estimate_class_based,
        "estimate a class-based n-gram",
        "Estimate a modified Kneser-Ney n-gram on the classes of the words of train. --output holds the model in the "
        "ARPA format, its words being class ids; the .json beside it the discounts and the classes.",
        "nplm2003 estimate-class-based --tokens results/brown/top16383/tokens --classes my-classes/classes.tsv \\\n"
        "      --order 3 --lmplz data/tools/lmplz --output my-classes-3/model.arpa",
    )
    add_tokens(parser)
    _add_classes(parser)
    _add_estimation(parser)

    parser = add_command(
        subparsers,
        "score-class-based",
        _score_class_based,
        "score every token with a class-based n-gram",
        "Write the natural-log probability of every token of train, valid and test under a class-based n-gram: of its "
        "class after the classes before it, and of the word within its class.",
        "nplm2003 score-class-based --tokens results/brown/top16383/tokens --classes my-classes/classes.tsv \\\n"
        "      --model-file my-classes-3/model.arpa --model my-classes-3 --output my-classes-3/scores",
    )
    add_tokens(parser)
    _add_classes(parser)
    parser.add_argument(
        "--model-file", type=Path, required=True, metavar="FILE", help="what `estimate-class-based` made"
    )
    add_scores(parser)

    parser = add_command(
        subparsers,
        "estimate-interpolated",
        _estimate_interpolated,
        "estimate the interpolated trigram",
        "Learn the weights of the paper's interpolated trigram: one vector for each frequency bin of the context, by "
        "EM on validation. --output holds the weights, the validation tokens in each bin and the course of EM.",
        "nplm2003 estimate-interpolated --tokens results/brown/top16383/tokens --output my-trigram/weights.json",
    )
    add_tokens(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file of the weights")

    parser = add_command(
        subparsers,
        "score-interpolated",
        _score_interpolated,
        "score every token with the interpolated trigram",
        "Write the natural-log probability of every token of train, valid and test under the interpolated trigram, "
        "whose counts are those of train.",
        "nplm2003 score-interpolated --tokens results/brown/top16383/tokens --weights my-trigram/weights.json \\\n"
        "      --model my-trigram --output my-trigram/scores",
    )
    add_tokens(parser)
    parser.add_argument("--weights", type=Path, required=True, metavar="FILE", help="what `estimate-interpolated` made")
    add_scores(parser)

    parser = add_command(
        subparsers,
        "estimate-smoothed",
        _estimate_smoothed,
        "estimate an n-gram with smoothing older than Kneser-Ney",
        "Choose the parameters of an n-gram: none for maximum likelihood, k on validation for add-k, discounts from "
        "the counts of counts of train for Katz back-off and absolute discounting. --output holds them and the counts "
        "of counts; the model is made of it and of train.",
        "nplm2003 estimate-smoothed --tokens results/brown/top16383/tokens --kind katz --order 3 \\\n"
        "      --output my-katz/smoothing.json",
    )
    add_tokens(parser)
    parser.add_argument(
        "--kind", choices=SMOOTHED_KINDS, required=True, help="how probability is shared with unseen n-grams"
    )
    parser.add_argument(
        "--order", type=positive, required=True, metavar="N", help="n: N - 1 words of context, N from 2"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file of the parameters")

    parser = add_command(
        subparsers,
        "score-smoothed",
        _score_smoothed,
        "score every token with such an n-gram",
        "Write the natural-log probability of every token of train, valid and test under an n-gram of "
        "`estimate-smoothed`, whose counts are those of train. Under maximum likelihood it is -inf for a token that "
        "never followed its context in train.",
        "nplm2003 score-smoothed --tokens results/brown/top16383/tokens --smoothing my-katz/smoothing.json \\\n"
        "      --model my-katz --output my-katz/scores",
    )
    add_tokens(parser)
    parser.add_argument("--smoothing", type=Path, required=True, metavar="FILE", help="what `estimate-smoothed` made")
    add_scores(parser)


def _add_estimation(parser: argparse.ArgumentParser) -> None:
    """The options of lmplz, and where its model goes."""
    parser.add_argument(
        "--order", type=int, required=True, metavar="N", help="n: N - 1 words of context, N from 2 to 6"
    )
    parser.add_argument("--lmplz", type=Path, required=True, metavar="FILE", help="what `build-lmplz` made")
    parser.add_argument("--memory", type=_memory, default="256M", help="lmplz's memory for sorting (default: 256M)")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the model (model.arpa)")


def _add_classes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--classes", type=Path, required=True, metavar="FILE", help="what `learn-classes` made")


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[KMG]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory: give a number and K, M or G, such as 256M")
    return text


def _build_lmplz(options: argparse.Namespace) -> None:
    from nplm2003.ngram.lmplz import provide_lmplz

    print(f"{options.output}: {provide_lmplz(options.output)}", file=sys.stderr)


def _estimate_kneser_ney(options: argparse.Namespace) -> None:
    from nplm2003.ngram.kneser_ney import check_order, estimate
    from nplm2003.vocabulary import TokenStore

    check_order(options.order)
    estimate(TokenStore(options.tokens), options.order, options.lmplz, options.output, options.memory)


def _score_kneser_ney(options: argparse.Namespace) -> None:
    from nplm2003.files import description_path, require_checksum, sha256
    from nplm2003.ngram.kneser_ney import KneserNey
    from nplm2003.scoring import SPLITS
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    description = read_description(description_path(options.model_file), store, "estimate-kneser-ney", ARPA)
    require_checksum(options.model_file, sha256(options.model_file), description["checksum"])
    model = KneserNey(options.model_file, store)
    _write(options, store, {split: model.score(split) for split in SPLITS}, description)


def _learn_classes(options: argparse.Namespace) -> None:
    from nplm2003.ngram.classes import write_classes
    from nplm2003.vocabulary import TokenStore

    write_classes(TokenStore(options.tokens), options.classes, options.output)


def _estimate_class_based(options: argparse.Namespace) -> None:
    from nplm2003.files import description_path
    from nplm2003.ngram.class_based import ClassStream
    from nplm2003.ngram.classes import read_classes
    from nplm2003.ngram.kneser_ney import check_order, estimate
    from nplm2003.vocabulary import TokenStore

    check_order(options.order)
    store = TokenStore(options.tokens)
    class_of, classes = read_classes(options.classes, store)
    if description_path(options.output) == description_path(options.classes):
        raise UserError(f"{options.output} would write over the description of {options.classes}: name another output")
    stream = ClassStream(store, class_of)
    more = {"classes": classes["classes"], "classes_fingerprint": classes["fingerprint"]}
    estimate(stream, options.order, options.lmplz, options.output, options.memory, more, store.size)


def _score_class_based(options: argparse.Namespace) -> None:
    from nplm2003.files import description_path, require_checksum, sha256
    from nplm2003.ngram.class_based import ClassBased
    from nplm2003.ngram.classes import read_classes
    from nplm2003.scoring import SPLITS
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    class_of, classes = read_classes(options.classes, store)
    description = read_description(description_path(options.model_file), store, "estimate-class-based", ARPA)
    if description.get("classes_fingerprint") != classes["fingerprint"]:
        raise UserError(
            f"{options.model_file} was not estimated on the classes of {options.classes}: run `nplm2003 "
            "estimate-class-based` on these"
        )
    require_checksum(options.model_file, sha256(options.model_file), description["checksum"])
    model = ClassBased(options.model_file, store, class_of)
    _write(options, store, {split: model.score(split) for split in SPLITS}, description)


def _estimate_interpolated(options: argparse.Namespace) -> None:
    from nplm2003.files import write_json
    from nplm2003.ngram.interpolated import TrigramCounts, estimate
    from nplm2003.provenance import provenance
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    counts = TrigramCounts(store["train"], store.size)
    weights, tokens, history = estimate(counts, store)
    bins = [
        {"bin": q, "valid_tokens": int(n), "weights": vector.tolist()}
        for q, (n, vector) in enumerate(zip(tokens, weights, strict=True))
    ]
    write_json(
        options.output,
        {
            "format": 1,
            "vocabulary": store.fingerprint,
            "estimates": ["1/|V|", "p1(w)", "p2(w|v)", "p3(w|u,v)"],
            "bins": bins,
            "parameters": counts.parameters + 4 * len(bins),
            "history": history,
            "provenance": provenance({"order": 3}),
        },
    )
    print(f"{len(history) - 1} iterations of EM, {history[-1]:.4f} nats per validation token", file=sys.stderr)


def _score_interpolated(options: argparse.Namespace) -> None:
    from nplm2003.ngram.interpolated import InterpolatedTrigram, TrigramCounts, read_weights
    from nplm2003.scoring import SPLITS
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    counts = TrigramCounts(store["train"], store.size)
    weights, description = read_weights(options.weights, store, counts)
    model = InterpolatedTrigram(counts, weights)
    _write(options, store, {split: model.score(store, split) for split in SPLITS}, description)


def _estimate_smoothed(options: argparse.Namespace) -> None:
    from nplm2003.files import write_json
    from nplm2003.ngram.smoothed import count, estimate
    from nplm2003.provenance import provenance
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    counts = count(store, options.order)
    settings = {"kind": options.kind, "order": options.order}
    write_json(
        options.output,
        {
            "format": 1,
            "vocabulary": store.fingerprint,
            **settings,
            "parameters": counts.parameters,
            **estimate(options.kind, counts, store),
            "provenance": provenance(settings),
        },
    )


def _score_smoothed(options: argparse.Namespace) -> None:
    from nplm2003.files import misfit
    from nplm2003.ngram.smoothed import PARAMETERS, SmoothedNgram, count
    from nplm2003.scoring import SPLITS
    from nplm2003.vocabulary import TokenStore

    store = TokenStore(options.tokens)
    shape = {"kind": SMOOTHED_KINDS, "order": int}
    description = read_description(options.smoothing, store, "estimate-smoothed", shape)
    kind = description["kind"]
    try:
        if wrong := misfit(description, PARAMETERS[kind]):
            raise UserError(wrong)
        model = SmoothedNgram(kind, count(store, description["order"]), description)
    except UserError as error:
        raise UserError(f"{options.smoothing}: {error}: write it with `nplm2003 estimate-smoothed`") from error
    scores = {split: model.score(store, split) for split in SPLITS}
    _write(options, store, scores, description, impossible=kind == "maximum-likelihood")


def _write(
    options: argparse.Namespace,
    store: Any,
    scores: Mapping[str, Any],
    description: dict[str, Any],
    *,
    impossible: bool = False,
) -> None:
    """Write the scores of a model whose `description` holds the provenance of its estimation."""
    from nplm2003.provenance import provenance
    from nplm2003.scoring import write_scores

    configuration = {key: value for key, value in description.items() if key not in ("provenance", "vocabulary")}
    write_scores(
        options.output,
        scores,
        model=options.model,
        seed=0,
        vocabulary=store.fingerprint,
        provenance=provenance(configuration),
        impossible=impossible,
    )
