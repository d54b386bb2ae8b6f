"""Old names of component parameters, before bounds became `min_*` and `max_*`, and exceptions `ignore_*`.

A file with an old name is refused with a message that gives the new one. Values and their meanings are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RENAMED: Mapping[str, Mapping[str, str]] = {
    "bm25": {"most_terms": "max_terms", "feedback.least_lead": "feedback.min_lead"},
    "causal": {"most_seeds": "max_seeds", "least_product": "min_product", "most_product": "max_product"},
    "channel_floor": {"quality": "min_score"},
    "coactivation": {"most": "max_memories"},
    "confidence_cut": {"at_least": "min_rows", "spare": "ignore_tiers"},
    "constitutional_guarantee": {"most": "max_memories"},
    "coverage": {"minimum": "min_memories"},
    "degree": {"degree_cap": "max_degree", "boost_cap": "max_boost"},
    "evidence_gap": {
        "least_z": "min_z",
        "least_score": "min_score",
        "least_coverage": "min_coverage",
        "spare": "ignore_tiers",
    },
    "fallback": {"floor": "min_similarity"},
    "identifier": {"most_memories": "max_memories", "most_of_reference": "max_reference_memories"},
    "maxsim": {"settled": "max_lead"},
    "mmr": {"otherwise": "default_lambda", "confidence": "min_confidence", "at_least": "min_rows"},
    "phrase": {"least": "min_share", "most_read": "max_read", "most_pairs": "max_pairs"},
    "pin": {"most": "max_memories"},
    "relevance_floor": {"least": "min_score", "unknown": "keep_unscored", "spare": "ignore_tiers"},
    "spelling": {
        "shortest": "min_length",
        "shortest_far": "min_length_far",
        "longest": "max_length",
        "most_typed": "max_query_words",
        "most_words": "max_unknown_words",
    },
    "state_filter": {"minimum": "min_state"},
    "validation": {"most_level": "max_level", "least": "min_factor", "most": "max_factor"},
    "vector": {"concept_similarity": "min_concept_similarity"},
}
"""By component: old name → new name; keys of nested mappings are joined by dots."""


def present_name(component: str, path: Sequence[str | int]) -> str:
    """The present name of the parameter at this path of a component; "" if it was not renamed."""
    return RENAMED.get(component, {}).get(".".join(map(str, path)), "")
