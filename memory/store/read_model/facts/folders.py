"""Describes each folder of a snapshot by a sentence and key words (feature C13)."""

from __future__ import annotations

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.read_model.facts.columns import UNKNOWN, Columns
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.ports import FolderDescription, Ids
from speckit_memory.pipeline.process.clock import opening

LONGEST_SENTENCE = 150
"""Characters, including the ellipsis."""
MOST_KEYWORDS = 200
"""Of more words, those that occur in most members of the folder are kept."""
INTRODUCTIONS = ("spec", "readme", "index")
"""Names of files that describe their folder, in order of preference."""
READ = 20_000
"""Characters of such a file that are read."""

LOOKED_AT = 2000
"""Characters of a line that are processed: the search for links takes quadratic time."""

_UNREAD = re.compile(r"<!--|^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_FIRST_LEVEL = re.compile(r"^ {0,3}(?:#[ \t]++(.*)|(\S.*)\n {0,3}=++[ \t]*+)$", re.MULTILINE)
_PROBLEM = re.compile(
    r"^ {0,3}#{2,6}[ \t].*\bproblem(?:[ \t]+statement|[ \t]*(?:&|and)[ \t]*purpose)\b.*$", re.IGNORECASE | re.MULTILINE
)
_NO_CONTENT = re.compile(r"[#|<]|\W*$")  # headings, tables, HTML, rules
_ITEM = re.compile(r"(?:>|[-*+]|\d+[.)])[ \t]+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[`*]+|__")
_TIERS = {tier: place for place, tier in enumerate(Tier)}


class FolderTable:
    """The folders of one state of the store. Implements `pipeline.ports.Folders`.

    A folder is described on demand; the description is kept until a member is added, changed or removed.
    """

    __slots__ = ("_columns", "_described", "_describing", "_known", "_moment")

    def __init__(
        self, moment: ReadPoint, columns: Columns, known: Mapping[str, FolderDescription] | None = None
    ) -> None:
        """`known` holds the descriptions, by folder, that are still valid for the state `columns`."""
        self._moment = moment
        self._columns = columns
        self._known = known or {}
        self._described: tuple[FolderDescription, ...] | None = None
        self._describing = threading.Lock()

    def described(self) -> tuple[FolderDescription, ...]:
        """One description per folder that directly contains memories, by folder name."""
        found = self._described
        if found is None:
            with opening(), self._describing:
                found = self._described
                if found is None:
                    found = self._complete()
        return found

    def advanced(self, moment: ReadPoint, columns: Columns, outdated: Ids) -> FolderTable:
        """The folders of the state `columns`; folders that contain or contained an outdated memory are undescribed."""
        described = self._described
        known = self._known if described is None else {found.folder: found for found in described}
        changed = {*_of(self._columns, outdated), *_of(columns, outdated)}
        return FolderTable(moment, columns, {folder: found for folder, found in known.items() if folder not in changed})

    def _complete(self) -> tuple[FolderDescription, ...]:
        members: defaultdict[str, list[int]] = defaultdict(list)
        for memory, folder in zip(self._columns.ids.tolist(), _of(self._columns, self._columns.ids), strict=True):
            members[folder].append(memory)
        with self._moment.read() as (connection, is_of_it):
            described = tuple(
                self._known.get(folder) or self._describe(connection, folder, members[folder])
                for folder in sorted(members)
            )
        if is_of_it:
            self._described = described
        return described

    def _describe(self, connection: Connection, folder: str, members: Sequence[int]) -> FolderDescription:
        holders: Counter[str] = Counter()
        for _, title, triggers, _ in loading.load_fields(connection, members):
            holders.update({token for text in (title, triggers) if text for token in text.split(" ")})
        keywords = sorted(holders, key=lambda token: (-holders[token], token))[:MOST_KEYWORDS]
        return FolderDescription(folder, self._sentence(connection, members), frozenset(keywords))

    def _sentence(self, connection: Connection, members: Sequence[int]) -> str:
        ids = np.array(members, np.int64)
        keys, titles, tiers = (self._columns.label(name, ids).tolist() for name in ("key", "title", "tier"))
        named = {key.rsplit("/", 1)[-1].rsplit(".", 1)[0].casefold(): place for place, key in enumerate(keys)}
        for place in (named[name] for name in INTRODUCTIONS if name in named):
            text = value(
                connection, "SELECT substr(body, 1, ?) FROM bodies WHERE memory_id = ?", (READ, members[place])
            )
            if found := first_sentence(text or ""):
                return found
        # No introduction: the title of the most important member, by tier, then key.
        return _shortened(titles[min(range(len(members)), key=lambda place: (_TIERS[tiers[place]], keys[place]))])


def first_sentence(text: str) -> str:
    """The subject of a Markdown text: its first level-one heading, else the first line below "Problem Statement" or
    "Problem & Purpose", else its first line of content. "" when it has none of them.

    Skips code blocks and comments; strips list, emphasis and link markup.
    """
    text = "".join(_read(text))
    if heading := _FIRST_LEVEL.search(text):
        opened = (heading[1] or "").rstrip(" \t").rstrip("#").rstrip(" \t")
        if found := _shortened(opened or heading[2] or ""):
            return found
    problem = _PROBLEM.search(text)
    return (_first_content(text[problem.end() :]) if problem else "") or _first_content(text)


def _read(text: str) -> Iterator[str]:
    """The text outside comments and fenced code. An unclosed comment is text; an unclosed fence lasts to the end."""
    at, closed = 0, text.rfind("-->")
    for mark in _UNREAD.finditer(text):
        if mark.start() < at or (not mark[1] and mark.end() > closed):
            continue
        yield text[at : mark.start()]
        if mark[1]:
            end = re.compile(rf"^ {{0,3}}{mark[1]}", re.MULTILINE).search(text, mark.end())
            at = end.end() if end else len(text)
        else:
            at = text.find("-->", mark.end()) + 3
    yield text[at:]


def _first_content(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((_shortened(_ITEM.sub("", line, 1)) for line in lines if not _NO_CONTENT.match(line)), "")


def _shortened(text: str) -> str:
    """One line without markup, cut at a space if there is one in its second half."""
    text = " ".join(_MARKS.sub("", _LINK.sub(r"\1", text[:LOOKED_AT])).split())
    if len(text) <= LONGEST_SENTENCE:
        return text
    kept = text[: LONGEST_SENTENCE - 1]
    border = kept.rfind(" ")
    return (kept[:border] if border > LONGEST_SENTENCE // 2 else kept) + "…"


def _of(columns: Columns, memories: Ids) -> list[str]:
    """The folder of each memory that is in the columns."""
    known = memories[columns.places(memories) != UNKNOWN]
    folders: list[str] = columns.label("folder", known).tolist()
    return folders
