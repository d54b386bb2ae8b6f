"""Validates a caller's question before anything runs, and reports all of its problems at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from speckit_memory.engine.answers.query_syntax import ParsedQuery, read
from speckit_memory.engine.answers.search_options import SearchOptions
from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.errors.echo import abridge
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.store.read_model.facts.sessions import SessionState
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import INTENTS, Mode, Query
from speckit_memory.pipeline.ports import Filter, Scope, Store
from speckit_memory.pipeline.running.lookup import searchable
from speckit_memory.pipeline.running.phrases import content_tokens, memories_with_phrase

MAX_QUERY_CHARACTERS = 10_000
MAX_UNFOLDED = 2 * MAX_QUERY_CHARACTERS
"""One character may expand to up to eighteen under NFKC."""
MAX_NAME_CHARACTERS = 200
"""Maximum length of the name of a section, session or folder."""
MAX_LIMIT = 100
FolderOrder = Literal["count", "recency", "importance", "composite"]
CONCEPTS = (2, 5)
CONTEXT_TYPES = ("research", "implementation", "decision", "discovery", "general")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The parameters of a search, unvalidated. See `engine.api.memory.Memory.search` for their meaning."""

    text: str
    limit: int = 10
    folder: str = ""
    tier: str = ""
    context_type: str = ""
    mode: Mode = "auto"
    session: str = ""
    concepts: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    token_usage: float | None = None
    dedup: bool = True
    intent: str | None = None

    def require_types(self) -> None:
        """Raises E030 for all parameters of the wrong type."""
        if misfits := list(_misfits(self)):
            raise SpeckitError.of(misfits)

    def query(self, store: Store, now: float, deadline_ns: int | None) -> Query:
        """The validated question for the pipeline. Raises SpeckitError with all of its problems.

        Lone surrogates, which shells produce for bytes that are not UTF-8, become U+FFFD, since they cannot be encoded.
        """
        self.require_types()
        folder, session = clean(self.folder), identifier(clean(self.session))
        concepts, anchors = tuple(map(clean, self.concepts)), tuple(map(clean, self.anchors))
        wanted = Filter(normalised_folder(folder), self.tier, self.context_type)
        typed = read(clean(self.text))
        if typed.negation and not _leaves_out(typed, store, store.attributes.scope(wanted, now)):
            typed = ParsedQuery(clean(self.text).strip())
        _check(self, clean(self.text).strip() or " ".join(concepts), typed)
        text = typed.text or " ".join(concepts)
        return Query(
            text=text,
            now=now,
            limit=self.limit,
            wanted=wanted,
            mode=self.mode,
            session=session,
            deadline_ns=deadline_ns,
            terms=searchable(text, store.lexicon),
            concepts=concepts,
            anchors=anchors,
            required=typed.required,
            excluded=typed.excluded,
            token_usage=self.token_usage,
            dedup=self.dedup,
            intent=self.intent,
        )


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A question with everything else that determines its answer.

    The time (epoch seconds), the time limit, the per-search options, the store's change number at the search, and the
    session state it saw, None unless it is recorded for replays.
    """

    question: SearchRequest
    now: float
    allowed_ms: float | None
    adjust: SearchOptions = field(default_factory=SearchOptions)
    state: int = 0
    session: SessionState | None = None

    @property
    def read_point(self) -> dict[str, Any]:
        """The time and session state of the search, as plain data for the record."""
        found: dict[str, Any] = {"now": self.now}
        if self.session is not None:
            found["session"] = {"attended": self.session.attended, "sent": self.session.sent}
        return found


def _leaves_out(typed: ParsedQuery, store: Store, scope: Scope) -> bool:
    """Whether a worded negation excludes something: memories contain the phrase, and none is about its absence."""
    about = (word for word in typed.text.split() if content_tokens(word, store.lexicon))
    return not len(store.fulltext.holding([*about, typed.negation], 1, scope)) and any(
        len(memories_with_phrase(phrase, store)) for phrase in typed.excluded
    )


def texts(given: object, name: str) -> tuple[str, ...]:
    """A list of texts from a caller. Raises E030 for a single text, which would be split into letters."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        found = tuple(given)
        if all(isinstance(one, str) for one in found):
            return found
    raise SpeckitError("E030", f"{name} is {_display(given)}; accepted: a list of texts")


def _misfits(question: SearchRequest) -> Iterator[Problem]:
    """Parameters of the wrong type, which only Python callers can pass; the other interfaces check types."""
    for name in ("text", "folder", "tier", "context_type", "mode", "session"):
        if not isinstance(value := getattr(question, name), str):
            yield Problem("E030", f"{name} is {_display(value)}; accepted: a text")
    if type(question.limit) is not int:
        yield Problem("E030", f"limit is {_display(question.limit)}; accepted: a whole number")
    if question.intent is not None and not isinstance(question.intent, str):
        yield Problem("E030", f"intent is {_display(question.intent)}; accepted: a text")
    if question.token_usage is not None and type(question.token_usage) not in (int, float):
        yield Problem("E030", f"token_usage is {_display(question.token_usage)}; accepted: a number")


def _display(value: object) -> str:
    return f"{abridge(repr(value), 60)} ({type(value).__name__})"


def _check(question: SearchRequest, text: str, typed: ParsedQuery) -> None:
    concepts, limit = question.concepts, question.limit
    problems = list(_too_long(question, text))
    if not concepts and not _tells(text):
        problems.append(
            Problem("E043", "the query contains no letter or digit" if text.strip() else "the query is empty")
        )
    elif typed.excluded and not concepts and not _tells(typed.text):
        excluded = " or ".join(f"'{phrase}'" for phrase in typed.excluded)
        hint = "A minus before a word excludes the memories that contain it; add a word to search for."
        problems.append(Problem("E043", f"the query says only what to leave out: {excluded}", hint))
    if not 1 <= limit <= MAX_LIMIT:
        problems.append(Problem("E032", f"limit is {limit}; accepted: 1 to {MAX_LIMIT}"))
    if concepts and not CONCEPTS[0] <= len(concepts) <= CONCEPTS[1]:
        problems.append(Problem("E032", f"{len(concepts)} concepts; accepted: {CONCEPTS[0]} to {CONCEPTS[1]}"))
    if question.token_usage is not None and not 0 <= question.token_usage <= 1:
        problems.append(Problem("E032", f"token usage is {question.token_usage}; accepted: 0 to 1"))
    accepted: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
        ("mode", question.mode, get_args(Mode)),
        ("tier", question.tier, ("", *Tier)),
        ("context_type", question.context_type, ("", *CONTEXT_TYPES)),
        ("intent", question.intent or "", ("", *INTENTS)),
    )
    for name, value, values in accepted:
        if name == "tier" and value == Tier.DEPRECATED:
            problems.append(Problem("E030", "tier is 'deprecated'; no search finds deprecated memories"))
        elif value not in values:
            problems.append(Problem("E030", f"{name} is '{value}'; {nearest(value, [v for v in values if v])}"))
    if problems:
        raise SpeckitError.of(problems)


def _too_long(question: SearchRequest, query: str) -> Iterator[Problem]:
    """Texts longer than any typed query, since every character costs time."""
    concepts = ((f"concept {place}", concept) for place, concept in enumerate(question.concepts, start=1))
    for name, text in (("the query", query), *concepts):
        found = f"{name} has {len(text):,} characters"
        if len(text) > MAX_QUERY_CHARACTERS:
            yield Problem("E042", found)
        elif not text.isascii() and (letters := len(unicodedata.normalize("NFKC", text))) > MAX_UNFOLDED:
            yield Problem("E042", f"{found}, which expand to {letters:,} letters")
    anchors = (("anchor", anchor) for anchor in question.anchors)
    for name, text in (("session", question.session), ("folder", question.folder), *anchors):
        if len(text) > MAX_NAME_CHARACTERS:
            found = f"the name of the {name} has {len(text):,} characters; accepted: {MAX_NAME_CHARACTERS} at most"
            yield Problem("E032", found)


def _tells(text: str) -> bool:
    """Whether a text contains a letter or a digit."""
    return any(unicodedata.category(character)[0] in "LN" for character in text)


def normalised_folder(folder: str) -> str:
    """A folder in the store's form: POSIX separators, no leading or trailing slash; "" and "." mean all folders."""
    below = folder.replace("\\", "/").strip().strip("/").removeprefix("./")
    return "" if below == "." else below
