"""Builds a document from a source: parses, classifies, splits into passages and analyses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import PurePosixPath

from speckit_memory.config.workspace.formats import FORMATS
from speckit_memory.config.workspace.options import SHIPPED_RULES, SavingRules
from speckit_memory.config.yaml.signal_words import BOOSTS, signal_words
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.memory.intake import preflight
from speckit_memory.memory.intake.intake import Intake
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.lifecycle.tables import TIER_WEIGHTS
from speckit_memory.memory.parsing import classify, dates
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.parsing.declarations import causal_links, front_matter, metadata
from speckit_memory.memory.parsing.declarations.metadata import MetadataField
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.parsing.formats import html, restructuredtext
from speckit_memory.memory.parsing.formats.readable import Readable
from speckit_memory.memory.parsing.keys import folder_of, without_suffix
from speckit_memory.memory.parsing.limits import (
    MOST_DISTINCT_WORDS,
    MOST_LINKS,
    MOST_PASSAGES,
    MOST_TRIGGERS,
    MOST_WORDS,
    SHORT,
    Limits,
    few,
)
from speckit_memory.memory.parsing.markdown import anchors, chunks, title
from speckit_memory.memory.parsing.text_links import text_links
from speckit_memory.memory.scanning.metadata_file import parse_metadata, read_metadata
from speckit_memory.memory.store.records import EXPIRES, Chunk, Document, Tier, known_time
from speckit_memory.pipeline.arithmetic import german

# Drops passages of a long document with too little content to be searched (features I5, R7).
#
# The score of a passage is 0.4 times its density, plus 0.6 if it is in an ANCHOR section, which an author marked. The
# density is the share of its characters that belong to words, outside link targets and comments. Lists of links, rules,
# and tables of symbols score below 0.3; prose and code do not.

ANCHORED = 0.6
"""Weight of being in an ANCHOR section."""
DENSE = 0.4
"""Weight of the density."""
LEAST = 0.3
"""Score below which a passage is dropped."""

_NOTHING = re.compile(
    r"<!--(?s:.*?)(?:-->|\Z)|\]\([^)\s]*(?:\s[^)]*)?\)|<?https?://\S+|^[ \t]*\[[^\]\n]+\]:.*$", re.MULTILINE
)
"""Comments, link targets, addresses and link reference definitions."""
_WORD = re.compile(r"\w{2,}|[^\W\d_]")
_BLANK = re.compile(r"\s+")


def density(text: str) -> float:
    """Return the share of non-blank characters that belong to words, in [0, 1]; 0 for a blank text."""
    whole = len(_BLANK.sub("", text))
    said = _NOTHING.sub(" ", text)
    return sum(map(len, _WORD.findall(said))) / whole if whole else 0.0


def score(chunk: Chunk) -> float:
    """Return how much content a passage has, in [0, 1]."""
    return ANCHORED * bool(chunk.anchor) + DENSE * density(chunk.text)


def thin_passages(passages: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the passages with a sufficient score, in order. The first one always stays: it represents the document."""
    for number, chunk in enumerate(passages):
        if not number or score(chunk) >= LEAST:
            yield chunk


DOCUMENT_WEIGHTS = {
    "spec": 0.8,
    "decision_record": 0.8,
    "plan": 0.7,
    "tasks": 0.6,
    "implementation_summary": 0.6,
    "research": 0.6,
    "checklist": 0.5,
    "handover": 0.5,
}
"""Weights of spec documents that declare no tier."""

OPENING = 300
"""Characters at the start of a text in which signal words count. In whole texts they mean nothing: 82 % of 736 long
documents contain "like" or "want" somewhere, but only 5 % in their opening."""


def importance_weight(declared: float | None, declared_tier: Tier | None, tier: Tier, kind: str, text: str) -> float:
    """Return the weight of a memory: declared, else by its declared tier, its kind of document or its tier in force.

    Args:
        declared: The declared weight, returned unchanged.
        declared_tier: The declared tier, if any.
        tier: The tier in force.
        kind: The document type.
        text: Title and body; a correction in its opening adds 0.2 and a preference 0.1, up to a weight of 1.
    """
    if declared is not None:
        return declared
    base = TIER_WEIGHTS[tier] if declared_tier else DOCUMENT_WEIGHTS.get(kind, TIER_WEIGHTS[tier])
    # Rounded: 0.7 + 0.1 is 0.7999999999999999 in float64, and equal weights should compare equal.
    return round(min(base + sum(BOOSTS[sign] for sign in signal_words(text[:OPENING])), 1.0), 6)


OWN_WORDS = 20_000
"""Distinct new words of one document after which the analyser's cache is cleared."""
_TEXT = re.compile(r"\S")
_READERS: dict[str, Callable[[str], Readable]] = {"rst": restructuredtext.read, "html": html.read}
"""The readers of formats other than Markdown and plain text."""


def content_hash(text: str) -> str:
    """Return the SHA-256 of a decoded text, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def build(
    source: Source,
    analyser: Analyser,
    sizes: chunks.ChunkSizes = chunks.DEFAULT_SIZES,
    targets: list[tuple[str, Where]] | None = None,
    rules: SavingRules = SHIPPED_RULES,
    taken_in: Intake | None = None,
) -> tuple[Document, list[Problem]]:
    """Build the document of a source, ready to be written.

    Sections that `init` wrote for agents are left out first, then recalled text and secrets; a document of poor quality
    is mended. Lines keep their numbers. The content hash is that of the given text, so that an unchanged file is
    recognised. The date is unknown if the document states none and has no file time; 1970-01-01, which archives write,
    counts as unknown too.

    Args:
        source: The text with its key, and its file if it has one.
        analyser: Tokenises title, triggers, path and passages.
        sizes: The passage sizes, in characters.
        targets: Receives the target of every link with its place; they are resolved once all documents are stored.
        rules: The saving rules of the workspace.
        taken_in: Receives the omissions and repairs.

    Returns:
        The document, and the problems found.
    """
    noted = taken_in if taken_in is not None else Intake()
    whole = clean(source.text)
    text = noted.text(whole, rules)
    source = noted.source(source, rules)
    front, problems = front_matter.parse(text, source.key)
    described = _described(source, noted, rules, problems)
    page = _readable(source, text[front.body_start :])
    body = page.text
    first = front.body_line
    limits = Limits(source.key, first, lambda line: page.line(line, first))
    if page.limit:
        limits.note_at(page.limit, page.limit_line + first - 1)
    # Anchors and links are found in the converted text; `page.placed` maps their lines to those of the file.
    sections, broken_anchors = anchors.find(body, source.key, front.body_line, limits)
    body_links, broken_links = causal_links.body_links(body, source.key, front.body_line, limits)
    problems += page.placed([*broken_anchors, *broken_links], first) + noted.problems(source.key)
    if not body or body.isspace():
        problems.append(preflight.no_text(text, source.key, front.body_line, noted.only_generated))

    name = (
        title.choose(front.title, body, source.key, page.title)
        if source.title is None
        else title.normalise(clean(source.title))
    )
    declared_tier = source.tier or front.tier
    kind = classify.document_type(source.key)
    description = front.description or page.description
    tier = declared_tier or (Tier.CONSTITUTIONAL if kind == "constitutional" else Tier.NORMAL)
    triggers = tuple(dict.fromkeys((*source.triggers, *front.triggers)))
    if len(triggers) > MOST_TRIGGERS:
        limits.note_at("trigger", 1)
        triggers = triggers[:MOST_TRIGGERS]
    triggers, sections = noted.mended(triggers, sections, len(broken_anchors), body, name, source.key, rules)
    noted.memory_type = classify.memory_type(front.memory_type, declared_tier, source.key, name, triggers)
    declared = (*front.fields, *metadata.head_of(body).fields, *described)
    # Creation time, in order of precedence: source, front matter, metadata fields, first line, file name.
    # File and commit times only fill in what is still unknown.
    told = front.created_at if source.created_at is None else source.created_at
    if told is None:
        told = next((time for time in _dates(declared, body, source.key) if time is not None), None)
    told = told or None
    created, changed = known_time(told), told
    if source.mtime_ns:
        changed = source.mtime_ns / 1e9
    if source.committed:
        created = source.committed.first if created is None else created
        changed = changed if source.committed.last is None else source.committed.last
    problems += _mistaken_times(source.key, {"created": told, "last changed": changed})
    changed = known_time(changed)
    links = front.links | {link: page.place(where, first) for link, where in body_links.items()}
    if len(links) > MOST_LINKS:
        limits.note_at("link", list(links.values())[MOST_LINKS].line)
        links = dict(islice(links.items(), MOST_LINKS))
    if targets is not None:
        targets += [(link.target, where) for link, where in links.items()]
    # All generators from here to `passages`: a long document is split and analysed passage by passage.
    cut = chunks.split(body, sections, sizes, first, limits)
    shown = page.passages(thin_passages(cut) if rules.passages == "thinned" else cut, first)
    in_german = german.is_german(f"{name}\n{body[:OPENING]}")
    passages = _analysed(shown, analyser, metadata.words_of(declared), in_german)
    document = Document(
        key=source.key,
        title=name or source.key,
        body=body,
        content_hash=content_hash(whole),
        folder=folder_of(source.key) if source.folder is None else source.folder,
        tier=tier,
        context_type=classify.context_type(front.context_type, name, body),
        document_type=kind,
        memory_type=noted.memory_type.kind,
        spec_level=classify.spec_level(kind, text, _siblings(source)),
        triggers=triggers,
        links=tuple(islice((*links, *text_links(body, declared)), MOST_LINKS)),
        chunks=tuple(passages if len(body) <= SHORT else _as_many_as_fit(passages, analyser, limits)),
        title_tokens=analyser.held(name, in_german),
        trigger_tokens=tuple(token for phrase in triggers for token in analyser.held(phrase, in_german)),
        path_tokens=analyser.held(without_suffix(source.key) if source.file else source.key, in_german),
        created_at=changed if created is None else created,
        updated_at=changed,
        mtime_ns=source.mtime_ns,
        expires_at=front.expires_at,
        importance_weight=importance_weight(
            front.importance_weight, declared_tier, tier, kind, f"{name}\n{_opening(body)}"
        ),
        extra=_extra(front, description),
    )
    return document, [*few(problems), *limits.problems()]


def _dates(declared: Iterable[metadata.MetadataField], body: str, key: str) -> Iterator[float | None]:
    """Yield the creation times by declared fields, by the first line and by the file name, in this order."""
    yield metadata.created_in(declared)
    yield dates.opening_time(body)
    yield dates.named_time(key)


def _extra(front: front_matter.FrontMatter, description: str) -> dict[str, str]:
    """Return the other declarations as text. The declared expiry is kept because use moves the one in force."""
    expires = {} if front.expires_at is None else {EXPIRES: repr(front.expires_at)}
    return front.extra | ({"description": description} if description else {}) | expires


def _readable(source: Source, body: str) -> Readable:
    """Return the body of a source as Markdown, by the suffix of its file; all else is read as Markdown."""
    suffix = PurePosixPath(source.key).suffix.lower() if source.file else ""
    reader = next(
        (_READERS[name] for name, suffixes in FORMATS.items() if name in _READERS and suffix in suffixes), None
    )
    return reader(body) if reader else Readable(body)


def _analysed(passages: Iterable[Chunk], analyser: Analyser, declared: str, in_german: bool) -> Iterator[Chunk]:
    """Yield the passages with their tokens, by the passage's language or, if undetected, that of the document. The
    tokens of the declared fields are added to the first passage; its text stays unchanged."""
    before = analyser.tokens(declared)
    for chunk in passages:
        text = anchors.without_tags(chunk.text)
        yield replace(chunk, tokens=before + analyser.held(text, german.is_german(text, in_german)))
        # Only the first passage has the declared words; emptied here, after the first round.
        before = ()


def _as_many_as_fit(passages: Iterable[Chunk], analyser: Analyser, limits: Limits) -> Iterator[Chunk]:
    """Yield the analysed passages of a long text up to the limits of a document.

    To bound memory, equal tokens share one object and the analyser's cache is cleared every `OWN_WORDS` new words.
    """
    words, known, kept = 0, dict[str, str](), OWN_WORDS
    for number, chunk in enumerate(passages):
        words += len(chunk.tokens)
        # setdefault interns: every later occurrence of a token refers to the first string object.
        tokens = tuple(map(known.setdefault, chunk.tokens, chunk.tokens))
        if len(known) > kept:
            analyser.forget()
            kept = len(known) + OWN_WORDS
        met = {
            "passage": number >= MOST_PASSAGES,
            "word": words > MOST_WORDS,
            "distinct word": len(known) > MOST_DISTINCT_WORDS,
        }
        if limit := next((limit for limit, over in met.items() if over), ""):
            limits.note_at(limit, chunk.first_line)
            return
        yield replace(chunk, tokens=tokens)


def _described(source: Source, noted: Intake, rules: SavingRules, problems: list[Problem]) -> tuple[MetadataField, ...]:
    """Return the fields of the document's metadata file; a file that cannot be read adds a problem."""
    try:
        name, text = read_metadata(source.file, source.key) if source.file else ("", "")
    except SpeckitError as error:
        problems += error.problems
        return ()
    if not text:
        return ()
    fields, found = parse_metadata(noted.metadata(text, rules), name)
    problems += found
    return fields


def _mistaken_times(key: str, times: dict[str, float | None]) -> list[Problem]:
    """Return a problem for every impossible time of a document; a time that both share is reported once."""
    wrong: dict[float, str] = {}
    for what, time in times.items():
        if time is not None and known_time(time) is None:
            wrong.setdefault(time, what)
    return [
        Problem("E095", f"{what} {time:.0f} seconds after 1970: the time is left unknown", where=Where(key, 1, 1))
        for time, what in wrong.items()
    ]


def _opening(body: str) -> str:
    """Return the first `OPENING` characters of a text, from its first non-blank one."""
    text = _TEXT.search(body)
    return body[text.start() : text.start() + OPENING] if text else ""


def _siblings(source: Source) -> Callable[[], Set[str]]:
    folder = source.file.parent if source.file else None

    def names() -> Set[str]:
        with suppress(OSError):  # it may have gone since the file was read
            return frozenset(path.name for path in folder.iterdir()) if folder else frozenset()
        return frozenset()

    return names
