"""Sub-commands of the explorer page: the worked example, and the page."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from nplm2003.commands.arguments import add_command, add_results, add_study, add_tokens, positive, seed
from nplm2003.errors import UserError


def _rate(text: str) -> float:
    """An argparse type: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a number above 0")
    return value


def register(subparsers: Any) -> None:
    """Add `add-sentence` and `write-explorer`."""
    parser = add_command(
        subparsers,
        "add-sentence",
        _add_sentence,
        "what one sentence more in train does to another one",
        "Go on training a network on one sentence alone, by its exact objective without dropout or weight decay, and "
        "write the log-probability of every word of another sentence before and after; also of random orders of its "
        "words and of sequences of other words of like frequency, as controls; and the same for the interpolated "
        "trigram with the sentence at the end of its training text. Unless --rate and --repeats say otherwise, the "
        "sentence is learnt as it would have been in train: once for each epoch of the network, at the rate that its "
        "preset has for one example halfway through that epoch. Without --sentence and --other the sentences are "
        "those of the paper's introduction, or two like them whose words the embedded corpus has.",
        "nplm2003 add-sentence --tokens results/brown/top16383/tokens --network results/brown/top16383/MLP9/seed1 \\\n"
        "      --trigram results/brown/top16383/interpolated-trigram/seed0/weights.json \\\n"
        "      --output results/brown/top16383/MLP9/seed1/added-sentence.json",
    )
    add_tokens(parser)
    parser.add_argument("--network", type=Path, required=True, metavar="FOLDER", help="the folder `train` wrote")
    parser.add_argument("--trigram", type=Path, metavar="FILE", help="the weights `estimate-interpolated` wrote")
    parser.add_argument("--sentence", metavar="TEXT", help="what is added: words separated by spaces")
    parser.add_argument("--other", metavar="TEXT", help="what is measured: words separated by spaces")
    parser.add_argument("--repeats", type=positive, metavar="R", help="updates (default: the epochs of the network)")
    parser.add_argument("--rate", type=_rate, help="rate of the summed gradient (default: as the preset has it)")
    parser.add_argument("--seed", type=seed, default=1, help="seed of the controls (default: 1); nothing else is drawn")
    parser.add_argument("--threads", type=positive, default=1, help="CPU threads to use (default: 1)")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the log-probabilities (JSON)")

    parser = add_command(
        subparsers,
        "write-explorer",
        _write_explorer,
        "a page to try the models in a browser",
        "Write one HTML file that runs the networks of the paper's form, the interpolated trigram and their mixtures "
        "in the browser, without a server: next words, neighbours, the map of word features, and what `add-sentence` "
        "found. It holds the training text as numbers: the licence of the corpus holds for the page.",
        "nplm2003 write-explorer --study results/brown/study.json --results results/brown \\\n"
        "      --output results/brown/explorer.html",
    )
    add_study(parser)
    add_results(parser)
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help="a network to show; may be repeated (default: one of each shape in the main table)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the page (HTML)")


def _add_sentence(options: argparse.Namespace) -> None:
    from nplm2003.added_sentence import add_sentence, choose_pair, own_rates
    from nplm2003.files import read_object, write_json
    from nplm2003.neural.preset import Preset
    from nplm2003.neural.scoring import load_paper_network, settle
    from nplm2003.ngram.interpolated import TrigramCounts, read_weights
    from nplm2003.provenance import provenance
    from nplm2003.vocabulary import TokenStore

    if (options.sentence is None) != (options.other is None):
        raise UserError("--sentence and --other go together: give both, or neither")
    store = TokenStore(options.tokens)
    model = load_paper_network(options.network / "weights.pt", store)
    path = options.network / "training.json"
    training = read_object(path, {"seed": int, "best_epoch": int, "word_features": str, "preset": dict})
    try:
        preset = Preset(**training["preset"])
    except (TypeError, UserError) as error:
        raise UserError(f"{path} is damaged, its preset: {error}: train the network again") from error
    model.C.requires_grad_(training["word_features"] == "learnt")
    epochs = options.repeats or training["best_epoch"]
    rates = own_rates(preset, epochs, len(store["train"]), model.direct)
    if options.rate is not None:
        rates = [options.rate] * epochs
    trigram = None
    if options.trigram is not None:
        counts = TrigramCounts(store["train"], store.size)
        trigram = (counts, read_weights(options.trigram, store, counts)[0])
    settle(options.threads)
    sentence, other = choose_pair(store) if options.sentence is None else (options.sentence, options.other)
    found = add_sentence(store, model, preset, rates, sentence, other, seed=options.seed, trigram=trigram)
    made = provenance({"network_seed": training["seed"]}, threads=options.threads)
    write_json(options.output, {"format": 1, "vocabulary": store.fingerprint, **found, "provenance": made})


def _write_explorer(options: argparse.Namespace) -> None:
    from nplm2003.explorer import write_explorer
    from nplm2003.outcomes import Outcomes

    write_explorer(Outcomes(options.study, options.results), options.output, options.model)
