"""Hostile input: texts and archives made to break out, to fill the memory, or to pass for symbols of the models."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from faults import Record, refused, run
from stages import Study

from nplm2003.corpora import Passage
from nplm2003.corpora.brown import read_brown
from nplm2003.corpora.fetch import DATASETS
from nplm2003.corpora.text import read_file
from nplm2003.errors import UserError
from nplm2003.files import read_json
from nplm2003.scoring import SPLITS, Scores

MEBIBYTE = 1 << 20


def models(study: Study, *stages: str) -> dict[str, float]:
    """Build, estimate and score what needs no more than a text; the test perplexities."""
    stages = stages or ("trigram", "trigram scores", "kneser-ney", "kneser-ney scores", "network", "scores")
    study.make("tokens", *stages)
    folders = [stage.split()[0] for stage in stages if stage.endswith("scores") and stage != "scores"]
    folders = [{"trigram": "trigram", "kneser-ney": "kn"}[name] for name in folders] + ["network"] * (
        "scores" in stages
    )
    return {name: float(np.exp(-Scores(study.folder / name / "scores")["test"].mean(dtype="f8"))) for name in folders}


def test_tokens_that_look_like_symbols(study: Study, record: Record) -> None:
    text = study.folder / "text.txt"
    plain = text.read_text(encoding="utf-8")
    expected = models(study)
    before = {name: Scores(study.folder / name / "scores")["test"].tolist() for name in ("trigram", "kn", "network")}
    # The same text with three words renamed; each has a count of its own, so that the order of the words stays.
    for word, symbol in (("the", "<s>"), ("cat", "</s>"), ("sees", "<unk>")):
        plain = plain.replace(f"{word} ", f"{symbol} ")
    text.write_text(plain, encoding="utf-8")
    assert models(study) == expected
    after = {name: Scores(study.folder / name / "scores")["test"].tolist() for name in ("trigram", "kn", "network")}
    assert after == before
    assert {"<s>", "</s>", "<unk>"} <= set((study.folder / "tokens" / "vocabulary.tsv").read_text().split())
    record(
        "tokens that look like <s>, </s>, <unk>",
        "three words of the text renamed; trigram, Kneser-Ney and network estimated and scored",
        "read as words like any other: lmplz sees ids alone",
        "nothing: every score has the bits it had under the old names",
    )


@pytest.mark.parametrize(
    ("fault", "how", "content", "said"),
    [
        (
            "NUL byte in a text",
            "one in its second line",
            b"a b\nc \0d\n" * 999,
            "line 2, character 3 of the line: a NUL",
        ),
        ("reserved symbol in a text", "<rare> as a word", b"a b <rare> c\n" * 999, "a reserved symbol"),
        ("empty corpus", "a text of no bytes", b"", "holds no words"),
        ("corpus of blank lines", "white space alone", b" \n\t\n" * 99, "holds no words"),
        ("no UTF-8", "a text in Latin-1", "café\n".encode("latin-1") * 999, "not UTF-8"),
        ("vocabulary larger than the text", "three different words, |V| 30", b"a b c\n" * 999, "needs 29 words"),
        ("corpus shorter than its splits", "a text of 30 tokens", b"a b c d e f\n" * 5, "the split asks for"),
    ],
)
def test_refused_text(study: Study, record: Record, fault: str, how: str, content: bytes, said: str) -> None:
    before = study.contents()
    text = study.folder / "text.txt"
    good = text.read_bytes()
    text.write_bytes(content)
    line = refused(*study.command("tokens"))
    assert said in line
    text.write_bytes(good)
    assert study.contents() == before
    record(fault, how, line, "nothing: refused before anything was written")


def test_a_token_of_a_megabyte(study: Study, record: Record) -> None:
    text = study.folder / "text.txt"
    long = "x" * MEBIBYTE
    text.write_text(text.read_text(encoding="utf-8").replace("the ", f"{long} ", 3), encoding="utf-8")
    found = models(study)
    assert all(1 < value < 30 for value in found.values())
    # As a word of V, too.
    text.write_text(text.read_text(encoding="utf-8").replace(" a ", f" {long} "), encoding="utf-8")
    assert all(1 < value < 30 for value in models(study).values())
    assert long in (study.folder / "tokens" / "vocabulary.tsv").read_text().split("\t")
    record(
        "token of 1 MB",
        "three times in the text (merged as rare), then often enough to be a word of V; all models",
        f"read as a word like any other; perplexities {', '.join(f'{value:.1f}' for value in found.values())}",
        "nothing: models and scores as of any text",
    )


def test_one_repeated_word(study: Study, record: Record) -> None:
    (study.folder / "text.txt").write_text("word " * 3_000, encoding="utf-8")
    run(*study.command("tokens", size="2"))
    stages = ("trigram", "trigram scores", "kneser-ney", "kneser-ney scores", "network", "scores", "evaluation")
    for stage in stages:
        run(*study.command(stage))
    size = read_json(study.folder / "tokens" / "corpus.json")["vocabulary_size"]
    perplexity = read_json(study.folder / "network" / "evaluation.json")["perplexity"]
    assert size == 2 and 1 <= perplexity["test"] < 1.5
    line = refused(*study.command("classes"))
    record(
        "corpus of one repeated word, vocabulary of one word",
        "3,000 times the same word, |V| 2 with the merged symbol; all models, and word classes",
        f"scored (perplexity of the network {perplexity['test']:.3f}); classes: {line}",
        "nothing: models and scores as of any text",
    )


def test_a_corpus_shorter_than_the_order(study: Study, record: Record) -> None:
    (study.folder / "text.txt").write_text("a b a c b a", encoding="utf-8")
    build = study.command("tokens", size="3", train="2", valid="2")
    run(*build)
    line = refused(*study.command("kneser-ney"))
    assert "too few for n-grams of order 3" in line
    for stage in ("trigram", "trigram scores", "network", "scores"):
        run(*study.command(stage))
    scores = Scores(study.folder / "network" / "scores")
    assert [len(scores[split]) for split in SPLITS] == [2, 2, 2]
    record(
        "corpus shorter than n",
        "2 tokens of train for trigrams",
        line,
        "nothing: trigram and network pad the context and score all 6 tokens",
    )


# --- archives --------------------------------------------------------------------------------------------------------


def test_a_gzip_bomb(study: Study, tmp_path: Path, record: Record) -> None:
    before = study.contents()
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb") as stream:  # one line of 128 MiB
        for _ in range(128):
            stream.write(b"x" * MEBIBYTE)
    lines_bomb = tmp_path / "lines.gz"
    with gzip.open(lines_bomb, "wb") as stream:
        for _ in range(128):
            stream.write((b"x" * 4_095 + b"\n") * 256)
    # In a process that may not have the memory which the bomb would fill.
    command = [*study.command("tokens"), "--file", str(bomb)]
    done = subprocess.run(
        [sys.executable, "-m", "nplm2003", *command],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (400 * MEBIBYTE, 400 * MEBIBYTE)),
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    with pytest.raises(UserError, match="unpacks to more than 200 times its size"):
        for _ in read_file(lines_bomb, "whitespace"):
            pass
    assert study.contents() == before
    record(
        "gzip bomb",
        f"a text of {bomb.stat().st_size:,} bytes that unpacks to 128 MiB, as one line and as many; "
        "400 MiB of memory allowed",
        done.stderr.strip(),
        "nothing: refused before anything was written",
    )


def hostile_zip(path: Path) -> None:
    """An archive with the text of Brown, entries that would leave the folder, and a bomb."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("brown/ca01", "the/at cat/nn sat/vbd ./.\n")
        archive.writestr("../../pwned", "x")
        archive.writestr("/tmp/pwned-by-a-drill/ca02", "escaped/nn ./.\n")
        archive.writestr("brown/bomb", b"\0" * (64 * MEBIBYTE))


def test_a_hostile_zip(study: Study, tmp_path: Path, record: Record) -> None:
    before = study.contents()
    path = tmp_path / "a" / "b" / "brown.zip"
    path.parent.mkdir(parents=True)
    hostile_zip(path)
    output = str(study.folder / "none")
    options = (
        "--corpus",
        "x",
        "--train",
        "3",
        "--valid",
        "3",
        "--policy",
        "p",
        "--count-on",
        "stream",
        "--cut",
        "rank",
    )
    line = refused("build-tokens", "--source", "brown", "--file", path, *options, "--size", "3", "--output", output)
    assert "is not the pinned brown corpus" in line
    # Even one that had the right checksum: its texts are read in place, and nothing is written.
    words = [piece.words for piece in read_brown(path) if isinstance(piece, Passage)]
    assert words[0] == ["the", "cat", "sat", "."]
    assert not Path("/tmp/pwned-by-a-drill").exists() and not list(tmp_path.rglob("pwned*"))
    assert study.contents() == before
    record(
        "zip with entries that escape the folder, and a bomb",
        "as brown.zip: ../../pwned, an absolute path, 64 MiB of zeros; read by the command, then by the reader itself",
        line,
        "nothing: refused by its checksum; the reader unpacks nothing to disk and opens the texts of Brown alone",
    )


def test_downloads_are_pinned_and_https(record: Record) -> None:
    for dataset in DATASETS.values():
        assert dataset.url.startswith("https://") and dataset.bytes > 0
        assert all(one.startswith(("sha256:", "md5:")) for one in dataset.checksums.split())
    record(
        "download from another place",
        "the address, size and checksum of every corpus looked at",
        f"all {len(DATASETS)} come over https (or from the mirror that the user names), size and checksum pinned",
        "nothing: what has another checksum is removed",
    )


# --- configuration ---------------------------------------------------------------------------------------------------


def test_settings_no_machine_can_do(study: Study, record: Record) -> None:
    before = study.contents()
    line = refused(*study.command("network", features="999999999", output="/none"))
    presets = read_json(study.folder / "presets.json")["presets"]["quick"]
    lines = []
    for number, change in enumerate(
        (
            {"batch": 10**12},
            {"batch": True},
            {"objective": "sampled-softmax", "noise_words": 10**12},
            {"objective": "sampled-softmax", "noise_words": 9, "noise_power": 400},
        )
    ):
        path = study.folder.parent / f"{number}.json"
        path.write_text(json.dumps({"presets": {"quick": presets | change}}), encoding="utf-8")
        command = study.command("network", output="/none")
        command[command.index("--preset-file") + 1] = str(path)
        lines.append(refused(*command))
    for content in ({"presets": {"quick": None}}, {"presets": None}, []):
        path.write_text(json.dumps(content), encoding="utf-8")
        lines.append(refused(*command))
    assert not (study.folder / "none").exists()
    assert study.contents() == before
    record(
        "settings that no machine can do",
        "a billion features; batch or noise words of 10^12, batch true, noise power 400, presets that are null",
        line,
        "nothing: refused before anything was written",
    )


def test_divergence(study: Study, record: Record) -> None:
    before = study.contents()
    content = read_json(study.folder / "presets.json")
    quick = content["presets"]["quick"]
    content["presets"] |= {"nan": quick | {"rate": 1e30}, "wild": quick | {"rate": 2000.0}}
    (study.folder / "presets.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    lines = [refused(*study.command("network", preset=preset)) for preset in ("nan", "wild")]
    assert all("training diverged in epoch 1" in line for line in lines)
    study.make("network")
    assert {name: value for name, value in study.contents().items() if name != "presets.json"} == {
        name: value for name, value in before.items() if name != "presets.json"
    }
    record(
        "NaN loss, and divergence without NaN",
        "learning rates of 10^30 and 2,000 into the folder of a trained network, then the right one",
        lines[0],
        "nothing: the network that was there stayed, and trained again has the same bytes",
    )
