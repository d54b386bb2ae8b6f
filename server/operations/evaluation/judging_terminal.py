"""Judging at a terminal: one pair at a time, answered by a key."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.output import printable, wrap_text

if TYPE_CHECKING:
    from speckit_memory.evaluation.judging.cases import JudgingQueue
    from speckit_memory.evaluation.judging.preferences import AnswerPair, PreferenceSession
    from speckit_memory.evaluation.judging.session import JudgingSession
    from speckit_memory.evaluation.statistics.comparison import Verdict

LINES = 12
"""Lines of a document shown, including the marks for omitted lines."""
UNWRAPPED = 120
"""Line length when the width of the terminal is unknown."""

Answer = int | Literal["skip", "undo", "quit"]
KEYS: dict[str, Answer] = {"0": 0, "1": 1, "2": 2, "3": 3, "s": "skip", "u": "undo", "q": "quit"}
PREFERENCES: dict[str, Answer] = {"a": 1, "b": -1, "=": 0, "s": "skip", "u": "undo", "q": "quit"}
"""Positive if the answer shown first is better."""
_GIST = 160
"""Characters of the text shown with a title."""
ASKED = "0 not relevant, 1 related, 2 helps, 3 answers it; s skip, u undo, q quit"
_WORD = re.compile(r"\w{3,}")


def judge_at_terminal(sitting: JudgingSession, docket: JudgingQueue, limit: int | None, by: str) -> None:
    """Shows pairs of query and document and reads one key for each; the end of the input quits.

    A label is stored before the next pair is shown. All output goes to standard error.

    Args:
        sitting: The judging session; it selects the pairs.
        docket: The documents by key, and the store of labels.
        limit: Number of pairs to judge; None for all.
        by: Name of the judge.
    """
    done, first = 0, True
    while (pair := sitting.present) is not None and (limit is None or done < limit):
        title, text = docket.documents.get(pair.key, ("", ""))
        stops = f", stops after {limit}" if limit is not None and limit < len(sitting) else ""
        head = f"{sitting.said + 1:,} of {len(sitting):,}{stops} · {how_far(sitting)}"
        _write(("" if first else "\n") + _line(head, dim=True))
        first = False
        _write(_line(f"query: {pair.case.text}", bold=True))
        _write(_line(title or pair.key, underline=True))
        for line in passage(text, pair.case.text):
            _write(line)
        answer = _read_key(KEYS, ASKED)
        if answer == "quit":
            return
        if answer == "undo":
            if (label := sitting.last) is not None:
                docket.remove(label, by)
            done -= int(sitting.undo())
            continue
        sitting.say(None if answer == "skip" else int(answer))
        if (label := sitting.last) is not None:
            docket.keep(label, by)
        done += 1


def prefer_at_terminal(
    session: PreferenceSession,
    docket: JudgingQueue,
    limit: int | None,
    keep: Callable[[AnswerPair, float], None],
    remove: Callable[[AnswerPair], None],
) -> None:
    """Shows two answers per query, without their pipelines, and reads one key; the end of the input quits.

    A preference is stored before the next query is shown.

    Args:
        session: The preference session; it selects the pairs of answers.
        docket: The documents by key.
        limit: Number of queries to judge; None for all.
        keep: Stores a preference: 1 for the variant, -1 for the control, 0 for neither.
        remove: Removes the preference that was undone.
    """
    first = True
    while (pair := session.present) is not None and (limit is None or session.said < limit):
        head = f"{session.said + 1:,} of {len(session):,} · {plural(len(session.preferences), 'preference')} so far"
        _write(("" if first else "\n") + _line(head, dim=True))
        first = False
        _write(_line(f"query: {pair.case.text}", bold=True))
        for letter, keys in zip("ab", pair.lists, strict=True):
            _write(_line(f"answer {letter}", underline=True))
            for rank, key in enumerate(keys, 1):
                title, text = docket.documents.get(key, ("", ""))
                _write(_line(f"{rank} {title or key}: {' '.join(text.split())[:_GIST]}"))
        answer = _read_key(PREFERENCES, "a or b is the better answer, = neither; s skip, u undo, q quit")
        if answer == "quit":
            return
        if answer == "undo":
            if (undone := session.undo()) is not None:
                remove(undone)
            continue
        if answer == "skip":
            session.say(None)
            continue
        # keys rate the first answer shown; convert to the sign of the variant
        preference = float(answer) if pair.variant_first else -float(answer)
        session.say(preference)
        keep(pair, preference)


def how_far(sitting: JudgingSession) -> str:
    """Describes the state of the verdict."""
    if verdict := sitting.latest:
        return f"verdict open, so far {verdict}"
    return f"verdict open, {plural(len(sitting.labels), 'label')} so far"


def so_far(sitting: JudgingSession, verdict: Verdict | None) -> str:
    """Describes an open verdict, or what is missing for one."""
    if verdict:
        return f"so far {verdict}"
    if sitting.live:
        return f"too few judged queries yet: {sitting.judged_queries:,} of {sitting.needed_queries:,}"
    return "so far nothing relevant"


def passage(text: str, query: str) -> list[str]:
    """The lines of a document with most words of the query: at most `LINES`, wrapped to the terminal."""
    folded = [line for paragraph in text.splitlines() if paragraph.strip() for line in _folded(paragraph)]
    if len(folded) <= LINES:
        return folded
    words = set(_WORD.findall(query.casefold()))
    # found[i]: the query words in line i; choose the window of `room` lines with most distinct words, the first on ties
    found = [words & set(_WORD.findall(line.casefold())) for line in folded]
    room = LINES - 2
    starts = range(len(folded) - room + 1)
    start = max(starts, key=lambda at: (len(set().union(*found[at : at + room])), -at))
    if start <= 1:
        return [*folded[: LINES - 1], f"  … {len(folded) - LINES + 1} more lines"]
    rest = len(folded) - start - room
    above = [f"  … {plural(start, 'line')} above"]
    below = [f"  … {plural(rest, 'more line')}"] if rest else []
    return [*above, *folded[start : start + room], *below]


def _folded(paragraph: str) -> list[str]:
    from speckit_memory.server.console.terminal import fold

    shown = _line(paragraph).split("\n")
    return [f"  {piece}".rstrip() for line in shown for piece in fold(line, UNWRAPPED - 2)]


def _line(text: str, **style: Any) -> str:
    return wrap_text(text, "  ", None, sys.stderr, **style)


def _write(text: str) -> None:
    click.echo(text, err=True)


def _read_key(keys: Mapping[str, Answer], asked: str) -> Answer:
    """Reads one of the keys; the end of the input quits."""
    while True:
        click.echo(f"{asked}: ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            _write("")
            return "quit"
        if (answer := keys.get(line.strip().lower())) is not None:
            return answer
        _write(f"'{printable(line.strip()[:20])}' is none of {', '.join(keys)}")
