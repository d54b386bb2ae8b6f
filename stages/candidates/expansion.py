"""Adds variants of a query with synonyms from a fixed vocabulary."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from pydantic import Field

from speckit_memory.pipeline.model.columns import Mode, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params

VOCABULARY = {
    "authentication": {
        "auth": ("authentication", "authorization"),
        "login": ("authentication", "sign-in"),
        "password": ("credential", "secret"),
        "token": ("credential", "session"),
        "permission": ("authorization", "access"),
        "user": ("account", "identity"),
    },
    "errors": {
        "error": ("exception", "failure"),
        "bug": ("defect", "error"),
        "crash": ("failure", "exception"),
        "fail": ("error", "break"),
        "fix": ("repair", "resolve"),
        "timeout": ("deadline", "latency"),
    },
    "architecture": {
        "architecture": ("design", "structure"),
        "module": ("component", "package"),
        "service": ("server", "component"),
        "interface": ("api", "protocol"),
        "dependency": ("import", "library"),
        "pipeline": ("stage", "flow"),
    },
    "code": {
        "function": ("method", "routine"),
        "class": ("type", "object"),
        "test": ("check", "verification"),
        "refactor": ("restructure", "cleanup"),
        "config": ("configuration", "settings"),
        "delete": ("remove", "drop"),
    },
    "memory": {
        "memory": ("context", "note"),
        "search": ("retrieval", "query"),
        "index": ("store", "catalogue"),
        "embedding": ("vector", "representation"),
        "decision": ("rationale", "choice"),
        "spec": ("specification", "requirement"),
    },
}
"""Five domains (feature C11): words and their synonyms, the closest first."""

_SYNONYMS = {word: synonyms for domain in VOCABULARY.values() for word, synonyms in domain.items()}
_WORD = re.compile(r"[^\W_]+")


class ExpansionParams(Params):
    """The number of variants, and the modes in which they are used."""

    variants: int = Field(3, ge=1, le=3, description="Maximum number of variants, including the query.")
    modes: tuple[Mode, ...] = Field(("deep",), strict=False, description="Modes in which queries are expanded.")


class Expansion:
    """Adds variants in which every word of the vocabulary is replaced by its first synonym, then by its second.

    The query itself remains the first variant. Each variant is searched by every channel, and fusion merges the
    results. Feature C11.
    """

    about = About(features=("C11",))
    Params = ExpansionParams

    def __init__(self, params: ExpansionParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - only the vocabulary is used
        """The plan with up to `variants` texts to search."""
        if query.running_mode not in self._params.modes:
            return plan
        wordings = (_WORD.sub(partial(_synonym, nth=nth), query.text) for nth in (0, 1))
        variants = tuple(dict.fromkeys((*plan.variants, *wordings)))[: self._params.variants]
        added = len(variants) - len(plan.variants)
        return replace(plan, variants=variants, reasons=plan.because(f"expansion: {added} further wordings"))


def _synonym(word: re.Match[str], nth: int) -> str:
    synonyms = _SYNONYMS.get(word.group().casefold())
    return synonyms[nth] if synonyms else word.group()
