"""What health checks find. Importing this module loads neither numpy nor the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DAMAGED = (
    "`speckit-memory doctor --repair` rebuilds what can be derived from the rest. Otherwise copy the file, stop the "
    "servers, move the file away with its -wal and -shm, and index again, which restores the documents. "
    "Restore a checkpoint (`speckit-memory checkpoint list`) or a backup for the rest, such as judgements and memories "
    "whose files are gone."
)


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check. `hint` says what to do if it failed or could be better."""

    name: str
    ok: bool
    detail: str
    hint: str = ""

    @property
    def verdict(self) -> Literal["ok", "warn", "fail"]:
        """The result in a word; a check that passed with a hint is a warning."""
        return ("warn" if self.hint else "ok") if self.ok else "fail"


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All checks, in the order in which they ran."""

    checks: tuple[HealthCheck, ...]

    @property
    def ok(self) -> bool:
        """True when every check passed."""
        return all(check.ok for check in self.checks)
