"""The user's own memories as documents of a dataset, with the headings of their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.memory.store.records import Tier

_PAGE = 500
_FENCED = re.compile(r"^ {0,3}(?P<fence>```|~~~)(?s:.*?)(?:^ {0,3}(?P=fence)|\Z)", re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OwnDocument:
    """A memory as the material for queries. `memory` is its id, `content` the digest of its text."""

    memory: int
    content: str
    document: DatasetDocument
    headings: tuple[str, ...]


def own_documents(memory: Memory) -> list[OwnDocument]:
    """All memories that a search may return, by key; deprecated ones are left out."""
    return list(_documents(memory))


def _documents(memory: Memory) -> Iterator[OwnDocument]:
    passages, offset, total = memory.session.view().passages, 0, 1
    while offset < total:
        page, total = memory.list(sort="key", limit=_PAGE, offset=offset)
        offset += _PAGE
        for record in page:
            if record.tier == Tier.DEPRECATED:
                continue
            document = DatasetDocument(
                key=record.key,
                title=record.title,
                text=passages.body(record.id),
                folder=record.folder,
                tier=record.tier,
                triggers=record.triggers,
                created_at=record.created_at,
            )
            yield OwnDocument(record.id, record.content_hash, document, tuple(_headings(document)))


def _headings(document: DatasetDocument) -> dict[str, None]:
    """The distinct headings of a Markdown text below its title; fenced code is ignored."""
    text = _FENCED.sub("", document.text)
    found = (match[1].strip() for match in _HEADING.finditer(text))
    return dict.fromkeys(heading for heading in found if heading.casefold() != document.title.casefold())
