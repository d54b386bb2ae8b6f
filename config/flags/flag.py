"""One feature flag and its state in this process (features P4, P11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from speckit_memory.config.flags.criterion import Condition
from speckit_memory.config.flags.flag_states import ON
from speckit_memory.config.pipelines.beside import MODES, BesideMode
from speckit_memory.errors import Where

BY_ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and its state in this process.

    `where` is the place of the declaration, `facts` what stands there, and `of_workspace` tells whether that is a file
    of the workspace. `decided` is the place that decided on the state, None when the environment did. `extension` is
    the distribution that declares it, "" unless one does.

    `criterion` is what must have been shown before it advances. `decision` is what whoever decided on the state says of
    it (`was`, `since`, `evidence`, `percent`, `reason`), and `before` the state that the layer below gives it, "" where
    the declaration decides.
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
        """Who decided on the state: a file and its line, the environment or the call."""
        if self.decided is None:
            return BY_ENVIRONMENT
        return f"{self.decided.file}:{self.decided.line}" if self.decided.path is None else str(self.decided)

    @property
    def percent(self) -> int:
        """The share of sessions for which the flag is on while it is enabled, 0 to 100."""
        share = self.decision.get("percent", 100)
        return share if self.state == "enabled" and isinstance(share, int) else 100

    @property
    def reason(self) -> str:
        """What the flag is for where no figure shows that, "" where nobody has said it."""
        return str(self.decision.get("reason") or "")

    @property
    def on(self) -> bool:
        """True when steps behind the flag take part in the served answer of every session."""
        return self.state in ON and self.percent == 100

    @property
    def beside(self) -> BesideMode | None:
        """How steps behind the flag run beside the served pipeline, None when they do not."""
        return next((mode for mode in MODES.values() if mode == self.state), None)
