"""The `whyNot` of `memory_search`: why an expected memory is not a result, and what would make it one."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from speckit_memory.config.workspace.settings import FLAGS_FILE, PIPELINE_FILE
from speckit_memory.engine.explain.caller import CallerCapabilities
from speckit_memory.engine.explain.changes import yaml_text
from speckit_memory.server.console.arguments.memory_names import memory_name
from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.replies.envelope import Supplement
from speckit_memory.server.views.absence_text import reason_of_absence

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.answers.results import SearchResult
    from speckit_memory.engine.explain.changes import QueryEdit
    from speckit_memory.engine.explain.smallest_change import SmallestChange
    from speckit_memory.pipeline.configuration.accepted_values import Plain

TOOL = CallerCapabilities(modes=("auto", "deep"), parameter_is_enough=True)


@dataclass(frozen=True, slots=True)
class AbsenceReport:
    """The explanation for one memory and one answer.

    `rank` is its rank among the `results` results from 1, 0 if it is none; `hurried` tells that the call had a time
    limit; `names` are the parameters of the tool by those of the engine.
    """

    name: str | int
    key: str
    rank: int
    results: int
    reason: str
    change: SmallestChange | None
    budget: int
    hurried: bool
    names: Mapping[str, str]

    @property
    def cut_short(self) -> bool:
        """Whether time ran out before a change was found; another call may have enough time."""
        return self.hurried and self.change is not None and not (self.change.complete or self.change.change)

    def told(self, shown: int) -> Supplement:
        """The explanation for an answer that shows `shown` results."""
        reason, more = self.reason, ""
        if self.rank > shown:
            reason = f"'{self.key}' was found as result {self.rank}, left out to stay within {self.budget} tokens; "
            reason += "raise tokenBudget, or read it with key."
        if self.change:
            more = self.change.told(partial(in_the_call, self.names))
            if not self.change.runs and not self.change.complete:
                more += " Raise deadlineMs."
            if self.change.rank > shown < self.results:
                more += f" {self.budget} tokens may have no room for it: raise tokenBudget too, or read it with key."
        change = {**self.change.as_json(partial(change_data, self.names)), "sentence": more} if self.change else None
        text = f"why not {one_line(str(self.name))}: {one_line(reason)} {one_line(more)}".rstrip()
        return Supplement(text, {"why_not": {"memory": self.name, "reason": reason, "change": change}})


def missing(
    memory: Memory, result: SearchResult, name: str | int, budget: int, names: Mapping[str, str]
) -> AbsenceReport:
    """Explains why a memory is missing from an answer. The attempts use only the time the search has left.

    Args:
        memory: The open memory.
        result: The result of the search.
        name: Id, key or path of the memory.
        budget: Token budget of the answer.
        names: The parameters of the tool by those of the engine.

    Raises:
        SpeckitError: E080 with the nearest keys for an unknown name.
    """
    allowed = result.asked.allowed_ms if result.asked else None
    # seconds left of the search's own time limit
    left = math.inf if allowed is None else (allowed - result.timings_ms.total) / 1000
    reason, change = reason_of_absence(memory, result, name, door=TOOL, until=time.perf_counter() + left)
    if change:
        change = replace(change, tried=tuple(names.get(one, one) for one in change.tried))
    key = memory.get(memory_name(name)).key
    rank = next((place for place, row in enumerate(result.results, start=1) if row.key == key), 0)
    return AbsenceReport(name, key, rank, len(result.results), reason, change, budget, allowed is not None, names)


def in_the_call(names: Mapping[str, str], change: QueryEdit) -> str:
    """Describes a change as a parameter of the call, or as a task for the user if the client cannot make it."""
    now = f"(now {yaml_text(change.before)})"
    match change.kind:
        case "question" | "wish":
            name, value = _parameter(names, change)
            return f"without {name} {now}" if value is None else f"{name}: {yaml_text(value)} {now}"
        case "value":
            return f"{change.name}: {yaml_text(change.after)} {now}, for the user to write into {PIPELINE_FILE}"
        case "flag":
            return f"the flag {change.name}: {yaml_text(change.after)}, for the user to decide ({FLAGS_FILE})"
    return f"leaving out the step '{change.name}', for the user to do in {PIPELINE_FILE}"


def change_data(names: Mapping[str, str], change: QueryEdit) -> dict[str, Any]:
    """A change as plain data. `parameters` are those of the call, null for one to omit; {} if only the user can make
    the change."""
    own = change.kind in ("question", "wish")
    name, value = _parameter(names, change) if own else (change.name, change.after)
    return {
        "kind": "parameter" if own else change.kind,
        "name": name,
        "from": change.before,
        "to": value,
        "parameters": {name: value} if own else {},
    }


def _parameter(names: Mapping[str, str], change: QueryEdit) -> tuple[str, Plain]:
    """The parameter of the tool and its value; None to omit it."""
    return names.get(change.name, change.name), None if change.after == "" else change.after
