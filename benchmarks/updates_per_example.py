"""How many examples may share one update of the paper's gradient?

The paper updates after every example (section 3). The `paper` preset sums the gradients of K examples into one update,
at the same rate per example, which is K times less work on every weight. This trains one epoch with several K, all else
equal, and prints a table in Markdown:

    python benchmarks/updates_per_example.py --train 20000 --updates 1 8 32 128

The corpus is the embedded one, so nothing is downloaded; numbers differ a little between versions of Python.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))  # also runs in a clone that is not installed

from nplm2003.corpora.embedded import open_embedded  # noqa: E402
from nplm2003.neural.preset import Preset  # noqa: E402
from nplm2003.neural.training import train  # noqa: E402
from nplm2003.vocabulary import Policy, Split, TokenStore, build_tokens  # noqa: E402

VALID = 10_000
VOCABULARY = 3_000
NETWORK = {"order": 5, "hidden": 100, "features": 30, "direct": False}  # MLP9 of the paper


def main() -> None:
    """Train with each K and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=20_000, metavar="N", help="training tokens (default: 20000)")
    parser.add_argument(
        "--updates", type=int, nargs="+", default=[1, 8, 32, 128], metavar="K", help="the first is the reference"
    )
    options = parser.parse_args()

    configured = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))["presets"]["paper"]
    paper = Preset(**configured | {"epochs_direct": 1, "epochs_without_direct": 1, "matmul": "highest"})
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        policy = Policy("top3000", "stream", "rank", VOCABULARY)
        build_tokens(open_embedded(), "embedded", policy, Split(options.train, VALID), tokens, {})
        store = TokenStore(tokens)
        print(f"{options.train:,} tokens of train, {VALID:,} of valid, |V| {VOCABULARY:,}, rate {paper.rate:g}\n")
        print("| K | updates | valid after one epoch | against the first | seconds |")
        print("|--:|--:|--:|--:|--:|", flush=True)
        reference = 0.0
        for k in options.updates:
            preset = dataclasses.replace(paper, batch=k)
            summary = train(store, **NETWORK, preset=preset, seed=1, output=Path(folder) / str(k))
            valid = summary["valid_perplexity"]
            reference = reference or valid
            print(
                f"| {k} | {-(-options.train // k):,} | {valid:.2f} | {100 * (valid / reference - 1):+.2f} % "
                f"| {summary['seconds']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
