"""The command line: one sub-command per stage. What the Snakemake rules call is what a person can call."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from nplm2003 import __version__
from nplm2003.commands import corpus, explorer, mixture, neural, ngram, results
from nplm2003.errors import UserError

REGISTER = (corpus.register, ngram.register, neural.register, mixture.register, results.register, explorer.register)

DESCRIPTION = """\
Reproduce the perplexity tables of Bengio et al. (2003), stage by stage.

Most people run `snakemake --cores all` and never call this directly; each rule of the workflow prints the
command it runs (`snakemake -p`), and every such command works by hand as well.
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser with every sub-command registered; each has `run`, a function of the parsed arguments."""
    parser = argparse.ArgumentParser(
        prog="nplm2003", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"nplm2003 {__version__}")
    subparsers = parser.add_subparsers(title="stages", metavar="STAGE", required=True)
    for register in REGISTER:
        register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command. Status 0: done; 1: bad input, said in one line; 130: interrupted."""
    options = build_parser().parse_args(arguments)
    try:
        options.run(options)
    except BrokenPipeError:
        # The reader of our output (head, less) went away: that is its choice, not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (UserError, OSError) as error:  # OSError: disk full, folder not writable, file gone
        print(f"nplm2003: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(
            f"nplm2003: error: the memory is not enough ({error}): ask for less, or use a larger machine",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("nplm2003: interrupted; nothing half-written was left, run the same command again", file=sys.stderr)
        return 130
    return 0
