"""Finds sections without ANCHOR tags by the words of their headings (feature I11).

Documents of common types (specifications, plans, tasks, decision records, handovers, session notes) use a few
different headings for the same section. A request for one name finds the section under any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from speckit_memory.memory.parsing.markdown.markdown import MarkdownBlock, blocks
from speckit_memory.memory.parsing.markdown.title import plain_text

VOCABULARY: dict[str, tuple[str, ...]] = {
    # for resuming a session
    "state": (
        "current state",
        "state of work",
        "status",
        "current status",
        "progress",
        "in progress",
        "where things stand",
        "where we are",
        "where we stopped",
        "where we left off",
        "where I stopped",
        "where I left off",
        "where work stopped",
        "done",
        "what is done",
    ),
    "next-steps": (
        "next",
        "next step",
        "next up",
        "up next",
        "what is next",
        "what's next",
        "what comes next",
        "next actions",
        "remaining",
        "remaining work",
        "left to do",
        "still to do",
        "follow-ups",
        "to do",
        "todo",
        "todos",
        "action items",
    ),
    "blockers": (
        "blocker",
        "blocked",
        "blocked by",
        "blocked on",
        "known blockers",
        "blocking issues",
        "waiting for",
        "open issues",
        "open questions",
    ),
    "summary": ("session summary", "executive summary", "tl;dr", "overview", "in short"),
    "decisions": ("key decisions", "decisions made", "decision log", "decision", "decision outcome", "clarifications"),
    # specifications and plans
    "metadata": ("document info", "front matter"),
    "problem": ("problem & purpose", "problem statement", "purpose", "motivation"),
    "context": ("background", "context and problem statement", "technical context"),
    "scope": ("scope & boundaries", "in scope", "goals and non-goals"),
    "requirements": ("functional requirements", "user scenarios & testing", "user stories"),
    "success-criteria": ("acceptance criteria", "definition of done", "measurable outcomes"),
    "risks": ("risks & dependencies", "risks and mitigations", "risk assessment", "drawbacks"),
    "questions": ("open questions", "unresolved questions"),
    "architecture": ("technical approach", "approach", "design", "project structure", "design details"),
    "phases": ("implementation phases", "implementation plan", "milestones", "implementation strategy"),
    "dependencies": ("dependencies & execution order", "prerequisites"),
    "testing": ("testing strategy", "test plan", "verification", "validation"),
    "rollback": ("rollback plan", "rollback strategy", "backing out"),
    "quality-gates": ("quality gate", "constitution check", "definition of ready"),
    "tasks": ("task list", "work items", "checklist"),
    # decision records and closing documents
    "alternatives": ("alternatives considered", "considered options", "options considered", "rejected ideas"),
    "consequences": ("impact", "implications", "positive consequences", "negative consequences"),
    "what-built": ("what was built", "what was done", "implementation summary", "changes made", "what changed"),
    "limitations": ("known limitations", "known issues"),
    "lessons": ("lessons learned", "what we learned", "retrospective"),
}
"""Section names, each with its alternative headings."""

_NUMBER = re.compile(r"^\W*(?:\d+(?:\.\d+)*[.):]?\s+)?")
_ASIDE = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]|['’`*_]|<!--.*?-->")
_WORD = re.compile(r"\w+")
_MORE = re.compile(r"\s(?:and|for|[-–—&/])\s|[:/,–—]")
"""Separates a section name from the rest of a heading: "Next steps for the importer", "Status: half done"."""
_BOLD_LINE = re.compile(r"^ {0,3}(\*\*|__)(?=\S)([^*_\n]+)\1:?[ \t]*$", re.MULTILINE)
_BOLD_LEVEL = 7
_FILLING = frozenset({"and", "the", "a", "of"})


def slug(heading: str) -> str:
    """Return a heading as a name: "## 7. OPEN QUESTIONS (mandatory)" is "open-questions". "" if it has no words."""
    plain = _NUMBER.sub("", _ASIDE.sub("", heading).casefold())
    words = _WORD.findall(plain)
    return "-".join([word for word in words if word not in _FILLING] or words)


_NAMES_OF: dict[str, frozenset[str]] = {}
for _name, _headings in VOCABULARY.items():
    for _heading in _headings:
        _NAMES_OF[slug(_heading)] = _NAMES_OF.get(slug(_heading), frozenset()) | {_name}


class HeadedSection(NamedTuple):
    """A section under a heading, up to the next heading of its level (1 to 6, 7 for a line in bold) or a higher one.
    The heading begins at `start`, the text below it at `inner`."""

    heading: str
    level: int
    start: int
    inner: int
    end: int


@dataclass(frozen=True, slots=True)
class NamedSection:
    """A section found by its heading: the requested name, the offsets including the heading, and the heading."""

    name: str
    start: int
    end: int
    heading: str


def headed_sections(text: str, *, bold: bool = False) -> list[HeadedSection]:
    """Return all headings that have words, in order. With `bold`, lines entirely in bold are headings of the lowest
    level. Line ends must be "\\n"."""
    found: list[HeadedSection] = []
    open_ones: list[int] = []  # places in `found` of sections that have not ended yet
    inner = -1
    for block in (*(_with_bold_lines(text) if bold else blocks(text)), MarkdownBlock(len(text))):
        if inner >= 0:
            found[inner] = found[inner]._replace(inner=block.start)
            inner = -1
        if block.kind != "heading":
            continue
        # A heading ends all open sections of its level and of lower ones.
        while open_ones and found[open_ones[-1]].level >= block.level:
            at = open_ones.pop()
            found[at] = found[at]._replace(end=block.start)
        if not block.heading:
            continue
        inner = len(found)
        open_ones.append(inner)
        name = plain_text(block.heading) or block.heading
        found.append(HeadedSection(name, block.level, block.start, len(text), len(text)))
    return found


def beginning(heading: str) -> str:
    """Return the slug of the part of a heading before its first separator."""
    return slug(_MORE.split(heading, maxsplit=1)[0])


def _with_bold_lines(text: str) -> Iterator[MarkdownBlock]:
    found = list(blocks(text))
    for block, following in zip(found, (*found[1:], MarkdownBlock(len(text))), strict=True):
        yield block
        for line in _BOLD_LINE.finditer(text, block.start, following.start) if block.kind == "text" else ():
            yield MarkdownBlock(line.start(), "heading", _BOLD_LEVEL, line[2])
            yield MarkdownBlock(min(line.end() + 1, len(text)))


def answering(headings: Iterable[str], name: str) -> list[int]:
    """Return the indexes of the headings that match a section name: those equal to it, else those that the vocabulary
    lists for it."""
    wanted = slug(name)
    slugs = [slug(heading) for heading in headings]
    own = [at for at, one in enumerate(slugs) if one and one == wanted]
    return own or [at for at, one in enumerate(slugs) if wanted in _NAMES_OF.get(one, ())]


def named_sections(text: str, names: Iterable[str]) -> Iterator[NamedSection]:
    """Yield the sections of these names in a text, name by name, and several if several headings match.

    If no whole heading matches a name, headings that begin with it and lines in bold are tried. A match within a
    section of the same name is part of that section.
    """
    known = headed_sections(text, bold=True)
    headings = [one.heading for one in known]
    first = list(map(beginning, headings))
    below = [at for at, one in enumerate(known) if one.level < _BOLD_LEVEL]
    for name in names:
        end = -1
        # Real headings first; beginnings of headings and bold lines only if none of them matches.
        places = [below[at] for at in answering([headings[at] for at in below], name)]
        for at in places or answering(first, name):
            if known[at].start >= end:
                end = known[at].end
                yield NamedSection(name, known[at].start, end, known[at].heading)


def spellings(name: str) -> tuple[str, ...]:
    """Return the slugs of all headings that match a section name."""
    return tuple(dict.fromkeys((slug(name), *(one for one, names in _NAMES_OF.items() if slug(name) in names))))
