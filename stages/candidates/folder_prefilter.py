"""Restricts the search to the folders that a query is clearly about."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import FolderDescription, Store
from speckit_memory.pipeline.roles.contracts import About, Params
from speckit_memory.pipeline.running.lookup import memories_with


class FolderPrefilterParams(Params):
    """Parameters of the folder pre-filter."""

    min_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Minimum share of the query's words that a folder's description must match.",
        json_schema_extra={"tunable": [0.3, 1.0]},
    )


class FolderPrefilter:
    """Compares the query with the one-sentence descriptions and key words of all folders.

    The search is only restricted if some folders each match every word that any folder matches, these are at least
    `min_share` of the query's words, and no memory elsewhere holds a word of the query in any field. Descriptions are
    made from titles and trigger phrases only, so the texts decide whether a query crosses folders; a query that does
    gets the same results with this step as without it. The only memories lost are those outside that hold no word of
    the query. A query that names its folder is not changed. Feature C13.
    """

    about = About(features=("C13",))
    Params = FolderPrefilterParams

    def __init__(self, params: FolderPrefilterParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with the folders to search; unchanged if none stands out."""
        terms = set(query.terms)
        if query.wanted.folder or not terms:
            return plan
        # folder to the query's terms that its description matches.
        known = {described.folder: _about(terms, described) for described in store.folders.described()}
        anywhere = set().union(*known.values())
        if len(anywhere) < self._params.min_share * len(terms) or not anywhere:
            return plan
        # Only folders that match every word which any folder matches.
        folders = tuple(sorted(folder for folder, found in known.items() if found == anywhere))
        # If all folders match equally, a restriction would exclude nothing.
        if not folders or len(folders) == len(known):
            return plan
        if (shared := _elsewhere(query, folders, store)) is not None:
            return replace(plan, reasons=plan.because(f"folder_prefilter: all folders, others hold '{shared}' as well"))
        reason = f"folder_prefilter: only {', '.join(folders)} (about {', '.join(sorted(anywhere))})"
        return replace(plan, folders=folders, reasons=plan.because(reason))


def _elsewhere(query: Query, folders: tuple[str, ...], store: Store) -> str | None:
    """The first word of the query that occurs in a memory outside these folders."""
    everywhere = store.attributes.scope(query.wanted, query.now)
    inside = store.attributes.scope(replace(query.wanted, folders=folders), query.now)
    for term in dict.fromkeys(query.terms):
        # holders: ascending memory ids; only those that the query may see at all are compared.
        holders = memories_with(term, store.lexicon)
        if not inside.admits(holders[everywhere.admits(holders)]).all():
            return term
    return None


def _about(terms: set[str], described: FolderDescription) -> set[str]:
    """The terms among the folder's key words, or in its sentence."""
    sentence = described.sentence.casefold()
    return {term for term in terms if term in described.keywords or term in sentence}
