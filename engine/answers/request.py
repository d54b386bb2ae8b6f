"""Validates a caller's question before anything runs, and reports all of its problems at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, get_args

from speckit_memory.engine.answers.query_syntax import ParsedQuery, read
from speckit_memory.engine.answers.search_options import SearchOptions, options_of
from speckit_memory.errors import Problem, SpeckitError, out_of_range, refused, wrong_type
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.store.read_model.facts.sessions import SessionState
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import INTENTS, Mode, Query
from speckit_memory.pipeline.ports import Filter, Scope, Store
from speckit_memory.pipeline.running.demands import content_tokens, memories_with_phrase
from speckit_memory.pipeline.running.lookup import searchable

MAX_QUERY_CHARACTERS = 10_000
MAX_UNFOLDED = 2 * MAX_QUERY_CHARACTERS
"""One character may expand to up to eighteen under NFKC."""
MAX_NAME_CHARACTERS = 200
"""Maximum length of the name of a section, session or folder."""
MAX_LIMIT = 100
FolderOrder = Literal["count", "recency", "importance", "composite"]
CONCEPTS = (2, 5)
_OWN = frozenset({"session", "now", "deadline_ms", "adjust", "snippet", "content", "query_id"})
"""Parameters of one call, which replays of its question leave out."""
CONTEXT_TYPES = ("research", "implementation", "decision", "discovery", "general")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The parameters of a search: the one list, for Python, the command line, the tools, records and replays.

    `require_types` and `query` check the values. Fixing `now` and `deadline_ms` makes a search reproducible.

    Attributes:
        text: The query; may be empty if `concepts` are given.
        limit: Maximum number of results.
        folder: Search only this folder and its sub-folders.
        tier: Search only this importance tier.
        context_type: Search only this context type.
        mode: "resume" looks for handovers first, then for the words that name the work.
        session: Session identifier; enables deduplication and attention.
        now: Time of the query in epoch seconds; default: the clock.
        deadline_ms: After this time costly or optional steps are skipped, and the answer says so. Opening the store
            does not count; None or 0 is no deadline.
        concepts: Two to five texts that must all match; `text`, if given, ranks the matches.
        anchors: Return only these sections of the memories.
        token_usage: Share of the caller's context window in use, [0, 1].
        dedup: Leave out what the session was sent already.
        intent: One of seven intents (docs/queries.md), "" for none; default: detected from the words.
        adjust: Per-search options. If the pipeline has to be rebuilt for them, variants do not run.
        snippet: Length of the excerpts in characters; 0 for none.
        content: Whether rows carry the whole text of their memory.
        query_id: 16 hexadecimal digits that name the query in records; default: random.
    """

    text: str = field(kw_only=False)
    limit: int = 10
    folder: str = ""
    tier: str = ""
    context_type: str = ""
    mode: Mode = "auto"
    session: str = ""
    now: float | None = None
    deadline_ms: float | Literal["setting"] | None = "setting"
    concepts: Sequence[str] = ()
    anchors: Sequence[str] = ()
    token_usage: float | None = None
    dedup: bool = True
    intent: str | None = None
    adjust: SearchOptions = field(default_factory=SearchOptions)
    snippet: int = 400
    content: bool = False
    query_id: str = ""

    def __post_init__(self) -> None:
        """Makes lists immutable. Raises E030 for values that are no lists or options."""
        for name in ("concepts", "anchors"):
            object.__setattr__(self, name, texts(getattr(self, name), name))
        object.__setattr__(self, "adjust", options_of(self.adjust))

    @property
    def replayed(self) -> dict[str, Any]:
        """The parameters that another pipeline is asked with and that are not the default; the session is left out."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self) if one.name not in _OWN}
        return {name: value for name, (value, default) in values.items() if value != default}

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


P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


def parameters_of(kind: Callable[P, R]) -> Callable[[Callable[[S, R], T]], Callable[Concatenate[S, P], T]]:
    """Lets a method that takes what `kind` makes, such as a request, take the parameters of `kind` instead."""

    def decorate(method: Callable[[S, R], T]) -> Callable[Concatenate[S, P], T]:
        @wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return method(self, kind(*args, **kwargs))

        own, taken = signature(method), signature(kind)
        parameters = (next(iter(own.parameters.values())), *taken.parameters.values())
        call.__doc__ = f"{method.__doc__}\n\n{kind.__doc__}"
        vars(call)["__signature__"] = own.replace(parameters=parameters)
        return call

    return decorate


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A question with everything else that determines its answer.

    The time (epoch seconds) and the time limit in force, the store's change number at the search, and the session state
    it saw, None unless it is recorded for replays.
    """

    question: SearchRequest
    now: float
    allowed_ms: float | None
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
    raise SpeckitError.of([wrong_type(name, given, "a list of texts")])


def _misfits(question: SearchRequest) -> Iterator[Problem]:
    """Parameters of the wrong type, which only Python callers can pass; the other interfaces check types."""
    for name in ("text", "folder", "tier", "context_type", "mode", "session"):
        if not isinstance(value := getattr(question, name), str):
            yield wrong_type(name, value, "a text")
    if type(question.limit) is not int:
        yield wrong_type("limit", question.limit, "a whole number")
    if question.intent is not None and not isinstance(question.intent, str):
        yield wrong_type("intent", question.intent, "a text")
    if question.token_usage is not None and type(question.token_usage) not in (int, float):
        yield wrong_type("token_usage", question.token_usage, "a number")


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
        problems.append(out_of_range("limit", limit, f"1 to {MAX_LIMIT}"))
    if concepts and not CONCEPTS[0] <= len(concepts) <= CONCEPTS[1]:
        problems.append(Problem("E032", f"{len(concepts)} concepts; accepted: {CONCEPTS[0]} to {CONCEPTS[1]}"))
    if question.token_usage is not None and not 0 <= question.token_usage <= 1:
        problems.append(out_of_range("token usage", question.token_usage, "0 to 1"))
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
            problems.append(refused(name, value, [v for v in values if v]))
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
