"""Selects the pipeline for a session while flags are enabled for a share of the sessions (feature P11)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from speckit_memory.config.files.paths import resolve_path
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, assemble
from speckit_memory.pipeline.configuration.checked_variants import Rollout, bucket
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Runner


class RolledOut:
    """The pipelines of the shares, each built on first use. Thread-safe."""

    def __init__(self, rollouts: Sequence[Rollout] = (), *, strict: bool = False) -> None:
        """`rollouts`: valid ones, the smallest share first."""
        self._strict = strict
        self._rollouts = tuple(rollouts)
        self._built: dict[int, Runner] = {}
        self._guard = Lock()

    def runner(self, session: str, store: Path) -> Runner | None:
        """The runner of the session's share, None for the control. Without a session, the store's path decides."""
        share = self._share(session, store)
        return self._of(share) if share else None

    def checked(self, session: str, store: Path) -> CheckedPipeline | None:
        """The pipeline of that runner, as examined; None for the control."""
        share = self._share(session, store)
        return share.checked if share else None

    def _share(self, session: str, store: Path) -> Rollout | None:
        if not self._rollouts:
            return None
        place = bucket(clean(session) or str(resolve_path(store)))
        return next((one for one in self._rollouts if place < one.percent), None)

    def has(self, runner: Runner) -> bool:
        """Whether the runner belongs to a share."""
        return any(runner is built for built in self._built.values())

    def answering(self, config_hash: str) -> Runner | None:
        """The runner that gave an answer, by the hash of its pipeline; None for the control."""
        found = (self._of(one) for one in self._rollouts if one.checked.hash == config_hash)
        return next(found, None)

    def _of(self, rollout: Rollout) -> Runner:
        with self._guard:
            if rollout.percent not in self._built:
                built = runner_of(assemble(rollout.checked), strict=self._strict)
                self._built[rollout.percent] = built
            return self._built[rollout.percent]


def runner_of(pipeline: Pipeline, *, strict: bool) -> Runner:
    """The runner of a pipeline. If `strict`, components run under the strict guard, and their failures are raised."""
    if strict:
        # imported here: only tests are strict
        from speckit_memory.pipeline.testing.strict import guarded_pipeline

        pipeline = guarded_pipeline(pipeline)
    return Runner(pipeline, strict=strict)
