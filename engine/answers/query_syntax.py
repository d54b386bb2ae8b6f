"""Parses the operators of a typed query: "quoted words" are required as a phrase, a -word is excluded.

"X but not Y" excludes too, unless it is a sentence. A pasted stack trace is reduced to its exceptions.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

_FRAME = re.compile(
    r'File "[^"]+", line \d+'  # Python
    r"|(?:at\s+(?:async\s+|new\s+)?)?\S.*\((?:[^()]*:\d+(?::\d+)?|Native Method|Unknown Source|<anonymous>|native)\)$"
    r"|at\s+(?:async\s+)?(?:\w+://)?\S*[/\\.]\S*:\d+(?::\d+)?$"  # JavaScript without a name, Rust
    r"|at\s+[\w.<>`\[\],+]+\(.*\)(?:\s+in\s+\S.*:line\s+\d+)?$"  # C#, Java
    r"|from\s+\S+:\d+:in\s+\S"  # Ruby
    r"|#\d+\s+(?:\{main\}$|\[internal function\]|\S+\(\d+\):)"  # PHP
    r"|#\d+\s+(?:0x[0-9a-f]+\s|[^()]*\([^()]*\)\s+(?:at\s+\S+:\d+|from\s+/))"  # gdb
    r"|\S*[/\\]\S+\.\w+:\d+(?:\s+\+0x[0-9a-f]+)?$"  # Go
    r"|created by\s+\S+[./]\S+"
)
_AROUND = re.compile(
    r"Traceback \(most recent call last\):|Stack ?trace:|stack backtrace:|goroutine \d+ \[[^\]]*\]:|exit status \d+"
    r"|\.\.\. \d+ (?:more|common frames omitted|lines matching .*)|\[Previous line repeated \d+ more times\]"
    r"|The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:|--- End of .*stack trace.*---"
    r"|note: (?:run with|Some details) .*|thrown in \S+ on line \d+|[\s~^]+"
)
_PREFIX = re.compile(
    r"(?:Exception in thread \"[^\"]*\"|Caused by:|Suppressed:|Uncaught(?: \(in promise\))?|Unhandled exception[.:]?"
    r"|thread '[^']*' panicked at(?:\s+\S+:\d+:\d+:$)?|\S+:\d+:in [`'][^']*':|panic:(?:\s+runtime error:)?)\s*"
)
_GENERAL = re.compile(
    r"(?<![\w.])(?:(?:java|javax|kotlin|System)\.[\w.$]*"
    rf"|{'|'.join(name for name in dir(builtins) if name.endswith('Error'))}"
    r"|(?:Internal|Range|Reference|URI)?Error|(?:Runtime|IllegalState|IllegalArgument|NullPointer|IO)?Exception):\s+"
    r"(?=\S+\s+\S+\s+\S+\s+\S)"
)
"""General exception types before a message of some words, which is the better query without them."""
_CALL = re.compile(r"[\w./*()-]+\([^()]*\)|\d+:\s+(?:0x[0-9a-f]+ - )?[\w<>:{}# ]+")
"""A function call of Go or Rust on a separate line, above or below its location."""
_LIBRARY = re.compile(r"site-packages|dist-packages|node_modules|node:|lib/python|/rustc/|\b(?:java|javax|jdk|sun)\.")
_ERROR = re.compile(r"(?:Error|Exception|Warning|panic|panicked)\b")
_NAME = re.compile(r"[^\W\d_]+_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+")
_FEW_WORDS = 3
"""If exceptions have at most this many words, types included, names from the frames are added."""
_MOST_NAMES = 6
_LONGEST_FRAME = 500


def asked_by(text: str) -> str:
    """The lines of a text outside stack frames, or the whole text if it contains no stack trace.

    A trace has a frame below a heading or together with an error, or two frames. Frames locate code but do not describe
    the error, so their names are added only if the exceptions say next to nothing.
    """
    lines = text.splitlines()
    if len(lines) < 2:
        return text
    told: dict[str, bool] = {}
    frames: list[str] = []
    headed = False
    code_below: int | None = None
    for line in lines:
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        # Python prints source code below a frame, indented deeper than the frame
        if code_below is not None and (indent > code_below or not stripped):
            continue
        code_below = None
        if _AROUND.fullmatch(stripped):
            headed = headed or any(map(str.isalpha, stripped))
        elif len(stripped) <= _LONGEST_FRAME and _FRAME.match(stripped):
            frames.append(stripped)
            code_below = indent if stripped.startswith("File ") else None
        elif stripped and not ((headed or frames) and _CALL.fullmatch(stripped[:_LONGEST_FRAME])):
            said = _without(_GENERAL, _without(_PREFIX, stripped)).strip()
            told |= {said: _ERROR.search(stripped) is not None} if said else {}
    errors = [line for line, is_error in told.items() if is_error]
    if not frames or not (headed or errors or len(frames) > 1) or not any(map(str.isalnum, "".join(told))):
        return text
    if max(len(line.split()) for line in errors or told) <= _FEW_WORDS:
        told |= dict.fromkeys(islice(_names(frames), _MOST_NAMES), False)
    return " ".join(told)


def _without(beginning: re.Pattern[str], line: str) -> str:
    found = beginning.match(line)
    return line[found.end() :] if found else line


def _names(frames: Iterable[str]) -> Iterator[str]:
    """Compound names in the frames of the project itself."""
    own = (frame for frame in frames if not _LIBRARY.search(frame))
    return iter(dict.fromkeys(name for frame in own for name in _NAME.findall(frame)))


MOST_WORDS = 20
"""A longer text, or one of several lines, was pasted rather than typed: its quotes and dashes are no operators."""

MOST_CHARACTERS = 1000
"""A longer text was pasted too, however few blanks it has."""

MOST_IN_SENTENCE = 8
"""A longer sentence that ends with a full stop was pasted too: its quotes are no operators."""

_QUOTE = '"“”„‟«»＂'
# An operator begins where a word could begin and ends where one could end, so not in 5" or f("x").
_MARK = re.compile(
    rf"(?<!\S)(?P<minus>-?)[{_QUOTE}](?=[^{_QUOTE}]*?[^\W_])(?P<quoted>[^{_QUOTE}]++)[{_QUOTE}](?!\w)"
    r"|(?<!\S)-(?![A-Za-z\d]{1,2}(?!\S))(?P<word>[^\W_]\S*)"
)
# Signs of pasted text: braces, pipes, assignments, and a key with its colon.
_PASTED = re.compile(rf"[{{}}\[\]|<>=\\;]|[{_QUOTE}]\s*:|:\s*[{_QUOTE}]")
MOST_IN_NEGATION = 8
"""A negation with more words than this is a sentence from a document."""
_LEFT_OUT = r"[^\W_][^\s,;:?!]*(?:\s+[^\W_][^\s,;:?!]*){0,2}"
# "caching but not redis or memcached": about "caching", sign "not", left_out "redis or memcached"
_NEGATION = re.compile(
    r"(?P<about>.*?[^\W_])(?:,?\s+(?:but|and)(?=\s+no)|,(?=\s+not)|,?(?=\s+(?:except|excluding|other)))\s+"
    r"(?P<sign>not(?!\s+(?:only|just|merely|all|every|always|yet)\b)|no|except(?:\s+for)?|excluding|other\s+than)"
    r"\s+(?:(?:any|the|an?)\s+)?"
    rf"(?P<left_out>{_LEFT_OUT}(?:,\s+{_LEFT_OUT})*)[.?!]*",
    re.IGNORECASE,
)
_JOINT = re.compile(r",\s+(?:(?:or|and|nor|not)\s+)?|\s+(?:or|and|nor)\s+", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|am|be|been|do|does|did|can|could|may|might|must|"
    r"shall|should|will|would|has|have|had|i|we|you|he|she|it|they|this|that|to)\b",
    re.IGNORECASE,
)
"""Words of questions and sentences: "why is it caching but not invalidating" excludes nothing."""
_STOP = re.compile(rf"[.][)\]{_QUOTE}]*$")
_END = f".,;:!?…'’)]}}{_QUOTE}"
"""Trailing characters that do not belong to a word: `-rsf,` is rsf, but `-c++` is c++."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query: the text without operators, and the required and excluded phrases.

    `negation` is the wording of an exclusion ("not redis"): if a memory with all other words contains this wording, it
    is about the negation itself, and nothing is excluded.
    """

    text: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    negation: str = ""


def read(text: str) -> ParsedQuery:
    """Parses a typed query. A pasted text, or one without operators, is returned unchanged.

    Required words are also words of the query; excluded ones are not. Unpaired quotes are ordinary characters, and so
    is a minus within a word, before a blank or another minus, or before an option such as -la or -3.
    """
    text = text.strip()
    if (asked := asked_by(text)) != text:
        return ParsedQuery(asked)
    if _pasted(text):
        return ParsedQuery(text)
    if not _MARK.search(text):
        return _negated(text) or ParsedQuery(text)
    required: dict[str, None] = {}
    excluded: dict[str, None] = {}

    def plain(mark: re.Match[str]) -> str:
        if mark["word"]:
            excluded[mark["word"].rstrip(_END)] = None
            return " "
        words = " ".join(mark["quoted"].split())
        if mark["minus"]:
            excluded[words] = None
            return " "
        required[words] = None
        return words

    rest = " ".join(_MARK.sub(plain, text).split())
    return ParsedQuery(rest, tuple(required), tuple(excluded))


def _negated(text: str) -> ParsedQuery | None:
    """Parses "X but not Y", "X, not Y" or "X except Y"; None for any other text."""
    if len(text.split()) > MOST_IN_NEGATION or not (found := _NEGATION.fullmatch(text)) or _ASKS.search(text):
        return None
    left_out = tuple(dict.fromkeys(part.rstrip(_END) for part in _JOINT.split(found["left_out"])))
    return ParsedQuery(found["about"], excluded=left_out, negation=f"{found['sign']} {left_out[0]}")


def _pasted(text: str) -> bool:
    words = len(text.split())
    return (
        len(text) > MOST_CHARACTERS
        or _PASTED.search(text) is not None
        or len(text.splitlines()) > 1
        or words > (MOST_IN_SENTENCE if _STOP.search(text) else MOST_WORDS)
    )
