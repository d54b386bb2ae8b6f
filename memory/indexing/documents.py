"""A source becomes a document: parsed, classified, cut into passages and analysed."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePosixPath

from config.errors import Problem, Where
from memory.indexing import anchors, causal_links, chunks, classify, front_matter, preflight, title
from memory.indexing.analysis import Analyser
from memory.indexing.encoding import clean
from memory.indexing.importance import importance_weight
from memory.indexing.sources import Source
from memory.store.records import Chunk, Document, Tier


def content_hash(text: str) -> str:
    """SHA-256 of a decoded text, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def build(
    source: Source,
    analyser: Analyser,
    sizes: chunks.ChunkSizes = chunks.DEFAULT_SIZES,
    targets: list[tuple[str, Where]] | None = None,
) -> tuple[Document, list[Problem]]:
    """The document of a source, ready to be written, and what is wrong with it.

    What is neither dated nor a file with a time has no known date, and 1970-01-01 is none either: archives write it.

    The target of every link is added to `targets` with its place; whether it is there can only be said when all
    documents are.
    """
    text = clean(source.text)
    front, problems = front_matter.parse(text, source.key)
    body = text[front.body_start :]
    sections, broken_anchors = anchors.find(body, source.key, front.body_line)
    body_links, broken_links = causal_links.body_links(body, source.key, front.body_line)
    problems += broken_anchors + broken_links
    if not body.strip():
        problems.append(preflight.no_text(text, source.key, front.body_line))

    name = title.choose(front.title, body, source.key) if source.title is None else title.normalise(clean(source.title))
    declared_tier = source.tier or front.tier
    kind = classify.document_type(source.key)
    tier = declared_tier or (Tier.CONSTITUTIONAL if kind == "constitutional" else Tier.NORMAL)
    triggers = tuple(dict.fromkeys((*source.triggers, *front.triggers)))
    created = (front.created_at if source.created_at is None else source.created_at) or None
    changed = source.mtime_ns / 1e9 if source.mtime_ns else created
    links = front.links | body_links
    if targets is not None:
        targets += [(link.target, where) for link, where in links.items()]
    document = Document(
        key=source.key,
        title=name or source.key,
        body=body,
        content_hash=content_hash(text),
        folder=_folder(source.key) if source.folder is None else source.folder,
        tier=tier,
        context_type=classify.context_type(front.context_type, name, body),
        document_type=kind,
        memory_type=classify.memory_type(front.memory_type, declared_tier, source.key, name, triggers),
        spec_level=classify.spec_level(kind, text, _siblings(source)),
        triggers=triggers,
        links=tuple(links),
        chunks=tuple(_analysed(chunk, analyser) for chunk in chunks.split(body, sections, sizes, front.body_line)),
        title_tokens=analyser.tokens(name),
        trigger_tokens=tuple(token for phrase in triggers for token in analyser.tokens(phrase)),
        path_tokens=analyser.tokens(str(PurePosixPath(source.key).with_suffix("")) if source.file else source.key),
        created_at=changed if created is None else created,
        updated_at=changed,
        mtime_ns=source.mtime_ns,
        importance_weight=importance_weight(
            front.importance_weight, declared_tier, tier, kind, f"{name}\n{body.lstrip()}"
        ),
        extra=front.extra | ({"description": front.description} if front.description else {}),
    )
    return document, problems


def _analysed(chunk: Chunk, analyser: Analyser) -> Chunk:
    return replace(chunk, tokens=analyser.tokens(anchors.without_tags(chunk.text)))


def _folder(key: str) -> str:
    folder = str(PurePosixPath(key).parent)
    return "" if folder == "." else folder


def _siblings(source: Source) -> Callable[[], Set[str]]:
    folder = source.file.parent if source.file else None
    return lambda: frozenset(path.name for path in folder.iterdir()) if folder else frozenset()
