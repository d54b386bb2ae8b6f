"""Renders a search result as Markdown: its names, why it matched, notes, and the passage."""

import re
from pathlib import PurePosixPath
from typing import Any

from speckit_memory.server.console.markdown import TEXT_FIELD, about, fields, one_line, quote_text
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, Why

_RANK = re.compile(r"\(rank (\d+)\)")
_HEADING = re.compile(r"#{1,6}\s++([^\n]*)(\s*)")
_FRESH = ("HOT", "WARM", "UNKNOWN")
"""States that are not shown; the others tell an agent that the memory has not been used for long."""
_OTHERS = {"superseded_by": "superseded by", "also_at": "also at"}
"""Notes that refer to other memories, the most important ones for a reader."""


class SearchRow:
    """One result: lines about it, and its text as a safe quotation."""

    def __init__(self, number: int, row: dict[str, Any], why: Why = SHIPPED_FORM.why) -> None:
        """Renders the lines about a row."""
        self._texts: dict[bool, tuple[str, str]] = {}
        self._head, self._reason, self._scores, self._said = "", "", "", set[str]()
        key, title = one_line(row["key"]), one_line(row["title"])
        notes = dict(row.get("notes", {}))
        # sent before in this session: one line, with successors, which may be new
        if "already_sent" in notes and TEXT_FIELD not in row:
            successors = ", ".join(one_line(other["key"]) for other in notes.get("superseded_by") or ())
            sent = f"already sent: {one_line(notes['already_sent'])}"
            self._head = f"\n## {number}. {about(sent, successors and f'superseded by {successors}')}"
            return
        place = _place(*row.get("lines", (0, 0)))
        sections = notes.pop("sections", [])
        head = f"\n## {number}. {key}{place}"
        names = about(
            "" if title in (key, PurePosixPath(key).stem) else title,
            _below(title, one_line(row.get("heading", ""))),
            f"sections {', '.join(sections)}" if sections else "",
        )
        facts = (
            f"id {row['id']}",
            row["tier"] if row["tier"] != "normal" else "",
            f"{row['state']}: not used for long" if row["state"] not in _FRESH else "",
        )
        shown = [head, about(names, *facts)] if names else [f"\n{about(head, *facts)}"]
        for name, words in _OTHERS.items():
            others = notes.pop(name, None) or ()
            for other in others:
                shown.append(f"{words} {one_line(other['key'])} ({_label(other)})")
                shown.append(quote_text(other.get("words", "")))
        shown.append(fields(notes))
        self._head = "\n".join(filter(None, shown))
        self._reason = _why(row.get("reason", ""), why)
        self._said = {title, *row.get("heading", "").split(" > ")}
        if "steps" in row:
            steps = ", ".join(f"{step['step']} {step['score']:.4g}" for step in row["steps"])
            scores = ", ".join(f"{name} {seen['score']:.4g}" for name, seen in row["channels"].items())
            self._scores = f"scores: {one_line(scores)}; steps: {one_line(steps)}"

    def text(self, stored: str, *, brief: bool = False) -> str:
        """The row as Markdown with this text; briefly without why it was found."""
        known = self._texts.get(brief)
        if known is None or known[0] != stored:
            quoted = quote_text(_without_headings(stored, self._said))
            reason = "" if brief else self._reason
            text = "\n".join(filter(None, (self._head, reason, self._scores, quoted)))
            known = self._texts[brief] = stored, text
        return known[1]


class SearchRows:
    """The rows of one answer. Each is rendered once, whether its stored text is lengthened or cut."""

    def __init__(self, why: Why = SHIPPED_FORM.why) -> None:
        self._why: Why = why
        self._rows: dict[int, SearchRow] = {}

    def text(self, number: int, row: dict[str, Any], *, brief: bool = False) -> str:
        """The row with this number, from 1; briefly without why it was found. Only its stored text may
        differ from an earlier call."""
        if number not in self._rows:
            self._rows[number] = SearchRow(number, row, self._why)
        return self._rows[number].text(row.get(TEXT_FIELD, ""), brief=brief)


def _place(first: int, last: int) -> str:
    """The line range of a passage as a suffix of its key; "" for a text of one line."""
    if last <= 1:
        return ""
    return f":{first}" if first == last else f":{first}-{last}"


def _why(reason: str, why: Why) -> str:
    told = one_line(_RANK.sub(r"#\1", reason.removeprefix("surfaced because it was ")))
    if why == "full":
        return told
    return told.partition(";")[0] if why == "short" else ""


def _label(other: dict[str, Any]) -> str:
    return about("" if other["title"] == other["key"] else other["title"], f"id {other['id']}")


def _below(title: str, heading: str) -> str:
    """The path of headings without a leading title."""
    return "" if heading == title else heading.removeprefix(f"{title} > ")


def _without_headings(text: str, said: set[str]) -> str:
    """The passage without leading headings that are shown above it anyway."""
    at = len(text) - len(text.lstrip("\n"))
    while heading := _HEADING.match(text, at):
        name = heading[1].rstrip().rstrip("#").rstrip()
        if name.replace("`", "").replace("**", "") not in said:
            break
        # heading[2] is the white space after the heading
        blanks = heading[2].rfind("\n") + 1  # the indentation of what follows stays
        at = heading.start(2) + blanks if heading.end() < len(text) else heading.end()
    return text[at:]
