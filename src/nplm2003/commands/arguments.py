"""What the sub-commands share: how one is declared, and the arguments that several of them take."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_command(
    subparsers: Any,
    name: str,
    run: Callable[[argparse.Namespace], None],
    summary: str,
    description: str,
    example: str,
) -> argparse.ArgumentParser:
    """Declare sub-command `name`: `summary` in the list of stages, `description` and `example` in its own --help."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=textwrap.fill(description, 96),
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_tokens(parser: argparse.ArgumentParser) -> None:
    """--tokens: the folder that `build-tokens` wrote."""
    parser.add_argument("--tokens", type=Path, required=True, metavar="FOLDER", help="the folder `build-tokens` wrote")


def add_study(parser: argparse.ArgumentParser) -> None:
    """--study: the resolved configuration."""
    parser.add_argument("--study", type=Path, required=True, metavar="FILE", help="the study.json of the corpus")


def add_results(parser: argparse.ArgumentParser) -> None:
    """--results: what was measured in it."""
    parser.add_argument(
        "--results", type=Path, required=True, metavar="FOLDER", help="results/CORPUS, or the policy's folder in it"
    )


def add_scores(parser: argparse.ArgumentParser) -> None:
    """--model and --output of a command that writes a folder of scores."""
    parser.add_argument("--model", required=True, metavar="NAME", help="name of the model in tables and figures")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="folder of the scores")


def positive(text: str, largest: int = 1_000_000_000) -> int:
    """An argparse type: a whole number from 1 to `largest`."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number of at least 1")
    if value > largest:
        raise argparse.ArgumentTypeError(f"{text:.40} is above {largest}, the highest possible")
    return value


def seed(text: str) -> int:
    """An argparse type: a whole number from 1 to 2^32 - 1, as in a configuration."""
    return positive(text, 2**32 - 1)
