"""Stages of the corpus: fetch it, build its token store, and cut that to a share of the training tokens."""

from __future__ import annotations

import argparse
import os
from fractions import Fraction
from pathlib import Path

from nplm2003.commands.arguments import add_command, add_tokens
from nplm2003.corpora import SOURCES, Corpus
from nplm2003.corpora.news import Months
from nplm2003.errors import UserError


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `fetch`, `build-tokens` and `cut-tokens`."""
    from nplm2003.corpora.fetch import DATASETS
    from nplm2003.corpora.text import TOKENIZERS
    from nplm2003.vocabulary import COUNT_ON, CUTS

    fetch = add_command(
        subparsers,
        "fetch",
        run_fetch,
        "fetch a corpus",
        "Fetch a corpus whose address, size and checksum are pinned, from its public address or from a mirror. A "
        "broken download is resumed; the output has the right checksum or is not there. Proxy variables are honoured.",
        "nplm2003 fetch --corpus brown --output data/brown.zip --mirror ~/nltk_data",
    )
    fetch.add_argument("--corpus", required=True, choices=sorted(DATASETS), help="which corpus")
    fetch.add_argument("--output", required=True, type=Path, metavar="FILE", help="where the corpus goes")
    fetch.add_argument(
        "--mirror",
        metavar="M",
        help="URL prefix, folder of data (corpora/brown.zip, uci/reuters21578.tar.gz), or the file itself (default: "
        "NPLM2003_MIRROR)",
    )

    build = add_command(
        subparsers,
        "build-tokens",
        run_build_tokens,
        "turn a corpus into token ids",
        "Turn a corpus into token ids under one vocabulary policy. The output folder holds train.npy, valid.npy and "
        "test.npy (ids), vocabulary.tsv (id, word, count in train, count in the stream; id 0 is <rare>, the symbol all "
        "other words are merged into) and corpus.json (statistics and policy).",
        "nplm2003 build-tokens --corpus brown --source brown --file data/brown.zip --train 800000 --valid 200000 \\\n"
        "      --policy top16383 --count-on stream --cut rank --size 16383 --output results/brown/top16383/tokens",
    )
    build.add_argument("--corpus", required=True, metavar="NAME", help="the corpus's name in results and tables")
    build.add_argument(
        "--source",
        required=True,
        choices=tuple(SOURCES),
        help="a file that `fetch` brings (brown, reuters, nltk-reuters, abc), the reference text that every CPython "
        "carries, your own UTF-8 text, or your folder of licensed AP newswire",
    )
    build.add_argument("--file", type=Path, help="the corpus in one file, to be split; text may be packed (.gz)")
    build.add_argument("--folder", type=Path, help="of source ap: where its files are, at any depth")
    for month in ("first", "last"):
        build.add_argument(f"--{month}-month", metavar="YYYY-MM", help=f"of source reuters or ap: the {month} month")
    for split in ("train", "valid", "test"):
        build.add_argument(f"--{split}-file", type=Path, metavar="FILE", help=f"a file of its own for {split}")
    build.add_argument("--tokenizer", choices=sorted(TOKENIZERS), help="of source text (default: whitespace)")
    for split, rest in (("train", ""), ("valid", ""), ("test", " (default: the rest)")):
        build.add_argument(
            f"--{split}", type=_share, metavar="X", help=f"tokens (800000) or share (0.8) of {split}{rest}"
        )
    build.add_argument("--policy", required=True, metavar="NAME", help="the policy's name in results and tables")
    build.add_argument("--count-on", required=True, choices=COUNT_ON, help="count words on all tokens or on train")
    build.add_argument("--cut", required=True, choices=CUTS, help="keep the top words, or words seen often enough")
    build.add_argument(
        "--size", required=True, type=int, metavar="N", help="rank: |V|, <rare> included; frequency: keep counts > N"
    )
    build.add_argument("--lowercase", action="store_true", help="lower the case of every word")
    build.add_argument("--marks", action="store_true", help="put a symbol at the end of each paragraph and text")
    build.add_argument("--split-clitics", action="store_true", help="split n't, 's, 'll, ... off as the Treebank does")
    build.add_argument("--numbers", action="store_true", help="a symbol for each numeric form (<number>, <year>, ...)")
    build.add_argument(
        "--proper-nouns", action="store_true", help="one symbol for all proper nouns, told by their case"
    )
    build.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder of the tokens")

    cut = add_command(
        subparsers,
        "cut-tokens",
        run_cut_tokens,
        "keep a share of the training tokens",
        "Copy a folder of tokens with a share of its training tokens, the last ones, next to validation. Vocabulary, "
        "validation and test stay as they are, so that perplexities can be compared across shares.",
        "nplm2003 cut-tokens --tokens results/brown/top16383/tokens --share 1/16 \\\n"
        "      --output results/brown/top16383-train-1-16/tokens",
    )
    add_tokens(cut)
    cut.add_argument("--share", required=True, type=_fraction, metavar="X", help="share of train that is kept (1/16)")
    cut.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder of the cut tokens")


def _share(text: str) -> int | float:
    """A number of tokens, or a fraction of the stream where it is written with a point."""
    try:
        value = float(text) if "." in text else int(text)
    except ValueError:
        value = 0
    if value <= 0 or (isinstance(value, float) and value >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of tokens (800000) nor a fraction (0.8)")
    return value


def _fraction(text: str) -> Fraction:
    """A share between 0 and 1, such as 1/16 or 0.25."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1, such as 1/16")
    return value


def run_fetch(options: argparse.Namespace) -> None:
    """Fetch the corpus that the options name."""
    from nplm2003.corpora.fetch import DATASETS, fetch

    # An empty variable or config key means no mirror.
    mirror = options.mirror or os.environ.get("NPLM2003_MIRROR") or None
    fetch(DATASETS[options.corpus], options.output, mirror)
    print(f"{options.output}: the {options.corpus} corpus, checksum right")


def run_build_tokens(options: argparse.Namespace) -> None:
    """Build the token store that the options describe; print what became of the documents, and its statistics."""
    from nplm2003.provenance import provenance
    from nplm2003.vocabulary import Policy, Split, build_tokens

    files = [path for path in (options.train_file, options.valid_file, options.test_file) if path is not None]
    months = (options.first_month, options.last_month)
    if files and (options.source != "text" or len(files) < 3 or options.file):
        raise UserError("--train-file, --valid-file and --test-file go together, with source text and without --file")
    if options.source in ("embedded", "ap"):
        if options.file is not None:
            raise UserError(f"source {options.source} reads no --file: leave it out, or use source text")
    elif not files and options.file is None:
        raise UserError(f"source {options.source} needs --file: name the corpus's file")
    if (options.folder is None) == (options.source == "ap"):
        raise UserError("--folder is for source ap, which needs it: the folder that holds the AP files")
    if any(months) and options.source not in ("reuters", "ap"):
        raise UserError("--first-month and --last-month are for source reuters or ap: leave them out")
    if options.tokenizer and options.source != "text":
        raise UserError(f"--tokenizer is for source text; source {options.source} has its own tokens: leave it out")
    if files and (options.train or options.valid or options.test):
        raise UserError("--train, --valid and --test split one stream; with a file for each split leave them out")
    if not files and not (options.train and options.valid):
        raise UserError("give --train and --valid: how many tokens, or what share of the stream, each has")

    policy = Policy(
        name=options.policy,
        count_on=options.count_on,
        cut=options.cut,
        size=options.size,
        lowercase=options.lowercase,
        marks=options.marks,
        split_clitics=options.split_clitics,
        numbers=options.numbers,
        proper_nouns=options.proper_nouns,
    )
    corpus = _open(options, files, months)
    split = None if files else Split(options.train, options.valid, options.test)
    # Files by their names alone: the checksum says which they were, and results hold no paths of this machine.
    configuration = {
        name: value.name if isinstance(value, Path) else value
        for name, value in vars(options).items()
        if name not in ("run", "output")
    }
    result = build_tokens(corpus, options.corpus, policy, split, options.output, provenance(configuration))
    if corpus.documents:
        print("\n".join(corpus.documents.lines()))
    tokens = " / ".join(f"{count:,}" for count in result["tokens"].values())
    merged = " / ".join(f"{100 * share:.1f}" for share in result["merged_share"].values())
    print(
        f"{options.corpus}, {policy.name}: {tokens} tokens (train / valid / test), |V| {result['vocabulary_size']:,}, "
        f"{merged} % of them merged"
    )
    if result["unused_tokens"]:
        print(f"{result['unused_tokens']:,} tokens after test are left out, as the split says")


def _open(options: argparse.Namespace, files: list[Path], months: Months) -> Corpus:
    """The corpus that the options name."""
    from nplm2003.corpora.ap import open_ap
    from nplm2003.corpora.brown import open_brown
    from nplm2003.corpora.embedded import open_embedded
    from nplm2003.corpora.nltk_news import open_abc, open_nltk_reuters
    from nplm2003.corpora.reuters import open_reuters
    from nplm2003.corpora.text import open_text

    if options.source == "embedded":
        return open_embedded()
    if options.source == "text":
        return open_text(files or [options.file], options.tokenizer or "whitespace")
    if options.source == "ap":
        return open_ap(options.folder, months)
    if options.source == "reuters":
        return open_reuters(options.file, months)
    readers = {"brown": open_brown, "nltk-reuters": open_nltk_reuters, "abc": open_abc}
    return readers[options.source](options.file)


def run_cut_tokens(options: argparse.Namespace) -> None:
    """Cut the training tokens as the options say and print how many are left."""
    from nplm2003.provenance import provenance
    from nplm2003.vocabulary import TokenStore, cut_tokens

    store = TokenStore(options.tokens)
    made = provenance({"share": str(options.share)}, tokens=store.statistics["provenance"])
    result = cut_tokens(store, options.share, options.output, made)
    print(f"{result['tokens']['train']:,} of {store.statistics['tokens']['train']:,} training tokens kept")
