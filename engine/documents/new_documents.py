"""Creates the documents of texts that are to be remembered, with the links that a save asks for (feature T4)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os.path import lexists
from pathlib import Path

from speckit_memory.config.workspace.formats import PLAIN
from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.config.workspace.private_folders import KeyTest, closed_problem, nothing_closed
from speckit_memory.engine.recording.screening import screen_text, storable
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.editing import document_file, front_matter_edit, naming
from speckit_memory.memory.editing.document_file import DocumentFile
from speckit_memory.memory.editing.link_edit import edit_links
from speckit_memory.memory.editing.update_values import check_values
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.intake.index_report import SavedLink, SaveResult
from speckit_memory.memory.intake.secrets import Secret
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.declarations.causal_links import VOCABULARY
from speckit_memory.memory.parsing.declarations.front_matter import FrontMatter
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.parsing.markdown.title import choose, first_heading
from speckit_memory.memory.parsing.summarising import sentences
from speckit_memory.memory.scanning.scanner import LARGEST_FILE
from speckit_memory.memory.scanning.selection import refusal
from speckit_memory.memory.store.records import Link, MemoryRecord

LOOKED_AT = 4_000
"""Characters in which the first sentence is searched."""
LONGEST_SAID, SHORTEST_CLAUSE = 80, 24
"""Maximum length of a sentence used as a title, and minimum length of a part of one."""
_CLAUSE = re.compile(r"[,;:](?=\s)|\s(?=[(–—-]\s?|because |since |so that |which |while )|[、，；：]")
RETRIES = 20
"""Attempts to find another file name if other processes take the free one first."""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document that is not written yet. `folder` and `title` yield another name; `folder` is None for a given
    path."""

    key: str
    text: str
    title: str
    folder: str | None


def draft_document(
    root: Path,
    content: str,
    title: str,
    folder: str | None,
    path: str,
    tier: str,
    triggers: Sequence[str],
    closed: KeyTest = nothing_closed,
) -> tuple[NewDocument, tuple[Secret, ...]]:
    """Builds the document of a text.

    Args:
        root: The workspace.
        content: The text.
        title: The title; "" to derive one from the text.
        folder: The folder of the file; None for "memories".
        path: The path of the file; "" to name it after the title.
        tier: The importance tier to declare; "" for none.
        triggers: The trigger phrases to declare.
        closed: Tells which keys lie in private folders of others.

    Returns:
        The draft, and the secrets that were removed from the text.

    Raises:
        SpeckitError: E030, E014 and E101 for a document that cannot be written.
    """
    title, triggers = screen_text(title, root)[0], storable(tuple(triggers), root)
    text = clean(content).strip("\n") + "\n"
    if not text.strip():
        raise SpeckitError("E030", "the content is empty: there is nothing to remember")
    if len(text.encode()) > LARGEST_FILE // 2:
        raise SpeckitError("E013", f"the content has {len(text):,} characters; at most {LARGEST_FILE // 2:,} fit")
    if path and folder is not None:
        raise SpeckitError("E030", "give a path or a folder, not both")
    if kind := secrets.secret_kind_of_name(path or folder or ""):
        raise SpeckitError.of([secrets.in_name(path or folder or "", kind)])
    key = _key(root, path or folder or (naming.FOLDER if folder is None else "."), closed, is_folder=not path)
    text, left_out = screen_text(text, root)
    found, problems = front_matter.parse(text, "content")
    if unread := front_matter.unread(text, found, problems):
        raise front_matter_edit.unreadable("content", unread)
    body = text[found.body_start :]
    name = title or choose(found.title, body, _first_words(body))
    values = check_values(title or None, triggers or None, tier or None, None, empty=True)
    if not found.title and not first_heading(body):
        values.setdefault("title", name)
        text = f"{text[: found.body_start]}# {' '.join(name.split())}\n\n{body}"
    if found.created_at is None:
        values["created_at"] = datetime.now(UTC).date().isoformat()
    text = front_matter_edit.edit_front_matter(text, values, "content")
    if path:
        return NewDocument(key, text, name, None), left_out
    return NewDocument(naming.free_key(key, name, lambda each: lexists(root / each)), text, name, key), left_out


def written_before(root: Path, draft: NewDocument, *, declared: bool) -> str:
    """The key of the file that already holds the text of a draft, under one of its possible names; "" if there is
    none. `declared`: it must have the same declarations, too, but for its date."""
    keys = [draft.key] if draft.folder is None else naming.possible_keys(draft.folder, draft.title)
    for key in keys:
        try:
            text = clean(document_file.open_document(root, key).text)
        except SpeckitError:
            return ""
        if _content(text, declared) == _content(draft.text, declared):
            return key
    return ""


def _content(text: str, declared: bool) -> tuple[str, FrontMatter | None]:
    found = front_matter.parse(text, "")[0]
    undated = replace(found, created_at=None, fields=(), body_start=0, body_line=1)
    return text[found.body_start :].strip(), undated if declared else None


def create_file(root: Path, draft: NewDocument) -> DocumentFile:
    """Creates the file of a draft without overwriting another; if the name was taken meanwhile, uses the next one."""
    key = draft.key
    for attempt in range(RETRIES):
        try:
            return document_file.create(root, key, draft.text)
        except SpeckitError:
            if draft.folder is None or attempt + 1 == RETRIES or not lexists(root / key):
                raise
            key = naming.free_key(draft.folder, draft.title, lambda each: lexists(root / each))
    raise AssertionError  # the last attempt returns or raises


def taken_back(file: DocumentFile) -> None:
    """Removes a file that was just written, unless it has changed since."""
    with suppress(SpeckitError, OSError):
        if document_file.open_document(file.root, file.key).data == file.data:
            file.path.unlink()


def _key(root: Path, given: str, closed: KeyTest, *, is_folder: bool) -> str:
    """A path below the root as a key ("" is the root). Raises E014 for a path where nothing is indexed."""
    top = Path(os.path.realpath(root))
    led = Path(os.path.realpath(top / given)) if "\0" not in given else Path("/")
    if not led.is_relative_to(top):
        message = f"'{given}' is outside the workspace '{top}'".replace("\0", "\\x00")
        raise SpeckitError("E014", message, actions=("give a path inside the workspace",))
    parts = led.relative_to(top).parts
    if closed("/".join(parts) + "/" * is_folder):
        raise SpeckitError.of([closed_problem(given)])
    if reason := refusal(parts, is_folder, SourcePatterns()) if parts else "":
        raise SpeckitError("E014", f"'{given}' is {reason}", actions=("choose another path",))
    if not is_folder and led.suffix.lower() not in PLAIN:
        hint = f"Documents are {', '.join(sorted(PLAIN))} files."
        raise SpeckitError("E014", f"'{given}' is not a document", hint=hint)
    if is_folder and lexists(led) and not led.is_dir():
        raise SpeckitError("E014", f"'{given}' is a file", actions=("give a folder",))
    return "/".join(parts)


def _first_words(body: str) -> str:
    """A file name from the text's first sentence, for texts without a title (feature I11).

    A long sentence is cut at a comma or the like; Markdown markup is ignored.
    """
    said = next(filter(None, sentences(body[:LOOKED_AT])), "") or " ".join(body[:LOOKED_AT].split())
    if len(said) > LONGEST_SAID:
        clauses = [border.start() for border in _CLAUSE.finditer(said, SHORTEST_CLAUSE, LONGEST_SAID)]
        said = said[: clauses[-1]] if clauses else said[:LONGEST_SAID].rsplit(" ", 1)[0]
    words = said.replace("/", " ").strip().rstrip(".!。！,;: ")
    return f"{words or 'note'}.md"


def resolve_links(
    get: Callable[[int | str], MemoryRecord],
    root: Path,
    path: str | Path,
    supersedes: Iterable[int | str],
    relates_to: Iterable[int | str],
) -> tuple[Link, ...]:
    """Resolves the links of a save.

    Args:
        get: Finds a memory.
        root: The workspace.
        path: The document that is saved; "" for a new one.
        supersedes: Memories, by id or key, that the document replaces.
        relates_to: Memories, by id or key, that it is related to.

    Raises:
        SpeckitError: E080 for each unknown memory, E030 for a link of the document to itself.
    """
    problems: list[Problem] = []
    links: dict[Link, None] = {}
    for word, names in (("supersedes", supersedes), ("related_to", relates_to)):
        for name in names:
            try:
                key = get(name).key
            except SpeckitError as error:
                problems += error.problems
                continue
            if path and os.path.realpath(root / key) == os.path.realpath(path):
                problems.append(Problem("E030", f"{key} cannot have a link to itself"))
            meaning = VOCABULARY[word]
            links[Link(meaning.relation, key, meaning.strength, f"{word}: {key}")] = None
    if problems:
        raise SpeckitError.of(problems)
    return tuple(links)


def declare_links(text: str, links: tuple[Link, ...]) -> str:
    """The text of a new document with these links in its front matter. Raises E101 if that cannot be edited."""
    return edit_links(text, lambda _: False, links, "content")


def settle_verdict(saved: SaveResult, links: tuple[SavedLink, ...]) -> SaveResult:
    """The save's report with its links. A link "supersedes" settles a verdict about the same memory."""
    verdict = saved.verdict
    if verdict and verdict.key in {link.target for link in links if link.relation == "supersedes"}:
        verdict = replace(verdict, kind="supersede", done=f"{verdict.key} is superseded, as requested")
    return replace(saved, links=links, verdict=verdict)
