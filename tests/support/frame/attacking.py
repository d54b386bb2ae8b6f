"""Runs an attack in the slot of its role, in a pipeline of real components on a real store, and says what must hold."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from frame.attacks import Attack
from frame.hostile import PLAIN, attacked, component, without
from storing.project import live, project, write

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.running.runner import Outcome, Runner

NOW = 1_800_000_000.0
TEXT = "how does the payment gateway retry"
NOWHERE = "zebra"
"""A question to which no channel finds anything, so that recovery is asked."""
ANNOTATED = PLAIN.replace("annotate: []", "annotate:\n  - {use: state_filter}\n  - {use: attribution}")


@cache
def memory() -> Memory:
    """A project of some fifty memories, shared by all attacks of a process."""
    stack = ExitStack()
    atexit.register(stack.close)
    root = Path(stack.enter_context(TemporaryDirectory()))
    write(root, NOW)
    opened = stack.enter_context(project(root, {}))
    opened.index([root])
    live(opened, NOW)
    return opened


def answered(pipeline: Pipeline, role: Role) -> Outcome:
    """What a pipeline answers to the question that asks a component of this role."""
    store = memory().session.view()
    question = SearchRequest(text=NOWHERE if role is Role.RECOVERER else TEXT, limit=3)
    return Runner(pipeline).run(question.query(store, NOW, None), store)


def served(outcome: Outcome) -> tuple[object, ...]:
    """All that is served, in values that can be compared: rows with every score, the plan, and what is said."""
    pool, plan = outcome.pool, outcome.query.plan
    steps = [(step.step, step.after.tobytes(), step.parts.tobytes()) for step in pool.steps]
    notes = {name: (n.by_id, n.overall, n.warnings) for name, n in outcome.notes.items()}
    rows = (pool.ids.tolist(), pool.candidates.passages.tolist(), pool.candidates.raw.tobytes())
    return rows, steps, pool.candidates.channels, repr(plan), notes, outcome.query.limit


class Target:
    """A pipeline with a hostile component in the slot of a role, ahead of all others of it, which may do anything."""

    def __init__(self, role: Role, *, optional: bool = True) -> None:
        self.role = role
        self._optional = optional
        self._work: Callable[..., Any] = lambda *asked: None
        hostile = component(role, self._answer)
        with TemporaryDirectory() as folder:
            first = role is not Role.SIGNAL  # which cannot stand before the fuser
            self._pipeline = attacked(Path(folder), role, hostile, ANNOTATED, optional=optional, first=first)
        self._plain = without(self._pipeline)
        self._required = role is Role.FUSER or (not optional and role in (Role.SIGNAL, Role.RERANKER))
        if role is not Role.FUSER:
            self._expected = served(answered(self._plain, role))

    def refuses(self, attack: Attack) -> str:
        """Why the step was refused. What is served is what the pipeline without it serves, to the last bit.

        A step that is needed is an error that names it.
        """
        self._work = attack.work
        if self._required:
            with pytest.raises(SpeckitError, match="the step 'hostile' ") as caught:
                answered(self._pipeline, self.role)
            assert caught.value.code == "E040", attack.name
            return str(caught.value)
        outcome = answered(self._pipeline, self.role)
        assert served(outcome) == self._expected, attack.name
        parts = [part for part in outcome.trace.degraded if part.part == "hostile"]
        assert len(parts) == 1, f"{attack.name}: {outcome.trace.degraded}"
        assert [part for part in outcome.trace.degraded if part.part != "hostile"] == []
        parts[0].as_json()["reason"].encode()
        assert len(parts[0].reason) <= 2000
        return parts[0].reason

    def _answer(self, *asked: Any) -> Any:
        return self._work(*asked)

    def is_clean(self) -> None:
        """Whether pipelines without the hostile step answer as they did before all attacks."""
        if self.role is not Role.FUSER:
            assert served(answered(self._plain, self.role)) == self._expected


@cache
def target(role: Role, *, optional: bool = True) -> Target:
    """The target of a role, built once."""
    return Target(role, optional=optional)
