"""Where this study departs from the paper, and where the paper leaves the choice open: a numbered list.

Every table names the numbers that apply to each of its rows, so that a difference in perplexity can be traced. The
numbers are permanent: a new departure gets the next free one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nplm2003.ngram import SMOOTHED_KINDS
from nplm2003.published import stands_in

Mapped = Mapping[str, Any]

PAPER_WEIGHT_DECAY = {"table1_brown": 1e-4, "table2_apnews": 1e-5}  # section 4.2
PAPER_EPOCHS = {"epochs_direct": 10, "epochs_without_direct": 20}  # section 4.2, Brown
AP_EPOCHS = {"epochs_direct": 5, "epochs_without_direct": 5}  # section 4.2, AP News
AP_SIZE = 17_964  # |V| of AP News, section 4


@dataclass(frozen=True)
class Departure:
    """One way in which a row differs from the paper.

    `kind` is `different` (the paper does something else) or `open` (the paper does not say). `applies(study, row)`
    tells whether it holds for a row that is not a mixture; a mixture inherits those of its parts.
    """

    number: int
    kind: str
    title: str
    explanation: str
    applies: Callable[[Mapped, Mapped], bool]

    @property
    def name(self) -> str:
        """How tables refer to it: D1, D2, ..."""
        return f"D{self.number}"


def _published(study: Mapped) -> str | None:
    """The name of the published table the study stands beside."""
    return Path(study["published"]).stem if study["published"] else None


def _policy(study: Mapped) -> Mapped:
    return next(policy for policy in study["policies"] if policy["policy"] == study["policy"])


def _on_ap(study: Mapped) -> bool:
    """Whether the study follows the paper's experiment on AP News and not the one on Brown."""
    return _published(study) == "table2_apnews"


def _as_paper(study: Mapped) -> bool:
    """Whether the vocabulary policy is the one of section 4. On Brown: types seen 3 times or less merged, marks, case
    kept; on AP News: the most frequent words, lower case, symbols for numbers and proper nouns."""
    policy = _policy(study)
    if _on_ap(study):
        return (policy["cut"], policy["size"]) == ("rank", AP_SIZE) and all(
            policy[key] for key in ("lowercase", "numbers", "proper_nouns")
        )
    return (
        policy["cut"] == "frequency"
        and policy["size"] == 3
        and policy["marks"]
        and not policy["lowercase"]
        and not (policy["split_clitics"] or policy["numbers"] or policy["proper_nouns"])
    )


def _is(kind: str) -> Callable[[Mapped, Mapped], bool]:
    return lambda study, row: row["kind"] == kind


def _preset(test: Callable[[Mapped], bool]) -> Callable[[Mapped, Mapped], bool]:
    """A predicate on the training preset of a network."""
    return lambda study, row: row["kind"] == "network" and test(study["presets"][row["preset"]])


def _decay_differs(study: Mapped, row: Mapped) -> bool:
    paper = PAPER_WEIGHT_DECAY.get(_published(study) or "", PAPER_WEIGHT_DECAY["table1_brown"])
    return _preset(lambda preset: float(preset["weight_decay"]) != paper)(study, row)


def _epochs_differ(study: Mapped, row: Mapped) -> bool:
    paper = AP_EPOCHS if _on_ap(study) else PAPER_EPOCHS
    return _preset(lambda preset: any(preset[name] != epochs for name, epochs in paper.items()))(study, row)


DEPARTURES = (
    Departure(
        1,
        "different",
        "NLTK's copy of Brown",
        "The copy of the Brown corpus in NLTK has 1,161,192 tokens, without marks for texts and paragraphs; the "
        "paper's stream has 1,181,041. With one mark per paragraph and text NLTK's copy gives 1,177,359. The split of "
        "800,000 / 200,000 / the rest therefore falls on slightly different text, and test is shorter.",
        lambda study, row: study["corpus"]["source"] == "brown",
    ),
    Departure(
        2,
        "different",
        "Another corpus",
        "The study runs on a corpus that the paper did not use: no published number stands beside its rows.",
        lambda study, row: study["corpus"]["source"] not in ("brown", "ap") and _published(study) is None,
    ),
    Departure(
        3,
        "different",
        "Vocabulary policy",
        "On Brown the paper merges the types seen 3 times or less, keeps marks for paragraphs and texts, and arrives "
        "at 16,383 symbols; on AP News it keeps the most frequent words in lower case, with symbols for numbers and "
        "proper nouns, 17,964 symbols in all. The vocabulary of this study is cut by another rule, or from another "
        "stream; the table of policies shows what the choice is worth.",
        lambda study, row: not _as_paper(study),
    ),
    Departure(
        4,
        "open",
        "Where the cut is counted",
        "The paper does not say whether the frequency cut was counted on the whole stream or on train alone. Counted "
        "on the whole stream, words that occur only in validation or test are in the vocabulary.",
        lambda study, row: _policy(study)["count_on"] == "stream",
    ),
    Departure(
        5,
        "different",
        "KenLM instead of SRILM",
        "The back-off n-grams are KenLM's interpolated modified Kneser-Ney without pruning; the paper used SRILM and "
        "does not give its options. In word n-grams the mass of unseen words is shared equally by the words of the "
        "vocabulary that never occur in train; in class-based ones fallback discounts stand in where classes are too "
        "frequent to compute them.",
        lambda study, row: row["kind"] in ("kneser-ney", "class-based"),
    ),
    Departure(
        6,
        "open",
        "Contexts without counts in the interpolated trigram",
        "Where a context never occurs in train its relative frequency is not defined, and the paper does not say what "
        "stands there: here the next shorter one, so that the distribution still sums to 1.",
        _is("interpolated"),
    ),
    Departure(
        7,
        "different",
        "Updates every K examples",
        "The gradients of K examples are summed and applied at once, at the paper's rate per example; the paper "
        "updates after every example, asynchronously on several processors.",
        _preset(lambda preset: preset["reduction"] == "sum" and preset["batch"] > 1),
    ),
    Departure(
        8,
        "different",
        "Gradient averaged over a mini-batch",
        "Each update follows the mean gradient of a mini-batch at a rate of its own; the paper's rate of 0.001 per "
        "example learns much more slowly.",
        _preset(lambda preset: preset["reduction"] == "mean"),
    ),
    Departure(
        9,
        "different",
        "Another schedule of the learning rate",
        "The learning rate falls to 0 along half a cosine over all epochs; the paper's falls as 1 / (1 + r t) with the "
        "number of examples t, which hardly changes it.",
        _preset(lambda preset: preset["schedule"] == "cosine"),
    ),
    Departure(
        10,
        "different",
        "Dropout",
        "Inputs and hidden units are dropped at random during training; the paper regularises by weight decay and "
        "early stopping only.",
        _preset(lambda preset: preset["dropout"] > 0),
    ),
    Departure(
        11,
        "different",
        "Output bias started at the unigram",
        "The output biases start at the log relative frequencies of train, so that learning starts from the unigram "
        "model; the paper mentions no such start.",
        _preset(lambda preset: preset["bias_start"] == "unigram"),
    ),
    Departure(
        12,
        "different",
        "Another weight decay",
        "The weight decay is not the paper's (1e-4 on Brown, 1e-5 on AP News).",
        _decay_differs,
    ),
    Departure(
        13,
        "different",
        "Noise words in place of the vocabulary",
        "Training looks at some noise words for each mini-batch and not at the whole vocabulary: for an estimate of "
        "the log-likelihood (sampled softmax: importance sampling, Bengio and Senecal 2003), or to tell them from the "
        "next word (noise-contrastive estimation, Mnih and Teh 2012). Weight decay, if any, is then applied once for a "
        "stretch of updates. The epoch is chosen, and every token scored, by the exact softmax.",
        _preset(lambda preset: preset["objective"] != "softmax"),
    ),
    Departure(
        14,
        "different",
        "Products of lower precision",
        "Matrix products in training, in the validation that chooses the epoch, and for the scores of train may round "
        "their factors to bfloat16 where the hardware is faster at it; sums, parameters and the scores of validation "
        "and test stay in float32.",
        _preset(lambda preset: preset["matmul"] != "highest"),
    ),
    Departure(
        15,
        "different",
        "Another limit on epochs",
        "The paper trains for 10 epochs with direct connections and 20 without, for 5 on AP News; this preset has "
        "other limits.",
        _epochs_differ,
    ),
    Departure(
        16,
        "open",
        "Early stopping",
        "The paper stops early on validation without giving the rule. Here the parameters of the epoch with the lowest "
        "validation perplexity are kept, and training ends after a number of epochs without improvement. A preset "
        "may look at a part of the tokens of validation for this (`valid_every`).",
        _is("network"),
    ),
    Departure(
        17,
        "open",
        "Initial parameters",
        "The paper does not give the distribution of the initial parameters. Here C is normal with deviation 0.1, the "
        "other weights are uniform within 1 / sqrt(number of inputs), and the biases start at 0 where D11 does not "
        "apply.",
        _is("network"),
    ),
    Departure(
        18,
        "open",
        "Order of the examples",
        "The paper does not say in which order examples are visited; here they are shuffled anew in every epoch.",
        _is("network"),
    ),
    Departure(
        19,
        "open",
        "History of the first tokens of train",
        "Before the first token of train the window is filled with the merged symbol; the paper does not say what "
        "stands there. Validation and test always have a full history.",
        _is("network"),
    ),
    Departure(
        20,
        "open",
        "One seed",
        "The network was trained once, as in the paper: the spread between random starts is not measured.",
        lambda study, row: row["kind"] == "network" and len(row["seeds"]) == 1,
    ),
    Departure(
        21,
        "open",
        "How word classes are learnt",
        "The paper does not describe how its word classes were learnt. Here the exchange algorithm finds them: words "
        "move one at a time to the class that most raises the likelihood of train under the class bigram, until a pass "
        "over all words gains next to nothing.",
        _is("class-based"),
    ),
    Departure(
        22,
        "open",
        "Words within a class",
        "The paper does not say how the probability of a word within its class is smoothed. Here every word counts "
        "once more than it occurs in train, and words that never occur in train are in the class of the merged symbol. "
        "Both were chosen among a few variants on validation.",
        _is("class-based"),
    ),
    Departure(
        23,
        "different",
        "Another corpus than the published one",
        "The study stands in for the paper's corpus, which is not free: the published numbers beside its rows are for "
        "AP News of 1995 and 1996, six times as large or more. Perplexities of different texts cannot be compared, so "
        "no gap is given; what can be compared is which model is better.",
        lambda study, row: stands_in(study),
    ),
    Departure(
        24,
        "open",
        "Which AP stories",
        "The paper names AP News of 1995 and 1996 and not its source. Here: documents of the type story in the "
        "newswire that the Linguistic Data Consortium distributes, their texts without headlines, in order of dates.",
        lambda study, row: study["corpus"]["source"] == "ap",
    ),
    Departure(
        25,
        "open",
        "What counts as a numeric form or a proper noun",
        "The paper maps numeric forms to special symbols and proper nouns to one, and does not say how. Here numeric "
        "forms are told by their shape, one symbol for each of seven kinds, and proper nouns by how often a word has a "
        "capital letter where its place does not give it one.",
        lambda study, row: _policy(study)["numbers"] or _policy(study)["proper_nouns"],
    ),
    Departure(
        27,
        "open",
        "Features of co-occurrence counts",
        "The features of the words are not learnt: C stays at the leading singular vectors of the co-occurrence counts "
        "of train, in place of the random start of D17. The paper tried such features and gives neither the window nor "
        "the weighting of the counts; ours are in nplm2003/neural/cooccurrence.py.",
        lambda study, row: row.get("word_features") == "svd",
    ),
    Departure(
        29,
        "different",
        "Mean over several seeds",
        "The network was trained from several random starts, and its perplexity is the mean of theirs; the paper gives "
        "the one of a single run.",
        lambda study, row: row["kind"] == "network" and len(row["seeds"]) > 1,
    ),
    Departure(
        30,
        "different",
        "Another output layer",
        "In place of one softmax over all words: one over word classes and one over the words of the class (Goodman "
        "2001), or a product of binary decisions (Morin and Bengio 2005), with classes learnt from train; or one over "
        "the frequent words and two classes of the others, and one over the words of each (adaptive softmax, Grave and "
        "others 2017). All sum to 1 over V.",
        lambda study, row: row.get("outputs") not in (None, "words"),
    ),
    Departure(
        31,
        "different",
        "Self-normalisation",
        "A penalty on (log Z)^2, for Z the sum of e^y over V, is added to the cost of every example (Devlin and others "
        "2014); the paper's cost has no such term. Scores are normalised exactly.",
        _preset(lambda preset: preset["self_normalisation"] > 0),
    ),
    Departure(
        32,
        "different",
        "Smoothing older than Kneser-Ney",
        "The paper has no such row: relative frequencies as they are, a constant added to every count (the best on "
        "validation), Good-Turing discounts with Katz back-off, or absolute discounting, in n-grams of words: what its "
        "baselines had already gained.",
        lambda study, row: row["kind"] in SMOOTHED_KINDS,
    ),
    Departure(
        33,
        "different",
        "Features started by word2vec",
        "C starts at the vectors that skip-gram with negative sampling (Mikolov and others 2013) learns from train, "
        "scaled to the deviation of the random start of D17, in place of it; the paper starts at random.",
        lambda study, row: row.get("word_features") == "word2vec",
    ),
    Departure(
        34,
        "open",
        "Words outside the vocabulary that are met again",
        "The paper gives features to a word outside the vocabulary where it is first met; here they are the mean over "
        "all its occurrences so far. It does not say what the output layer knows of the word; in the table of words "
        "outside the vocabulary its row there is made in the same way, with a bias set on validation.",
        _is("out-of-vocabulary"),
    ),
    Departure(
        35,
        "different",
        "Words outside the vocabulary are expected to be rare",
        "Only words that are rare in train stand for a word outside the vocabulary, and its features go a part of the "
        "way from those of the merged symbol to theirs (nplm2003/neural/out_of_vocabulary.py); in the paper all words "
        "stand for it, and their features alone.",
        lambda study, row: row.get("weights") == "rare",
    ),
)


def departures_of(study: Mapped, row: Mapped) -> list[Departure]:
    """The departures that apply to a row of the study, by number, or to the rows that it is made of."""
    rows = {other["model"]: other for other in study["rows"]}
    parts = [rows[model] for model in row.get("components", ())]
    return [departure for departure in DEPARTURES if any(departure.applies(study, one) for one in (row, *parts))]
