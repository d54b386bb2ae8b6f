"""Browse the memories: list, show, match triggers, count (features T3, T5 and T6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.console.markdown import TEXT_FIELD, about, fields, one_line, quote_text
from speckit_memory.server.operations.fields import Flag, Folder, Limit, Name
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation
from speckit_memory.server.views.memory_list import PartOfPage, is_passage, passage_text, rows_of, with_passages

if TYPE_CHECKING:
    from speckit_memory.engine.documents.folder_ranking import FolderRanking, RankedFolder
    from speckit_memory.engine.search.triggers import TriggerMatches
    from speckit_memory.memory.store.reading.reader import StoreStatistics

DATE = len("2026-11-22")
"""Length of a date; texts omit the time."""
EXCERPT = 200
"""Characters of a triggered memory that is not sent whole."""
MOST_NAMED = 5
"""Related memories named to a client; the data has all."""


class MemoryListing(Parameters):
    limit: Annotated[Limit, Option("Maximum number of memories.")] = 20
    offset: Annotated[int, Field(strict=True, ge=0, le=2**63 - 1), Option("Number of memories to skip.")] = 0
    folder: Annotated[Folder, Option("This folder and below.", tool="specFolder")] = ""
    sort: Annotated[
        Literal["created_at", "updated_at", "importance_weight"],
        Option("Sort by newest, last changed or heaviest first.", tool="sortBy"),
    ] = "created_at"
    chunks: Annotated[Flag, Option("Show the passages of each memory below it.", tool="includeChunks")] = False


@operation(
    "daily",
    "list",
    Tool(
        "memory_list", "List memories", "List memories, newest or heaviest first, a page at a time.", 800, cached=True
    ),
    reads=True,
)
def list_memories(call: Call, params: MemoryListing) -> View:
    """List the memories, newest first, a page at a time."""
    from speckit_memory.server.views.folder_text import in_folder, missing_folder

    memory = call.memory()
    memories, total = memory.list(params.folder, params.sort, params.limit, params.offset)
    rows = rows_of(memories)
    if params.chunks:
        rows = with_passages(memory, rows)
    missing = missing_folder(memory, params.folder)
    data = {
        "total": total,
        "offset": params.offset,
        "warnings": [missing] if missing else [],
        "memories": rows,
    }

    def where_to_go_on(shown: int) -> str:
        return _where_to_go_on(call, PartOfPage(rows, shown), params.offset, total)

    def apart(shown: int) -> dict[str, int]:
        part = PartOfPage(rows, shown)
        return {"count": part.memories, "passage_count": part.passages}

    return View(
        f"{plural(total, 'memory')} stored{in_folder(params.folder)}",
        data,
        rows="memories",
        cells=_memory_cells,
        hints=tuple(filter(None, [missing, *([] if call.workspace else [where_to_go_on(len(rows))])])),
        reply={
            "unit": "memories and passages" if params.chunks else "",
            "hint_of_count": where_to_go_on,
            "figures_of_count": apart if params.chunks else None,
        },
    )


def _where_to_go_on(call: Call, part: PartOfPage, offset: int, total: int) -> str:
    # a memory that is cut is listed again on the next page
    end, name = offset + part.done, call.way("--offset {}", "offset={}")
    if not part.memories and total:
        last = name.format(total - 1)
        return f"nothing at {name.format(offset)}: the first memory is at {name.format(0)}, the last at {last}"
    more = f"{total - end} more: continue with {name.format(end)}" if part.done and end < total else ""
    if not part.is_cut:
        return more
    whole = call.way("`speckit-memory show` has the whole document", "memory_search with its key reads all of it")
    rest = "they come again" if part.done < part.memories else whole
    return "; ".join(filter(None, [f"{one_line(part.told_cut())}, {rest}", more]))


def _memory_cells(row: Row) -> tuple[str, ...]:
    if is_passage(row):
        return (f"- {passage_text(row)}",)
    more: Row = {name: row[name] for name in ("confidence", "validations", "promoted", "created_by") if name in row}
    title = row["title"] if row["title"] != row["key"] else ""
    tier = row["tier"] if row["tier"] != "normal" else ""
    return row["key"], title, f"id {row['id']}", tier, row["updated"][:DATE], fields(more)


class PromptMatch(Parameters):
    prompt: Annotated[str, Field(max_length=10_000), Option("Text to look for trigger phrases in.", argument=True)]
    limit: Annotated[int, Field(strict=True, ge=1, le=50), Option("Maximum number of memories.")] = 3
    session: Annotated[
        Name, Option("Name of the session; memories that it attends to come first.", tool="session_id")
    ] = ""
    turn: Annotated[
        Annotated[int, Field(strict=True, ge=0, le=2**31)] | None,
        Option("The turn of the session's conversation; attention fades with each turn.", tool="turnNumber"),
    ] = None
    cognitive: Annotated[Flag, Option("Whether the attention counts.", tool="include_cognitive", command=None)] = True


def _unused(values: Mapping[str, Any]) -> UnusedParameters | None:
    """The parameters that only affect the attention of a session."""
    if not values["include_cognitive"]:
        return UnusedParameters(("session_id", "turnNumber"), "include_cognitive is false")
    return None if values["session_id"] else UnusedParameters(("turnNumber",), "no session is named")


@operation(
    "daily",
    "match",
    Tool(
        "memory_match_triggers",
        "Match triggers",
        "Fast: memories whose trigger phrases occur in a prompt.",
        budget=1500,
        cached=True,
        unused=_unused,
    ),
    reads=True,
)
def match(call: Call, params: PromptMatch) -> View:
    """Find memories whose trigger phrases occur in a PROMPT, faster than a search."""
    if not params.prompt.strip():
        raise SpeckitError("E043", "the prompt is empty", actions=("give the text to look for trigger phrases in",))
    if call.common and params.turn is not None and not params.session:
        raise SpeckitError("E031", "--turn needs --session, the session whose conversation it counts")
    memory, session = call.memory(), params.session if params.cognitive else ""
    found = memory.triggers.match(params.prompt, limit=params.limit, session=session, turn=params.turn)
    rows = _trigger_rows(found, state=params.cognitive, attention=bool(session))
    related: list[Row] = [
        {"id": one.memory.id, "key": one.memory.key, "title": one.memory.title, "activation": round(one.activation, 4)}
        for one in found.related
    ]
    shown = related[:MOST_NAMED] if call.workspace else related
    named = ", ".join(f"{one_line(row['key'])} (id {row['id']})" for row in shown)
    mind = f"{found.attended} of them in the attention of session {one_line(session)}" if session and rows else ""
    search = call.way("`speckit-memory search` searches", "memory_search searches")

    def note(sent: Sequence[Row]) -> None:
        memory.triggers.matched(found, len(sent), session=session, turn=params.turn)

    facts = [mind, f"related: {named}" if named else ""]
    return View(
        f"{plural(found.total, 'memory')} triggered",
        {
            "total": found.total,
            "attended": found.attended,
            "results": rows,
            **({"related": related} if session else {}),
        },
        facts={"related": named},
        rows="results",
        cells=_match_cells,
        hints=() if rows else (f"no trigger phrase occurs in the prompt; {search} for its words",),
        after=note,
        reply={
            "facts": "\n".join(filter(None, facts)),
            "row_text": _match_text,
            "again": None if session else note,
        },
    )


def _trigger_rows(found: TriggerMatches, *, state: bool, attention: bool) -> list[Row]:
    """One row per match, best first, with the state of the memory and its attention in the session if wanted.

    Memories that are HOT in the session have their whole text, others an excerpt.
    """
    from speckit_memory.memory.parsing.limits import cut_at_word

    return [
        {
            "id": one.memory.id,
            "key": one.memory.key,
            "title": one.memory.title,
            "score": round(one.score, 4),
            "tier": str(one.memory.tier),
            "phrases": list(one.phrases),
            **({"learned_phrases": one.learned} if one.learned else {}),
            **({"state": one.state} if state else {}),
            **({"attention": round(one.attention, 4)} if attention else {}),
            # memories with high attention are sent whole: the agent is working with them
            TEXT_FIELD: one.text if one.whole else cut_at_word(one.text, EXCERPT),
        }
        for one in found.matches
    ]


def _match_cells(row: Row) -> tuple[str, ...]:
    title = row["title"] if row["title"] != row["key"] else ""
    learned = row.get("learned_phrases", 0)
    triggers = [*row["phrases"], *([plural(learned, "learned phrase")] if learned else [])]
    text = " ".join(row[TEXT_FIELD].split())
    return "\n".join([row["key"], f"triggered by: {', '.join(triggers)}", text]), title


def _match_text(number: int, row: Row) -> str:
    phrases = ", ".join(row["phrases"])
    said = f"triggered by: {one_line(phrases)}" if phrases else ""
    title = row["title"] if row["title"] != row["key"] else ""
    tier = row["tier"] if row["tier"] != "normal" else ""
    further = fields({name: row.get(name, "") for name in ("attention", "learned_phrases")})
    facts = about(title, f"id {row['id']}", tier, row.get("state", ""), said, further)
    return "\n".join([f"\n## {number}. {one_line(row['key'])}", facts, quote_text(row[TEXT_FIELD])])


class StoreCounts(Parameters):
    limit: Annotated[Limit, Option("Maximum number of folders.")] = 10
    rank: Annotated[
        Literal["count", "recency", "importance", "composite"],
        Option("Rank folders by memories, the latest change, their tiers, or all of these.", tool="folderRanking"),
    ] = "count"
    exclude: Annotated[
        list[Name],
        Field(max_length=20),
        Option("Leave out folders that match this expression.", "excludePatterns", brief="Regexes", metavar="REGEX"),
    ] = []
    scores: Annotated[Flag, Option("Show the score of each folder and its components.", tool="includeScores")] = False
    archived: Annotated[
        Flag, Option("Rank archive folders too, and count archived memories.", tool="includeArchived")
    ] = False


@operation(
    "daily", "stats", Tool("memory_stats", "Count memories", "Count memories by tier and folder.", 800), reads=True
)
def stats(call: Call, params: StoreCounts) -> View:
    """Count memories by tier and folder, passages, causal links, triggers and bytes."""
    from speckit_memory.memory.store.reading.density import describe_density
    from speckit_memory.server.views.rows.rows import when

    inventory = call.memory().inventory
    ranked = inventory.folders(params.rank, exclude=params.exclude, scores=params.scores, archived=params.archived)
    found = inventory.stats()
    figures = _store_figures(found, ranked, params.limit, scores=params.scores)
    # epoch seconds become ISO 8601; None stays None for an empty store
    dated: Row = {name: None if figures[name] is None else when(figures[name]) for name in ("oldest", "newest")}
    folders = [
        row | {"updated": None if row["updated"] is None else when(row["updated"])} for row in figures["folders"]
    ]
    data = {
        **figures,
        **dated,
        "pending_links": found.pending_links,
        "embedding_model": found.embedding_model,
        "dimensions": found.dimensions,
        "folders": folders,
    }
    answers: dict[str, Any] = {}
    if call.workspace:
        kept = call.workspace.answers.figures()
        data["answer_cache"] = kept.as_json()
        asked = kept.hits + kept.misses
        answers = {"answers from the cache": f"{kept.hits} of {asked}" if asked else ""}
    waiting = plural(found.pending_embeddings, "memory")
    more = len(ranked.folders) - len(folders)
    way = call.way("--limit N shows them", "raise limit to see them")
    return View(
        f"{found.memories} memories, {found.chunks} passages, {found.edges} causal links",
        data,
        facts={
            **figures["by_tier"],
            "causal edges": describe_density(found.density),
            "trigger phrases": found.triggers,
            "waiting for vectors": f"{waiting}; the next index run makes them" if found.pending_embeddings else "",
            "declared links": f"{found.pending_links:,} have no target" if found.pending_links else "",
            "model": f"{found.embedding_model}, {found.dimensions} dimensions" if found.embedding_model else "",
            "created": f"{dated['oldest'][:DATE]} to {dated['newest'][:DATE]}" if dated["oldest"] else "",
            "bytes": found.bytes,
            **answers,
            "not ranked": _left_out_text(figures["left_out"]),
        },
        rows="folders",
        cells=lambda row: _folder_cells(row, params.rank),
        heads=("folder", "memories", "changed", "score", *(folders[0].get("parts", ()) if folders else ())),
        hints=(f"{plural(more, 'folder')} more than the first {params.limit}: {way}",) if more else (),
    )


def _folder_cells(row: Row, rank: str) -> tuple[str, ...]:
    updated = row["updated"]
    changed = ("unknown" if updated is None else updated[:DATE]) if rank == "recency" else ""
    score = f"{row['score']:g}" if "score" in row else ""
    return (
        row["folder"] or "(root)",
        f"{row['memories']:,}",
        changed,
        score,
        *(f"{part:g}" for part in row.get("parts", {}).values()),
    )


def _store_figures(stats: StoreStatistics, ranking: FolderRanking, folders: int, *, scores: bool) -> dict[str, Any]:
    """The statistics of a store, with the first `folders` of the ranking."""
    from speckit_memory.memory.store.reading.density import as_fields  # loads the store; not needed at start-up

    return {
        "memories": stats.memories,
        "passages": stats.chunks,
        "causal_links": stats.edges,
        "edge_density": as_fields(stats.density),
        "trigger_phrases": stats.triggers,
        "pending_embeddings": stats.pending_embeddings,
        "bytes": stats.bytes,
        "oldest": stats.oldest,
        "newest": stats.newest,
        "by_tier": {str(tier): count for tier, count in stats.by_tier.items()},
        "folder_count": len(stats.by_folder),
        "left_out": {"excluded": ranking.excluded, "archives": ranking.archives, "put_away": ranking.put_away},
        "folders": [_folder(one, scores) for one in ranking.folders[:folders]],
    }


def _folder(one: RankedFolder, scores: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"folder": one.folder, "memories": one.memories, "updated": one.updated}
    if scores and one.worth:
        parts = {name: round(value, 4) for name, value in asdict(one.worth).items()}
        row |= {"score": parts.pop("score"), "parts": parts}
    return row


def _left_out_text(left_out: dict[str, int]) -> str:
    """Describes what the ranking omits; "" for nothing."""
    told = {
        "excluded": f"{plural(left_out['excluded'], 'folder')} by pattern",
        "archives": f"{plural(left_out['archives'], 'folder')} for an archive's name",
        "put_away": f"{plural(left_out['put_away'], 'memory')} archived",
    }
    return ", ".join(text for name, text in told.items() if left_out[name])
