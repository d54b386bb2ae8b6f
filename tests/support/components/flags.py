"""The environments in which steps behind flags take part."""

from __future__ import annotations

from speckit_memory.config.flags.flags import load_flags

EXCLUSIVE = {
    "rsf": "SPECKIT_RSF_FUSION",
    "rrf": "SPECKIT_RRF",
    "z_score": "SPECKIT_Z_SCORE_FUSION",
    "confidence": "SPECKIT_CONFIDENCE_BOOST",
    "temporal": "SPECKIT_TEMPORAL_DECAY",
    "learned_trigger": "SPECKIT_LEARN_FROM_SELECTION",
    "cross_encoder": "SPECKIT_CROSS_ENCODER_RERANK",
    "fitting": "SPECKIT_ONLY_FITTING",
}
"""Flags of components that take another one's place, replace the score that others made (the cross-encoder), or leave
hardly a row for others (fitting)."""

OPEN = {name: "true" for name in load_flags({}) if name not in EXCLUSIVE.values()}
"""Every other flag of the product; these can be open together."""


def opened(name: str) -> dict[str, str]:
    """The environment in which a component of `EXCLUSIVE` stands in its place."""
    others = {"temporal": ("SPECKIT_CLASSIFICATION_DECAY",)}.get(name, ())
    return {flag: value for flag, value in OPEN.items() if flag not in others} | {EXCLUSIVE[name]: "true"}
