"""One change of a search: a parameter of the question, an option, a value, a flag or a step (feature P8)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from speckit_memory.engine.answers.request import RecordedRequest
from speckit_memory.pipeline.configuration.accepted_values import Plain
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import with_flag, with_values, without

Kind = Literal["question", "wish", "value", "flag", "step"]

OPTIONS = {
    "limit": "--limit",
    "folder": "--folder",
    "mode": "--mode",
    "session": "--session",
    "deadline_ms": "--deadline-ms",
}
"""The command-line options, by the names of the parameters in Python."""
LISTS = ("concepts", "anchors")
"""Parameters that hold several texts and are dropped as a whole."""


@dataclass(frozen=True, slots=True)
class QueryEdit:
    """One change. `place` is the position of its step in running order, 0 for the question itself.

    `name` is a parameter of `Memory.search`, a field of `adjust` to drop, "step.parameter" or "step.parameter.key", a
    flag, or the id of a step to remove. `file` is a pipeline file with the same change, if only a file can express it.
    """

    kind: Kind
    name: str
    before: Plain
    after: Plain
    place: int
    file: str = field(default="", compare=False)

    @property
    def size(self) -> float:
        """The size of the change: for numbers |after - before| divided by the larger absolute value, in (0, 2].

        Doubling and halving are 0.5, a factor of four 0.75, and from or to 0 is 1. A word, a switch or a folder is 1. A
        flag or a removed step is 2, as these change more than one value.
        """
        if self.kind in ("flag", "step"):
            return 2.0
        return relative(self.before, self.after)

    @property
    def order(self) -> tuple[float, int, float]:
        """The sort key: smaller changes first, then those of earlier steps, then the nearest number."""
        return self.size, self.place, difference(self.before, self.after)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command-line arguments to append; none for a flag, a step, or a change that only Python can make."""
        match self.kind:
            case "question" if self.name in OPTIONS:
                return (OPTIONS[self.name], "" if self.after is None else str(self.after))
            case "value":
                return ("--set", f"{self.name}={yaml_text(self.after)}")
        return ()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variable that switches a flag."""
        return {self.name: yaml_text(self.after)} if self.kind == "flag" else {}

    @property
    def told(self) -> str:
        """The text to type, or a description if nothing can be typed."""
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

    def applied(self, asked: RecordedRequest, whole: Effective) -> tuple[RecordedRequest, Effective]:
        """Applies the change to a question and a pipeline. An impossible change becomes a problem of the pipeline.

        Dropping an option changes the question alone, which selects another pipeline.
        """
        match self.kind:
            case "question" if self.name == "deadline_ms":
                return replace(asked, allowed_ms=None), whole
            case "question":
                changes: dict[str, Any] = {self.name: () if self.name in LISTS else self.after}
                return replace(asked, question=replace(asked.question, **changes)), whole
            case "wish":
                left = asked.question.adjust.without(self.name)
                return replace(asked, question=replace(asked.question, adjust=left)), whole
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
    """The relative distance of two numbers, see `QueryEdit.size`; 1 if either is not a number."""
    if isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
        return 1.0
    # `or 1.0`: both numbers are 0, and so is their difference.
    return abs(after - before) / (max(abs(after), abs(before)) or 1.0)


def difference(before: Plain, after: Plain) -> float:
    """The absolute distance of two numbers; 0 if either is not a number."""
    if isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
        return 0.0
    return abs(after - before)


def yaml_text(value: Plain) -> str:
    """A value in YAML, on one line."""
    return json.dumps(value)
