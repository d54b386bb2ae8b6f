"""Reads the input of the flag commands: flag files, the pipeline in use, and the comparisons that flags cite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.flags.flag import nearest_flag
from speckit_memory.config.flags.flags import declared_flags, load_flags
from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server.flags.flag_audit import Evidence

if TYPE_CHECKING:
    from speckit_memory.config.flags.flag import Flag
    from speckit_memory.evaluation.experiments.flag_evidence import CitedComparison
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
    from speckit_memory.pipeline.configuration.effective import Effective
    from speckit_memory.pipeline.roles.registry import Registry


@dataclass(frozen=True, slots=True)
class ActiveComponents:
    """The settings and the components in use."""

    config: Settings
    registry: Registry

    @classmethod
    def of(cls, db: Path | str | None, pipeline: str | None) -> ActiveComponents:
        """The settings and components selected by a command's options."""
        from speckit_memory.engine import components

        config = settings(db, pipeline)
        return cls(config, components.registry(config.environ, config.root))

    def whole(self) -> Effective:
        """The pipeline, including its problems. Raises SpeckitError if it cannot be read."""
        from speckit_memory.pipeline.configuration.loading import load

        return load(self.config.pipeline, self.config.environ_of_root, offered=self.registry.flag_files)

    def flags(self) -> dict[str, Flag]:
        """The flags in force. Raises SpeckitError with all problems of their files."""
        return load_flags(self.config.environ_of_root, extensions=self.registry.flag_files())

    def declared(self, name: str) -> Flag:
        """A flag as declared in its files. Raises SpeckitError for an unknown name, with the nearest one."""
        self.flags()
        flags, _ = declared_flags(self.config.environ_of_root, extensions=self.registry.flag_files())
        if name in flags:
            return flags[name]
        waited = self._waited_for(name)
        told = f"the step '{name}' waits for {waited}" if waited else nearest_flag(name, flags)
        raise SpeckitError("E120", f"no flag is called '{name}'; {told}")

    def opened(self, *, create: bool) -> EvaluationDatabase | None:
        """The evaluation database; None if there is none and `create` is False."""
        from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file, open_if_there

        path = evaluation_file(self.config.db)
        return EvaluationDatabase.open(path) if create else open_if_there(path)

    def _waited_for(self, step: str) -> str:
        try:
            listed = self.whole().listed.values()
        except SpeckitError:
            return ""
        waiting = (one for steps in listed for one in steps if step in (one.id, one.use))
        return " or ".join(dict.fromkeys(name for one in waiting for name in one.flags))


@contextmanager
def evidence_in_force(db: Path | str | None, pipeline: str | None) -> Iterator[Evidence | None]:
    """Yields a judge of the evidence that flags cite, by the evaluation database and the pipeline in use.

    Each comparison is read once. Yields None if the pipeline cannot be read, which other commands report.
    """
    from speckit_memory.evaluation.experiments.flag_evidence import find_comparison
    from speckit_memory.evaluation.experiments.flag_steps import unborne

    in_use = ActiveComponents.of(db, pipeline)
    try:
        whole = in_use.whole()
    except SpeckitError:
        yield None
        return
    database = in_use.opened(create=False)
    try:
        find: Callable[[str], CitedComparison | None] = cache(
            lambda one: find_comparison(database, one, promoted=True) if database else None
        )
        yield lambda flag: list(unborne(whole, flag, in_use.registry, find))
    finally:
        if database is not None:
            database.close()
