"""Declares and withdraws links in the front matter of files, together or not at all (feature M7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from speckit_memory.config.workspace.formats import PLAIN
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import document_file
from speckit_memory.memory.editing.document_file import DocumentFile
from speckit_memory.memory.editing.link_edit import edit_links
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.parsing.declarations.causal_links import VOCABULARY
from speckit_memory.memory.store.records import Link, Relation

_NOT_EDITABLE = frozenset({"E010", "E013", "E014", "E101"})
"""Errors that mean a file cannot be edited at all; others are raised."""


class DocumentLinks:
    """Declares and withdraws links in the files below a root; the caller indexes the changed files."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, tuple[DocumentFile, DocumentFile]] = {}

    @property
    def changed(self) -> tuple[str, ...]:
        """The keys of the files written."""
        return tuple(key for key, (old, new) in self._files.items() if old.data != new.data)

    def declare(self, source: str, target: str, relation: Relation, strength: float, evidence: str) -> tuple[Link, str]:
        """Declare an edge in the front matter of its source, or of its target for a reversed word of `VOCABULARY`.

        Args:
            source: Key of the source.
            target: Key of the target.
            relation: The relation of the edge.
            strength: Strength of the edge in [0, 1].
            evidence: May begin with a word of `VOCABULARY` and ": ", which then declares the link.

        Returns:
            The declared link, without secrets, and why the file could not be written, "" if it was.
        """
        rules = load_workspace_config(self._root).saving
        if rules.secrets != "keep":
            evidence = secrets.redact(evidence, addresses=rules.secrets == "all")[0]
        # Evidence of the form "word: target" is how declared links are stored: write it back the same way.
        word, _, written = evidence.strip().partition(": ")
        meaning = VOCABULARY.get(word)
        if meaning is None or meaning.relation != relation or not written or meaning.strength != strength:
            link = Link(relation, target, strength, evidence.strip() or f"{relation}: {target}")
        elif meaning.reverse:
            source, link = target, Link(relation, written, strength, evidence.strip(), reverse=True)
        else:
            link = Link(relation, written, strength, evidence.strip())

        def says_otherwise(other: Link) -> bool:
            edge = (other.relation, other.reverse, other.target)
            return edge in ((relation, link.reverse, link.target), (relation, False, target)) and other != link

        return link, self._change(source, lambda text: edit_links(text, says_otherwise, [link], source))

    def withdraw(self, key: str, relation: Relation, reverse: bool, targets: Collection[str]) -> str:
        """Remove the links of a relation to these targets from a document.

        Args:
            key: Key of the document.
            relation: The relation of the links.
            reverse: Whether they are declared by a reversed word of `VOCABULARY`.
            targets: Targets as written in the document.

        Returns:
            Why the links could not be removed, "" if they were.
        """

        def meant(link: Link) -> bool:
            return (link.relation, link.reverse) == (relation, reverse) and link.target in targets

        before = self._files.get(key)
        reason = self._change(key, lambda text: edit_links(text, meant, [], key))
        return reason or ("it is declared in its text" if self._files.get(key) == before else "")

    @contextmanager
    def part(self) -> Iterator[None]:
        """Group changes: if one fails, the files get back the contents they had at the beginning of the block.

        A file that another program has changed meanwhile is left alone.
        """
        before = dict(self._files)
        try:
            yield
        except BaseException:
            for key, (old, new) in self._files.items():
                held = before[key][1] if key in before else old
                if held.data != new.data:
                    with suppress(SpeckitError):
                        new.replace(held.text)
            self._files = before
            raise

    def _change(self, key: str, change: Callable[[str], str]) -> str:
        try:
            if PurePosixPath(key).suffix.lower() not in PLAIN:
                return f"{key} is not Markdown"
            # Remember the first version for undoing, and continue from the latest.
            first, current = self._files.get(key) or (document_file.open_document(self._root, key),) * 2
            text = change(current.text)
            if text != current.text:
                self._files[key] = first, current.replace(text)
        except SpeckitError as error:
            if error.code not in _NOT_EDITABLE:
                raise
            return error.problems[0].message
        return ""
