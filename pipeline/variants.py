"""One pipeline derived from another: functions from value to value. Nothing is read, written or built here.

The pipelines that stand side by side in a comparison are made so: a control, and the control with one thing changed.
What cannot be changed so joins the problems of the variant, as what is wrong with a file does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from speckit_memory.config.settings import BY_CALL
from speckit_memory.errors import Problem, Where, nearest
from speckit_memory.pipeline.effective import Effective
from speckit_memory.pipeline.overriding import LeftOut, Setting


def with_values(whole: Effective, overrides: Mapping[str, str]) -> Effective:
    """The pipeline with single values changed: "step.parameter" or "step.parameter.key" to YAML text."""
    return replace(whole, changes=(*whole.changes, *(Setting(path, text) for path, text in overrides.items())))


def without(whole: Effective, step: str, *, forgotten: bool = False) -> Effective:
    """The pipeline without the step of this id.

    `forgotten`: also without the keys and list items by which other steps name it, such as the weight of a channel.
    """
    return replace(whole, changes=(*whole.changes, LeftOut(step, forgotten)))


def with_flag(whole: Effective, name: str, *, on: bool = True) -> Effective:
    """The pipeline with a flag open or closed, whatever the environment says."""
    flag = whole.flags.get(name)
    if flag is None:
        problem = Problem("E120", f"the flag '{name}' is not declared; {nearest(name, whole.flags)}")
        return replace(whole, misread=(*whole.misread, problem))
    if flag.state == "permanent" and not on:
        problem = Problem("E030", f"{name} is permanent and cannot be switched off")
        return replace(whole, misread=(*whole.misread, problem))
    if on == flag.on:
        return whole
    decided = replace(flag, state="enabled" if on else "off", decided=Where(BY_CALL, 1, 0, ""))
    return replace(whole, flags={**whole.flags, name: decided})
