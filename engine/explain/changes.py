"""One thing changed in a search: a word of the question, a wish, a value, a flag or a step (feature P8)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from speckit_memory.engine.answers.request import Asked
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.plain_leaves import Plain
from speckit_memory.pipeline.configuration.variants import with_flag, with_values, without

Kind = Literal["question", "wish", "value", "flag", "step"]

OPTIONS = {
    "limit": "--limit",
    "folder": "--folder",
    "mode": "--mode",
    "session": "--session",
    "deadline_ms": "--deadline-ms",
}
"""The options of the command line by the names that the same have in Python."""
LISTS = ("concepts", "anchors")
"""Parts of a question that hold several texts, and are left out as a whole."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is to be otherwise. `place` is that of the step in running order, 0 for the question itself.

    `name` is a parameter of `Memory.search`, a field of its `adjust` that is left to the pipeline, "step.parameter" or
    "step.parameter.key", a flag, or the id of a step to leave out. `file` is the pipeline file that says the same,
    where only a file can say it.
    """

    kind: Kind
    name: str
    before: Plain
    after: Plain
    place: int
    file: str = field(default="", compare=False)

    @property
    def size(self) -> float:
        """How much is changed: |after - before| by the larger of the two for numbers, in (0, 2].

        So twice and half as much are both 0.5, four times and a quarter 0.75, and from 0 or to 0 is 1. A word, a switch
        or a folder is 1. A flag or a step left out is 2: these change more than one value.
        """
        if self.kind in ("flag", "step"):
            return 2.0
        return relative(self.before, self.after)

    @property
    def order(self) -> tuple[float, int, float]:
        """Smaller ones first, of equal ones that of the earlier step, and of those the nearest number."""
        return self.size, self.place, difference(self.before, self.after)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the command takes for it, after whatever it took before; none for a flag, a step, or Python alone."""
        match self.kind:
            case "question" if self.name in OPTIONS:
                return (OPTIONS[self.name], "" if self.after is None else str(self.after))
            case "value":
                return ("--set", f"{self.name}={yaml_text(self.after)}")
        return ()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variable that opens or closes a flag."""
        return {self.name: yaml_text(self.after)} if self.kind == "flag" else {}

    @property
    def told(self) -> str:
        """What to type, or to do where nothing can be typed."""
        match self.kind:
            case "question" if self.name in OPTIONS and self.after == "":
                return f"no {OPTIONS[self.name]} (it is {self.before})"
            case "question" if self.name in OPTIONS:
                return f"{shlex.join(self.arguments)} (now {yaml_text(self.before)})"
            case "question":
                return f"{self.name}={self.after!r} in Python (now {self.before!r})"
            case "wish":
                return f"adjust without {self.name} in Python (now {self.before!r})"
            case "value":
                return f"{shlex.join(self.arguments)} (now {yaml_text(self.before)})"
            case "flag":
                return f"{self.name}={yaml_text(self.after)} in the environment"
        return f"leaving out the step '{self.name}'" + (", with the pipeline file below" if self.file else "")

    def applied(self, asked: Asked, whole: Effective) -> tuple[Asked, Effective]:
        """The question and the pipeline with the change; what cannot be changed so is a problem of the pipeline.

        A wish that is left changes the question alone, which is answered by another pipeline then.
        """
        match self.kind:
            case "question" if self.name == "deadline_ms":
                return replace(asked, allowed_ms=None), whole
            case "question":
                changes: dict[str, Any] = {self.name: () if self.name in LISTS else self.after}
                return replace(asked, question=replace(asked.question, **changes)), whole
            case "wish":
                return replace(asked, adjust=asked.adjust.without(self.name)), whole
            case "value":
                return asked, with_values(whole, {self.name: yaml_text(self.after)})
            case "flag":
                return asked, with_flag(whole, self.name, on=bool(self.after))
        return asked, without(whole, self.name, forgotten=True)

    def as_json(self) -> dict[str, Any]:
        """The change as plain data."""
        return {
            "kind": self.kind,
            "name": self.name,
            "from": self.before,
            "to": self.after,
            "size": round(self.size, 4),
            "arguments": list(self.arguments),
            "environment": dict(self.environment),
            "file": self.file,
        }


def relative(before: Plain, after: Plain) -> float:
    """How far two values lie apart, see `Change.size`; 1 for all that are not both numbers."""
    if isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
        return 1.0
    return abs(after - before) / (max(abs(after), abs(before)) or 1.0)


def difference(before: Plain, after: Plain) -> float:
    """How far two numbers lie apart, 0 for all that are not both numbers."""
    if isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
        return 0.0
    return abs(after - before)


def yaml_text(value: Plain) -> str:
    """A value as it is written in YAML, on one line."""
    return json.dumps(value)
