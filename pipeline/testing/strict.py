"""The strict guard: runs components on copies of what the frame shows them, and fails those that change a copy.

In service a component sees the frame's own columns, which are read-only, and nothing is compared after it ran. Here
each call gets a copy whose columns can be written, so that a write is found even where it would not raise; what the
call left of the copy, and of the process, is compared with what was there before. The contract suite runs every
component this way, and so does a memory that is opened with `strict=True`.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import warnings
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from speckit_memory.pipeline.model.columns import Candidates, Plan, Pool, Query
from speckit_memory.pipeline.model.errors import ContractError
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.roles.hooks import ABOUT_CONCEPT, COST, ROLE_METHODS, STATES

_CALLED = (*ROLE_METHODS.values(), ABOUT_CONCEPT, COST, STATES)
"""The methods that the frame calls on running components."""
_SHOWN: tuple[tuple[type[Any], str], ...] = (
    (Query, "query"),
    (Plan, "plan"),
    (Candidates, "rows"),
    (Pool, "rows"),
    (np.ndarray, "ids"),
)
"""The arguments that are copied, with their names in messages. A sealed ranking has its own guard, the seal."""

C = TypeVar("C")


def guarded_pipeline(pipeline: Pipeline) -> Pipeline:
    """The same pipeline, with every component under the strict guard."""
    stage, fusion = pipeline.candidates, pipeline.fusion
    return replace(
        pipeline,
        candidates=replace(
            stage, **{field.name: tuple(map(_step, getattr(stage, field.name))) for field in fields(stage)}
        ),
        fusion=replace(fusion, fuser=_step(fusion.fuser), signals=tuple(map(_step, fusion.signals))),
        rerank=tuple(map(_step, pipeline.rerank)),
        annotate=tuple(map(_step, pipeline.annotate)),
    )


def _step(step: BoundStep[C]) -> BoundStep[C]:
    return replace(step, component=guarded(step.component, step.id))


def guarded(component: C, name: str) -> C:
    """An object with the methods of a component, each of which runs under the guard; `name` is that of the step."""
    kind = type(component)
    members: dict[str, Any] = {
        method.name: staticmethod(partial(_call, name, component, method.name))
        for method in _CALLED
        if method.of(component)
    }
    members |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    if hasattr(component, "combine"):
        members["combine"] = component.combine
    made: C = type(kind.__name__, (), members)()
    return made


def _call(name: str, component: object, method: str, *arguments: Any) -> Any:
    shown = [_copy(argument) if _kind(argument) else argument for argument in arguments]
    before = [_image(argument) for argument in shown]
    process = _Process()
    try:
        return getattr(component, method)(*shown)
    finally:
        changed = [
            f"the {_kind(argument)} that it was given"
            for argument, image in zip(shown, before, strict=True)
            if _image(argument) != image
        ]
        if changed := [*dict.fromkeys(changed), *process.restored()]:
            raise ContractError(name, f"changed {' and '.join(changed)}")


def _kind(argument: object) -> str:
    return next((name for kind, name in _SHOWN if type(argument) is kind), "")


def _copy(argument: Any) -> Any:
    # Unlike `copy.deepcopy`, pickle skips the constructors, which would make the columns read-only.
    return pickle.loads(pickle.dumps(argument))


def _image(argument: object) -> bytes:
    """Everything that can be reached from an argument, as bytes; empty for one that is not copied."""
    return pickle.dumps(argument) if _kind(argument) else b""


class _Process:
    """The state of the process before a call, as far as a component may change it for others."""

    def __init__(self) -> None:
        self.before = self._now()

    @staticmethod
    def _now() -> dict[str, Any]:
        return {
            "standard output": sys.stdout,
            "standard error": sys.stderr,
            "recursion limit": sys.getrecursionlimit(),
            "garbage collection": gc.isenabled(),
            "working directory": os.getcwd(),  # noqa: PTH109 - the text of it, to compare
            "environment": dict(os.environ),
            "numpy's error handling": np.geterr(),
            "warning filters": list(warnings.filters),
            "numpy's random state": pickle.dumps(np.random.get_state()),
        }

    def restored(self) -> list[str]:
        """Restores what the call changed, and names it."""
        now, before = self._now(), self.before
        changed = [name for name in before if now[name] is not before[name] and now[name] != before[name]]
        if changed:
            sys.stdout, sys.stderr = before["standard output"], before["standard error"]
            sys.setrecursionlimit(before["recursion limit"])
            (gc.enable if before["garbage collection"] else gc.disable)()
            os.chdir(before["working directory"])
            os.environ.clear()
            os.environ.update(before["environment"])
            np.seterr(**before["numpy's error handling"])
            warnings.filters[:] = before["warning filters"]  # type: ignore[index]  # a list
            np.random.set_state(pickle.loads(before["numpy's random state"]))
        return [f"the {name} of the process" if not name.startswith("numpy") else name for name in changed]
