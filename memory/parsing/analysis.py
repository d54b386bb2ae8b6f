"""The analyser that turns text into tokens for BM25, FTS5 and queries (features C2, C3).

Index and query must be tokenised by the same code, so there is no second tokeniser. The rules:

* NFKC normalisation, which turns full-width letters into plain ones, and case folding; diacritics stay.
* Words lose English stop words and are stemmed (Snowball English; words of other languages pass nearly unchanged).
* Identifiers are kept whole and split: `computeMPAB` gives computempab, compute, mpab; `user_id` gives user_id, user,
  id; `REQ-006` gives req-006, req, 006; `sha256sum` gives sha256sum, sha, sum. Single letters are not emitted as
  parts. The names in a path are kept whole too: `auth/token_store.py` gives auth/token_store.py, auth, token_store,
  token, store, py. The whole form of an option keeps its dashes: `--dry-run` gives --dry-run, dry, run. Version
  numbers are never split: `v1.2.3` gives 1.2.3; `https://example.org/v1.2.3/notes` gives 1.2.3 and its other parts.
* Chinese, Japanese and Korean runs become overlapping character bigrams; a lone character is one token. Chinese
  question words ("是什么", "怎么") are stop words, and the text on either side of one forms a separate run.

Documents get further tokens after these (`Analyser.held`): each Chinese character alone, and the stems of German text
(`pipeline.arithmetic.german`). Queries can match them, and the positions of the ordinary tokens are unaffected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import cache
from itertools import chain
from unicodedata import category, normalize

import Stemmer

from speckit_memory.memory.parsing import identifiers
from speckit_memory.pipeline.arithmetic import german

VERSION = "5"
"""Part of `Analyser.version`: raise it whenever the rules below change, so that stores are analysed again."""

STOP_WORDS = frozenset(
    """
    a an the this that these those such same own other each any all some both few more most
    i me my mine you your yours he him his she her hers it its we us our ours they them their theirs who whom whose
    what which when where why how
    be am is are was were been being do does did doing done have has had having
    can could may might must shall should will would
    and or nor but if then than so as because while until though
    of in on at by for from to into onto with without within about against between among through during before after
    above below under over up down out off again further once upon per via
    here there now just only also too very not no yes ever
    dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt
    """.split()  # noqa: SIM905 - a list of 150 quoted words is harder to read
)
"""Includes question words: they are frequent in queries and rarely distinguish documents."""

_CHINESE_STOP_WORDS = """
    什么是 是什么 什么 什麼是 是什麼 什麼 是甚么 甚么 是啥 啥是 为什么 為什麼 为啥 为何 為何 怎么样 怎麼樣 怎么办 怎麼辦
    怎么 怎麼 怎样 怎樣 如何 哪些 哪个 哪里 多少 是谁 是否 有没有 有沒有 请问 請問 吗 嗎 呢
"""

LONGEST_WORD = 64
"""Characters. Longer runs (encoded data, long URLs) are not indexed whole, only as their parts."""

_CACHED_STRETCHES = 200_000

_CJK = (
    r"\u1100-\u11ff\u3005-\u3007\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)


def _word_of(run: str) -> str:
    """Return the pattern of a word, given the pattern of a run of letters and digits."""
    name = rf"{run}(?:(?:[-./'’]|::){run})*"
    return rf"[A-Za-z](?:\+\+|#)(?!\w)|{name}|--(?<![\w-]--){name}"


_PLAIN_WORD = re.compile(_word_of(r"\w+"))
"""For ASCII text. The pattern for all scripts gives the same matches there but is slow to compile."""
_AROUND = ".,;:!?()[]{}<>\"'`*/|=&%$@~^\\"
"""Characters stripped from both ends of a word. The dash is not among them: `--dry-run`."""
_VERSION_NUMBER = re.compile(r"v?(\d+(?:\.\d+)+)")
_ENDING = re.compile(r"'(?:s|d|ll|re|ve|m)$")
_PATH_SEPARATOR = re.compile(r"[-./]+|::")


@cache
def _word_of_any_script() -> re.Pattern[str]:
    # Vowel signs and accents belong to their word, but Python's \w excludes them, which would split Hindi, Tamil or
    # Thai words into fragments. The two ranges hold the combining marks of all living scripts.
    among = (*range(0x300, 0x1D00), *range(0xA660, 0xAC00))
    mark = "".join(chr(c) for c in among if category(chr(c)) in ("Mn", "Mc"))
    letter = rf"[^\W{_CJK}]"
    return re.compile(rf"[{_CJK}]+|{_word_of(rf'{letter}+(?:[{mark}]+{letter}*)*')}")


@cache
def _cjk() -> re.Pattern[str]:
    return re.compile(rf"[{_CJK}]")


@cache
def _asking() -> re.Pattern[str]:
    return re.compile("|".join(sorted(_CHINESE_STOP_WORDS.split(), key=len, reverse=True)))


@cache
def _chinese() -> re.Pattern[str]:
    return re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af]+")


def _words(text: str) -> list[str]:
    """Return the raw words of a text, with names and paths unsplit."""
    return (_PLAIN_WORD if text.isascii() else _word_of_any_script()).findall(text)


class Analyser:
    """Tokenises text. Safe to share between threads."""

    version = f"{VERSION}:{Stemmer.version()}"
    """Stored with the index: tokens of different versions are not comparable."""

    def __init__(self, stop_words: frozenset[str] = STOP_WORDS) -> None:
        self._stretches = _Stretches(stop_words)

    def tokens(self, text: str) -> tuple[str, ...]:
        """Return the tokens in text order, including repeats. No token contains whitespace.

        Never empty if the text has a letter or digit: a text of only stop words keeps them.
        """
        plain = text if text.isascii() else normalize("NFKC", text)
        # No word contains whitespace and no pattern looks across it, so each stretch is tokenised independently.
        tokens = tuple(chain.from_iterable(map(self._stretches.__getitem__, plain.split())))
        if tokens:
            return tokens
        words = _words(plain)
        kept = {word: self._stretches.cut(word, frozenset()) for word in dict.fromkeys(words)}
        return tuple(chain.from_iterable(map(kept.__getitem__, words)))

    def word_tokens(self, words: Sequence[str]) -> list[str | None]:
        """Return the token of each word, None for a word that has none or several.

        Unlike `tokens`, this caches no plain words: hundreds of forms of a misspelt word are asked for once.
        """
        plain = [word for word in words if len(word) > 1 and word.isascii() and word.isalpha() and word.islower()]
        stems = dict(zip(plain, self._stretches.stems(plain), strict=True))
        return [stems.get(word) or self._only_token(word) for word in words]

    def _only_token(self, word: str) -> str | None:
        tokens = self.tokens(word)
        return tokens[0] if len(tokens) == 1 else None

    def held(self, text: str, in_german: bool = False) -> tuple[str, ...]:
        """Return a document's tokens, followed by its extra tokens (Chinese characters, German stems)."""
        tokens = self.tokens(text)
        if not text.isascii():
            runs = _chinese().findall(normalize("NFKC", text))
            tokens += tuple(character for run in runs if len(run) > 1 for character in _asking().sub("", run))
        return tokens + german.german_tokens(text) if in_german else tokens

    def forget(self) -> None:
        """Clear the cache of tokenised stretches."""
        self._stretches.clear()


class _Stretches(dict[str, tuple[str, ...]]):
    """Cache from a stretch of non-blank text to its tokens, so that each is split and stemmed once."""

    def __init__(self, stop_words: frozenset[str]) -> None:
        super().__init__()
        self._stop_words = stop_words
        self._stemmer = Stemmer.Stemmer("english", 0)  # 0: no cache in the stemmer, words reach it once
        self._lock = threading.Lock()  # the stemmer is not thread safe

    def __missing__(self, stretch: str) -> tuple[str, ...]:
        word = stretch.strip(_AROUND)
        tokens = self._cut(stretch) if word == stretch else self[word]
        if len(stretch) <= LONGEST_WORD:
            if len(self) >= _CACHED_STRETCHES:
                self.clear()
            self[stretch] = tokens
        return tokens

    def _cut(self, stretch: str) -> tuple[str, ...]:
        """Return the tokens of a stretch of non-blank text."""
        if len(stretch) > 1 and stretch.isascii() and stretch.isalpha() and not identifiers.is_identifier(stretch):
            whole = stretch.lower()  # shortcut for plain words, which are most; same result
            return () if whole in self._stop_words else (self._stem(whole),)
        cut: dict[str, tuple[str, ...]] = {}  # a long stretch, such as a text without blanks, repeats its words
        tokens: list[str] = []
        for word in _words(stretch):
            if word not in cut:
                cut[word] = self.cut(word, self._stop_words)
            tokens += cut[word]
        return tuple(tokens)

    def cut(self, word: str, stop_words: frozenset[str]) -> tuple[str, ...]:
        """Return the tokens of one raw word."""
        if not word.isascii() and _cjk().match(word):
            runs = filter(None, _asking().split(word)) if stop_words else (word,)
            return tuple(run[i : i + 2] for run in runs for i in range(max(len(run) - 1, 1)))
        # Steps: options, apostrophes, version numbers, plain words, then identifiers and paths with their parts.
        if option := word.startswith("--"):
            word = word[2:]
        word = word.replace("’", "'").strip("_")
        if "'" in word:
            word = _ENDING.sub("", word).replace("'", "")
        whole = _folded(word)
        if not word:
            return ()
        if whole[-1:].isdecimal() and (version := _VERSION_NUMBER.fullmatch(whole)):
            return (version[1],) if len(whole) <= LONGEST_WORD else ()
        is_identifier = identifiers.is_identifier(word)
        if not is_identifier and not option and word.isalpha():
            return () if whole in stop_words else (self._stem(whole),)
        # From here on: compound words. `names` are the names of a path, each with its parts.
        names = [(name.strip("_"), identifiers.parts(name)) for name in _PATH_SEPARATOR.split(word)]
        if option and len(whole) <= LONGEST_WORD:
            return (f"--{whole}", *self.cut(word, stop_words))
        if names == [(word, [word])]:
            return () if whole in stop_words else (self._stem(whole),)
        tokens = [self._stem(whole)] if is_identifier and len(whole) <= LONGEST_WORD else []
        if "/" in whole:
            tokens += [version[1] for part in whole.split("/") if (version := _VERSION_NUMBER.fullmatch(part))]
        for name, parts in names:
            if len(names) > 1 and parts not in ([], [name]) and len(name) <= LONGEST_WORD:
                tokens.append(self._stem(_folded(name)))
            said = parts if parts == [name] else [part for part in parts if part != name]
            tokens += [self._stem(folded) for part in said if (folded := _folded(part)) not in stop_words]
        return tuple(tokens)

    def _stem(self, word: str) -> str:
        return self.stems([word])[0] if word.isalpha() else word

    def stems(self, words: list[str]) -> list[str]:
        """Return the stem of each word. The words must be folded."""
        with self._lock:
            return list(self._stemmer.stemWords(words))


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else normalize("NFC", word.casefold())
