"""What is compared with the default: each signal and step that learns, ages or uses links, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from speckit_memory.engine import Memory

CONTROL, SCALE = "default", "scale alone"
PipelineText = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """A pipeline, or a store, that differs from the default's by one thing.

    `flags` are set in the environment; `undone` takes out of a copy of the store what a background process or a gate
    has done.
    """

    name: str
    what: str
    pipeline: PipelineText | None = None
    flags: tuple[str, ...] = ()
    undone: Callable[[Memory], None] | None = None
    against: str = CONTROL
    """What it is compared with."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The flags as variables."""
        return dict.fromkeys(self.flags, "true")


def adding(name: str, what: str, *signals: Mapping[str, Any]) -> Variant:
    """The default with signals that add to scores from 0 to 1, as its own flags arrange that."""
    steps: list[PipelineText] = [dict(signal) for signal in signals]
    return Variant(
        name,
        what,
        {
            "pipeline": name,
            "extends": "default",
            "fusion": {"change": [{"id": "z_score", "normalise": "min_max"}], "add": steps},
            "rerank": {"add": [{"use": "standardise", "before": "maxsim"}]},
        },
        against=SCALE if signals else CONTROL,
    )


def changing(name: str, what: str, **parts: Any) -> Variant:
    """The default with parts changed."""
    return Variant(name, what, {"pipeline": name, "extends": "default", **parts})


def flag(name: str, what: str, *flags: str) -> Variant:
    """The default with a signal that it has behind a flag."""
    return Variant(name, what, None, flags, against=SCALE)


def _unarchive(memory: Memory) -> None:
    for one in memory.lifecycle.archived():
        memory.lifecycle.unarchive(one.key)


def _undo(maker: str) -> Callable[[Memory], None]:
    def undo(memory: Memory) -> None:
        memory.graph.undo(by=maker)

    return undo


VARIANTS = (
    # that all scores lie between 0 and 1 is what most signals ask for; what it does alone is no signal's doing
    adding(SCALE, "scores mapped to 0 to 1 and back, no signal"),
    # what supersedes what, and other links
    changing("superseded hidden", "left out beside its successor",
             annotate={"change": [{"id": "superseded", "action": "hide"}]}),
    Variant("without the gate", "links of saving taken back", undone=_undo("prediction_error")),
    Variant("without consolidation", "strengths as they were made", undone=_undo("consolidation")),
    flag("causal", "neighbours of the best rows", "SPECKIT_CAUSAL_BOOST"),
    flag("centrality", "PageRank, where the graph is dense", "SPECKIT_GRAPH_SIGNALS"),
    Variant("community", "communities of what words find, where the graph is dense", None,
            ("SPECKIT_COMMUNITY_DETECTION",)),
    Variant("degree", "what words find by how well it is connected", None, ("SPECKIT_DEGREE_BOOST",)),
    # ageing
    adding("temporal", "FSRS retrievability, 0.25", {"use": "temporal"}),
    adding("classification decay", "the same, slower for decisions and important tiers",
           {"use": "temporal", "classification": "stability"}),
    adding("contiguity", "what was made within an hour of each other, 0.15", {"use": "contiguity"}),
    adding("recency", "days since the last change, 0.1, over a year", {"use": "recency"}),
    adding("recency 30 days", "the same over 30 days", {"use": "recency", "fade_days": 30.0}),
    flag("novelty", "a head start of 48 hours", "SPECKIT_NOVELTY_BOOST"),
    Variant("state limits", "so many rows of each state", None, ("SPECKIT_STATE_LIMITS",)),
    Variant("without archival", "all that was put away taken back", undone=_unarchive),
    # use
    adding("composite", "retrievability, use, importance, pattern, citation", {"use": "composite"}),
    flag("session", "what the session attends to", "SPECKIT_SESSION_BOOST"),
    flag("folders", "recency, importance, activity and validation of folders", "SPECKIT_FOLDER_SCORING"),
    Variant("learned triggers", "words of questions after selections", None, ("SPECKIT_LEARN_FROM_SELECTION",)),
    # judgements
    flag("validation", "confidence and spec level as a factor", "SPECKIT_VALIDATION_SIGNALS"),
    adding("confidence", "judgements, ±0.1", {"use": "confidence"}),
    adding("importance", "tiers as factors, 3 to 0", {"use": "importance"}),
    # likeness
    flag("interference", "near duplicates cost 0.08", "SPECKIT_INTERFERENCE_SCORE"),
    adding("coactivation", "what resembles the best rows", {"use": "coactivation"}),
)  # fmt: skip
