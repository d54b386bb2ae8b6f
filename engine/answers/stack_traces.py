"""Reduces a pasted stack trace to its exceptions, and adds names from frames only if these say too little."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator
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
