"""Components that answer whatever a test tells them to, in pipelines of real components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from speckit_memory.engine.components import COMPONENTS
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, NoParams, Role, SignalParams
from speckit_memory.pipeline.roles.registry import Registry

SLOTS = {
    Role.UNDERSTANDER: "understand",
    Role.CHANNEL: "channels",
    Role.RECOVERER: "recover",
    Role.FUSER: "fusion",
    Role.SIGNAL: "fusion",
    Role.RERANKER: "rerank",
    Role.ANNOTATOR: "annotate",
}
PLAIN = """\
pipeline: attacked
candidates:
  understand: []
  channels:
    - {use: bm25}
  recover: []
fusion:
  - {use: z_score, id: fuse, normalise: min_max}
rerank:
  - {use: min_max}
annotate: []
extends: none
"""
"""Scores on the unit scale all the way."""


def component(role: Role, work: Callable[..., Any], **about: Any) -> type[Any]:
    """A component of this role, called "hostile", whose method is `work`."""

    class Hostile:
        """Answers as it was told."""

        Params = {Role.CHANNEL: ChannelParams, Role.SIGNAL: SignalParams}.get(role, NoParams)
        combine: ClassVar[Literal["add", "multiply"]] = "add"

        def __init__(self, params: object) -> None:
            pass

        def answer(self, *asked: Any) -> Any:
            return work(*asked)

        understand = search = recover = fuse = evidence = rerank = annotate = answer

    scored = {"gives": Scale.UNIT} if role in (Role.CHANNEL, Role.FUSER) else {}
    Hostile.about = About(**({"features": ("P9",)} | scored | about))  # type: ignore[attr-defined]
    return Hostile


def registered(*components: tuple[Role, type[Any], str]) -> Registry:
    """The components of the product and these."""
    registry = Registry()
    for role, known in COMPONENTS:
        registry.admit(role, known)
    for role, added, name in components:
        registry.admit(role, added, name)
    return registry.freeze()


def attacked(
    tmp_path: Path, role: Role, hostile: type[Any], text: str = PLAIN, *, optional: bool = True, first: bool = False
) -> Pipeline:
    """The pipeline with a hostile step behind the others of its slot, or ahead; a fuser replaces the fuser."""
    step = f"{{use: hostile, optional: {str(optional).lower()}}}"
    slot = SLOTS[role]
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip().startswith(f"{slot}:"))
    indent = " " * (len(lines[at]) - len(lines[at].lstrip()) + 2)
    lines[at] = lines[at].replace(" []", "")
    if role is Role.FUSER:
        lines[at + 1] = f"{indent}- {step}"
    else:
        behind = at + 1
        while not first and behind < len(lines) and lines[behind].startswith(f"{indent}-"):
            behind += 1
        lines.insert(behind, f"{indent}- {step}")
    file = tmp_path / "attacked.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return build(str(file), registered((role, hostile, "hostile")), {})


def without(pipeline: Pipeline, name: str = "hostile") -> Pipeline:
    """The pipeline without its hostile step; a fuser stays."""

    def others(steps: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(step for step in steps if step.id != name)

    stage = pipeline.candidates
    return replace(
        pipeline,
        candidates=replace(
            stage, understand=others(stage.understand), channels=others(stage.channels), recover=others(stage.recover)
        ),
        fusion=replace(pipeline.fusion, signals=others(pipeline.fusion.signals)),
        rerank=others(pipeline.rerank),
        annotate=others(pipeline.annotate),
    )
