"""What the rules tell the stages."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nplm2003.plan import corpus_files, corpus_options, download, network_options, options

POLICY = {"count_on": "train", "cut": "rank", "size": 50, "lowercase": False, "marks": True, "split_clitics": False}
POLICY |= {"numbers": True, "proper_nouns": False}


def a_study(**corpus: Any) -> dict[str, Any]:
    return {"name": "mine", "corpus": corpus, "policies": [{"policy": "other"} | POLICY, {"policy": "p"} | POLICY]}


def test_options_leave_out_what_is_not_given() -> None:
    assert options(order=5, direct=True, lowercase=False, file=None, train_file="a b.txt", hidden=0) == (
        "--order 5 --direct --train-file 'a b.txt' --hidden 0"
    )


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_options_come_out_of_a_shell_as_they_went_in(value: str) -> None:
    assert shlex.split(options(file=value)) == ["--file", value]


def test_a_fetched_corpus_is_read_from_where_it_was_put() -> None:
    study = a_study(source="brown", split={"train": 800, "valid": 100})
    assert corpus_files(study["corpus"]) == ["data/downloads/brown.zip"]
    assert corpus_options(study, "p") == (
        "--corpus mine --source brown --file data/downloads/brown.zip --train 800 --valid 100 "
        "--policy p --count-on train --cut rank --size 50 --marks --numbers"
    )


def test_a_text_is_read_from_the_files_of_the_configuration() -> None:
    files = {"train_file": "a.txt", "valid_file": "b.txt", "test_file": "c.txt"}
    study = a_study(source="text", tokenizer="treebank", split=None, file=None, **files)
    assert corpus_files(study["corpus"]) == ["a.txt", "b.txt", "c.txt"]
    assert corpus_options(study, "p").startswith(
        "--corpus mine --source text --train-file a.txt --valid-file b.txt --test-file c.txt --tokenizer treebank "
        "--policy p "
    )


def test_a_folder_of_ap_is_read_from_its_files_of_the_months(tmp_path: Path) -> None:
    for month in ("199412", "199501", "199502"):
        (tmp_path / f"apw_eng_{month}.gz").touch()
    study = a_study(source="ap", folder=str(tmp_path), first_month="1995-01", split={"train": 0.8, "valid": 0.1})
    assert download(study["corpus"]) is None
    assert corpus_files(study["corpus"]) == [str(tmp_path / f"apw_eng_{month}.gz") for month in ("199501", "199502")]
    assert f"--source ap --folder {tmp_path} --first-month 1995-01 --train 0.8" in corpus_options(study, "p")


def test_a_policy_may_be_changed() -> None:
    study = a_study(source="embedded", split={"train": 0.7, "valid": 0.1})
    plain, changed = corpus_options(study, "p"), corpus_options(study, "p", cut="frequency", size=0)
    assert "--cut frequency --size 0" in changed and "--cut frequency --size 0" not in plain


def test_an_embedded_corpus_needs_no_file() -> None:
    study = a_study(source="embedded", split={"train": 0.7, "valid": 0.1})
    assert corpus_files(study["corpus"]) == []
    assert "file" not in corpus_options(study, "p")


def test_the_shape_of_a_network() -> None:
    row: dict[str, Any] = {"model": "MLP3", "order": 5, "hidden": 0, "features": 60, "direct": True, "seeds": [1]}
    row |= {"preset": "modern", "word_features": "learnt", "outputs": "words", "classes": None}
    row |= {"architecture": "mlp", "options": None}
    assert network_options(row, None) == "--order 5 --hidden 0 --features 60 --direct --preset modern"
    row["word_features"] = "svd"
    assert network_options(row, None).endswith("--preset modern --word-features svd")
    row["word_features"] = "word2vec"
    assert network_options(row, None).endswith("--preset modern --word-features word2vec")
    row |= {"word_features": "learnt", "outputs": "tree", "classes": 5}
    assert network_options(row, None).endswith("--preset modern --outputs tree")
    other = {**row, "architecture": "lstm", "options": "rate=0.01", "outputs": "words"}
    assert network_options(other, None).endswith("--preset modern --architecture lstm --options rate=0.01")
    # With the defaults, so that a network is trained again when one of them changes.
    other |= {"architecture": "transformer", "options": "layers=3"}
    assert network_options(other, None).endswith("--options 'rate=0.001 layers=3 heads=4'")
    other |= {"options": None}
    assert network_options(other, None).endswith("--options 'rate=0.001 layers=2 heads=4'")
    two = {"scheme": "data", "processes": 2}
    assert network_options(other, two) == network_options(other, None)
    assert network_options(row, two).endswith("--preset modern --outputs tree --processes 2 --parallel data")
