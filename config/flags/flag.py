"""One feature flag and its state in this process (features P4, P11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from speckit_memory.config.flags.criterion import Condition
from speckit_memory.config.flags.flag_states import ON
from speckit_memory.config.pipelines.shadow_entries import MODES, BesideMode
from speckit_memory.errors import Where

BY_ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and its state in this process.

    `where` is the place of the declaration, `facts` its contents, and `of_workspace` whether it is in a file of the
    workspace. `decided` is the place that sets the state, None for the environment. `extension` is the distribution
    that declares the flag, or "".

    `criterion` is the condition for its advance. `decision` holds the details given with the state (`was`, `since`,
    `evidence`, `percent`, `reason`), and `before` the state in the layer below, "" if the declaration sets the state.
    """

    name: str
    state: str
    where: Where
    decided: Where | None
    facts: Mapping[str, object] = field(default_factory=dict)
    of_workspace: bool = False
    extension: str = ""
    criterion: tuple[Condition, ...] = ()
    decision: Mapping[str, object] = field(default_factory=dict)
    before: str = ""

    @property
    def origin(self) -> str:
        """The source of the state: a file and line, the environment or the call."""
        if self.decided is None:
            return BY_ENVIRONMENT
        return f"{self.decided.file}:{self.decided.line}" if self.decided.path is None else str(self.decided)

    @property
    def percent(self) -> int:
        """The percentage of sessions for which an enabled flag is on, 0 to 100."""
        share = self.decision.get("percent", 100)
        return share if self.state == "enabled" and isinstance(share, int) else 100

    @property
    def reason(self) -> str:
        """The purpose of a flag that no figure shows, "" if none is given."""
        return str(self.decision.get("reason") or "")

    @property
    def on(self) -> bool:
        """Whether steps with the flag take part in the served answer of every session."""
        return self.state in ON and self.percent == 100

    @property
    def beside(self) -> BesideMode | None:
        """The mode in which steps with the flag run in addition to the served pipeline, None if they do not."""
        return next((mode for mode in MODES.values() if mode == self.state), None)
