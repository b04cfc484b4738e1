"""The stage of the mixtures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nplm2003.commands.arguments import add_command, add_scores, add_tokens
from nplm2003.errors import UserError


def register(subparsers: Any) -> None:
    """Add `mix`."""
    parser = add_command(
        subparsers,
        "mix",
        _mix,
        "mix two or more models",
        "Mix the probabilities that two or more models give every token. The weights are equal (fixed), one vector "
        "learnt on validation (learnt), or one vector for each frequency bin of the context (binned). --output holds "
        "the scores of the mixture like those of any model; --weights-output the weights and the course of EM.",
        "nplm2003 mix --tokens results/brown/top16383/tokens --weights learnt --model my-mixture --seed 1 \\\n"
        "      --component my-net/scores --component my-trigram/scores --output mix/scores --weights-output mix/w.json",
    )
    add_tokens(parser)
    parser.add_argument(
        "--component",
        type=Path,
        action="append",
        required=True,
        metavar="FOLDER",
        help="folder of the scores of one model; give it two times or more",
    )
    parser.add_argument(
        "--weights",
        required=True,
        choices=("fixed", "learnt", "binned"),
        help="equal; learnt by EM on validation; learnt for each frequency bin of the last two words",
    )
    add_scores(parser)
    parser.add_argument(
        "--seed", type=int, required=True, metavar="K", help="seed of the networks in it, for the tables"
    )
    parser.add_argument("--weights-output", type=Path, required=True, metavar="FILE", help="JSON file of the weights")


def _mix(options: argparse.Namespace) -> None:
    from nplm2003.files import write_json
    from nplm2003.mixture import mix_scores
    from nplm2003.provenance import provenance
    from nplm2003.scoring import Scores, write_scores
    from nplm2003.vocabulary import TokenStore

    if len(options.component) < 2:
        raise UserError("a mixture needs two models or more: give --component once for each")
    store = TokenStore(options.tokens)
    parts = [Scores(folder) for folder in options.component]
    if parts[0].vocabulary != store.fingerprint:
        raise UserError(f"{parts[0].folder} was not scored on the tokens of {store.folder}: name the tokens it was on")
    scores, description = mix_scores(store, parts, options.weights)
    made = provenance({key: description[key] for key in ("weights", "components")})
    write_scores(
        options.output,
        {split: [values] for split, values in scores.items()},
        model=options.model,
        seed=options.seed,
        vocabulary=store.fingerprint,
        provenance=made,
        impossible=any(part.impossible for part in parts),
    )
    write_json(
        options.weights_output,
        {"model": options.model, "seed": options.seed, **description, "provenance": made},
    )
