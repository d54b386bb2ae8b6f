"""What memories learn from readers: judgements, and trigger phrases from selections (feature T10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.operations.fields import (
    ID_OR_KEY,
    RARE,
    Flag,
    HistoryLimit,
    MemoryKey,
    MemoryName,
    Name,
    Number,
    Session,
)
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine.api.triggers import LearnedPhrases
    from speckit_memory.memory.lifecycle.validations import ValidationResult
    from speckit_memory.memory.store.tables.memories.judgements import Judgement, ReviewState
    from speckit_memory.memory.store.tables.sessions.selections import LearnedPhrase

DAY = 86_400.0


class MemoryValidation(Parameters):
    key: MemoryKey
    useful: Annotated[Flag, Option("Whether the memory was useful.", tool="wasUseful", command="--useful/--not-useful")]
    promote: Annotated[Flag, Option("Make the memory critical, once readers trust it.")] = False
    session: Session = ""


@operation(
    "daily",
    "validate",
    Tool(
        "memory_validate",
        "Judge memory",
        "Tell whether a memory was useful; promote makes it critical.",
        budget=500,
        core=True,
    ),
    repeatable=False,
)
def validate(call: Call, params: MemoryValidation) -> View:
    """Record whether a memory that you read was useful, which changes its confidence."""
    from speckit_memory.server.console.arguments.memory_names import of_known
    from speckit_memory.server.views.rows.rows import judgement
    from speckit_memory.server.views.unweighed_inputs import unweighed_judgement

    memory = call.memory()
    judged = of_known(
        memory,
        params.key,
        lambda name: memory.learning.validate(
            name, useful=params.useful, promote=params.promote, session=params.session
        ),
    )
    way = call.way("the next `validate` may use --promote", "the next memory_validate may set promote")
    return View(
        f"{judged.key}: confidence {judged.confidence:g} after {plural(judged.validation_count, 'validation')}",
        {
            "id": judged.id,
            "key": judged.key,
            "tier": str(judged.tier),
            "eligible": judged.eligible,
            "kept_days": round(judged.kept_days, 1),
            **({"restored": True} if judged.restored else {}),
            **judgement(judged),
            **({"session": params.session} if params.session else {}),
        },
        facts={"tier": str(judged.tier), "promoted": judgement(judged).get("promoted")},
        hints=(
            *["it was archived: searches find it again"] * judged.restored,
            *[f"eligible for the tier critical: {way}"] * judged.eligible,
            *unweighed_judgement(memory),
        ),
    )


OfMemory = Annotated[
    MemoryName | None, Option("Only judgements of this memory.", command="--memory", metavar=ID_OR_KEY)
]
JUDGEMENT_HEADS = ("no.", "memory", "judged", "at", "session", "effect")


class JudgementListing(Parameters):
    key: OfMemory = None
    session: Annotated[Name, Option("Only judgements by this session.")] = ""
    limit: HistoryLimit = 100


@operation("administration", "learned judgements", one_door=RARE, reads=True)
def judgements(call: Call, params: JudgementListing) -> View:
    """Show judgements and promotions: when, by which session, and their effect.

    `learned undo` reverts them. The last 200 of each memory are kept.
    """
    found = call.memory().learning.judgements(_key(call, params.key), session=params.session, limit=params.limit)
    return View(
        plural(len(found), "judgement"),
        {"judgements": [_judgement_row(one) for one in found]},
        rows="judgements",
        cells=_judgement_cells,
        heads=JUDGEMENT_HEADS,
    )


class JudgementUndo(Parameters):
    numbers: Annotated[list[Number], Option("Numbers of judgements.", argument=True, metavar="JUDGEMENT")] = []
    key: Annotated[OfMemory, Option("All judgements of this memory.", command="--memory", metavar=ID_OR_KEY)] = None
    session: Annotated[Name, Option("All judgements by this session.")] = ""


@operation("administration", "learned undo", one_door=RARE, destroys=True)
def undo(call: Call, params: JudgementUndo) -> View:
    """Undo judgements and promotions by number, or all of a memory or a session.

    The numbers are those of `learned judgements`; all of them are undone or none. Memories are then as if the
    judgements had never been given: later ones count as they would have, and a promotion with too little support left
    is undone too.
    """
    if bool(params.numbers) is bool(params.key or params.session):
        raise SpeckitError("E031", "give judgements by their numbers, or with --memory or --session")
    learning, key = call.memory().learning, _key(call, params.key)
    found = learning.undo_judgements(params.numbers, name=key, session=params.session)
    kept = bool(found.undone or learning.judgements(key, session=params.session, limit=1))
    without = f"; {plural(len(found.followed), 'promotion')} undone for lack of support" if found.followed else ""
    reason = "" if found.undone else f": {_nothing(key, params.session, kept)}"
    return View(
        f"{plural(len(found.undone), 'judgement')} undone{reason}{without}",
        {
            "undone": [_judgement_row(one) for one in found.undone],
            "followed": [_judgement_row(one) for one in found.followed],
            "memories": [_standing(one) for one in found.memories],
        },
        facts={
            one.key: f"{one.tier}, confidence {one.confidence:g}, {plural(one.validation_count, 'validation')}"
            for one in found.memories
        },
        rows="undone",
        cells=_judgement_cells,
        heads=JUDGEMENT_HEADS,
        hints=tuple(" ".join(_judgement_cells(_judgement_row(one))) for one in found.followed),
    )


def _key(call: Call, name: int | str | None) -> str | None:
    from speckit_memory.server.console.arguments.memory_names import known_key

    return None if name is None else known_key(call.memory(), name)


def _nothing(key: str | None, session: str, kept: bool) -> str:
    """Why there was nothing to undo; `kept` if there are judgements on record."""
    of, by = f" of {key}" if key else "", f" by session '{session}'" if session else ""
    what = f"judgement{of}{by}"
    return f"every {what} was undone before" if kept else f"no {what} is on record"


def _standing(one: ValidationResult) -> dict[str, object]:
    return {
        "id": one.id,
        "key": one.key,
        "tier": str(one.tier),
        "confidence": one.confidence,
        "validations": one.validation_count,
        "kept_days": round(one.kept_days, 1),
    }


def _judgement_row(one: Judgement) -> Row:
    from speckit_memory.server.views.rows.rows import when

    return {
        "id": one.id,
        "memory": one.memory,
        "key": one.key,
        "kind": one.kind,
        "at": when(one.at),
        "session": one.session,
        "before": _review_state(one.before),
        "after": _review_state(one.after),
        **({"declared": one.declared} if one.kind == "promoted" else {}),
        "undone_at": None if one.undone_at is None else when(one.undone_at),
    }


def _review_state(one: ReviewState) -> dict[str, object]:
    return {
        "confidence": one.confidence,
        "validations": one.validations,
        "stability": round(one.stability, 6),
        "difficulty": round(one.difficulty, 6),
    }


def _judgement_cells(row: Row) -> tuple[str, ...]:
    undone = f"; undone {row['undone_at'][:16]}" if row["undone_at"] else ""
    return f"#{row['id']}", row["key"], row["kind"], row["at"][:16], row["session"] or "-", _effect(row) + undone


def _effect(row: Row) -> str:
    if row["kind"] == "promoted":
        return f"critical instead of {row['declared']}"
    before, after = row["before"], row["after"]
    is_kept_differently = any(before[name] != after[name] for name in ("stability", "difficulty"))
    kept = f", kept {before['stability']:.3g} -> {after['stability']:.3g} days" if is_kept_differently else ""
    return f"confidence {before['confidence']:g} -> {after['confidence']:g}{kept}"


@operation("administration", "learned list", one_door=RARE, reads=True)
def list_phrases(call: Call, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """List learned trigger phrases with their memory, selection, start and expiry.

    Searches use them while the flag SPECKIT_LEARN_FROM_SELECTION is on; `maintain` and running servers learn them.
    """
    found = call.memory().triggers.learned()
    return View(
        f"{plural(len(found.phrases), 'phrase')} learned; {_progress(found)}",
        {
            "phrases": [_phrase_row(one) for one in found.phrases],
            "learns": found.learns,
            "pairs": found.pairs,
            "pairs_wanting": found.pairs_wanting,
            "days_wanting": round(found.seconds_wanting / DAY, 2),
            "texts": found.texts,
        },
        rows="phrases",
        cells=_phrase_cells,
        heads=("memory", "phrase", "learned", "until", "from"),
    )


def _progress(found: LearnedPhrases) -> str:
    """The state of learning in words."""
    if not found.texts:
        return "nothing is learned: questions are not kept (evaluation: {keep_texts: never} in .speckit/config.yaml)"
    if found.learns:
        return f"learning, after {plural(found.pairs, 'selection')}"
    return (
        f"watching: {found.pairs_wanting} more selections and {found.seconds_wanting / DAY:.1f} more days are needed "
        "before anything is learned"
    )


class PhraseRemoval(Parameters):
    key: Annotated[MemoryName | None, Option("Id or key of the memory.", argument=True, metavar=ID_OR_KEY)] = None
    phrase: Annotated[str, Option("Only this phrase.")] = ""
    every: Annotated[Flag, Option("The phrases of all memories.", command="--all")] = False


@operation("administration", "learned forget", one_door=RARE, destroys=True)
def forget(call: Call, params: PhraseRemoval) -> View:
    """Remove learned phrases of one memory or of all.

    A removed phrase is not learned again for the same memory.
    """
    if (params.key is None) != params.every:
        raise SpeckitError("E031", "name a memory, or give --all for the phrases of all memories")
    gone = call.memory().triggers.forget(name=_key(call, params.key), phrase=params.phrase)
    return View(
        f"{plural(len(gone), 'phrase')} forgotten",
        {"forgotten": [_phrase_row(one) for one in gone]},
        rows="forgotten",
        cells=lambda row: (f"{row['key']}: {row['phrase']}",),
    )


def _phrase_row(one: LearnedPhrase) -> Row:
    from speckit_memory.server.views.rows.rows import when

    return {
        "memory": one.memory,
        "key": one.key,
        "phrase": one.phrase,
        "learned_at": when(one.learned_at),
        "expires_at": when(one.expires_at),
        "taught_by": [
            {"query": by.query, "use": by.use, "rank": by.rank, "at": when(by.selected_at)} for by in one.taught_by
        ],
    }


def _phrase_cells(row: Row) -> tuple[str, ...]:
    taught = "; ".join(f"{by['use']} at rank {by['rank']}, query {by['query']}" for by in row["taught_by"])
    return row["key"], row["phrase"], row["learned_at"][:10], row["expires_at"][:10], taught
