"""Numbers and proper nouns as symbols, the preprocessing of the paper's AP News corpus (section 4).

The paper maps numeric forms to special symbols and proper nouns to another, and does not say how. Here:

**Numeric forms** are told by the shape of one token (`NUMERIC_FORMS`). Numbers inside words (`10-year`) stay words.

| symbol | what | examples |
|---|---|---|
| `<ordinal>` | digits and *st*, *nd*, *rd*, *th* | 1st, 42nd |
| `<time>` | hours and minutes, or an hour with *am* or *pm* | 10:30, 9am |
| `<percent>` | a number and % | 10%, 3.5% |
| `<money>` | a currency sign and a number | $3.88, US$1,000, £5m |
| `<year>` | four digits from 1500 to 2099; decades; seasons | 1987, 1980s, '80s, 1986/87 |
| `<fraction>` | two whole numbers and a slash, a whole number before them or not | 1/8, 11-1/2 |
| `<number>` | any other number or range of numbers, signs, commas and points included | 155,221, 6.4, -3, 20-30 |

**Proper nouns** are told from a word's case where case tells something: not at the start of a sentence, where every
word has a capital, and not in a line without any word in lower case (headlines in capitals). A word is a proper noun
when at least `PROPER_SHARE` of these occurrences hold a capital letter, all of its occurrences then; a word that has no
such occurrence is none. So names, nationalities, days, months, titles and acronyms count as proper nouns, nearly as in
the Penn Treebank, and the pronoun *I* does not. No tagger, dictionary or second pass over the text is needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

PROPER = "<proper>"
PROPER_SHARE = 0.9

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_YEAR = r"(?:1[5-9]|20)\d\d"
# In order: the first form that a whole token has is taken.
NUMERIC_FORMS = {
    "<ordinal>": re.compile(r"\d[\d,]*(?:st|nd|rd|th)", re.IGNORECASE),
    "<time>": re.compile(r"\d{1,2}:\d\d(?::\d\d)?(?:[ap]\.?m\.?)?|\d{1,2}[ap]\.?m\.?", re.IGNORECASE),
    "<percent>": re.compile(rf"[-+]?(?:{_NUMBER})%"),
    "<money>": re.compile(rf"[-+]?[A-Za-z]{{0,3}}[$£¥€](?:{_NUMBER})(?:k|m|mn|b|bn)?", re.IGNORECASE),
    "<year>": re.compile(rf"{_YEAR}(?:'?s)?|'\d\d(?:'?s)?|{_YEAR}[-/](?:\d\d|{_YEAR})"),
    "<fraction>": re.compile(r"(?:\d+-)?\d+/\d+"),
    "<number>": re.compile(rf"[-+]?(?:{_NUMBER})(?:[-/](?:{_NUMBER}))*"),
}
# Tokens after which a capital says nothing.
_OPENING = frozenset(['"', "``", "`", ".", "?", "!", ":"])


def numeric_form(word: str) -> str | None:
    """The symbol of the numeric form that `word` has, None for any other word."""
    if not any(character.isdigit() for character in word):
        return None
    return next((symbol for symbol, form in NUMERIC_FORMS.items() if form.fullmatch(word)), None)


def case_is_forced(words: Sequence[str]) -> list[bool]:
    """For each word of a passage, whether its place alone may have given it its capital letters."""
    if not any(word.islower() for word in words):
        return [True] * len(words)
    forced, opening = [], True
    for word in words:
        forced.append(opening)
        if word in _OPENING:
            opening = True
        elif word[0].isalnum() or word[-1].isalnum():
            opening = False
    return forced


def proper_nouns(counted: Iterable[tuple[str, bool, int]]) -> set[str]:
    """The words, in lower case, that are proper nouns, from `(word, case_is_forced, count)` of every form of them."""
    free: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for word, forced, count in counted:
        if not forced and count:
            lower = word.lower()
            free[lower] += count
            if word != lower:
                capital[lower] += count
    return {word for word, count in capital.items() if word != "i" and count >= PROPER_SHARE * free[word]}
