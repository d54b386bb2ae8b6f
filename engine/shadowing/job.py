"""One query that a control has answered, with the state that it saw, and the variants that it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter

from speckit_memory.engine.shadowing.records import Named, RunBeside
from speckit_memory.engine.shadowing.variant import RunningVariant, Why
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.holding import Held
from speckit_memory.pipeline.boundary import Pause
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.shadow import Beside, Run


class Job:
    """Used by one thread at a time, but that anybody may let go of what it holds."""

    def __init__(self, named: Named, before: Beside, runs: Sequence[RunBeside] = ()) -> None:
        """`runs` are those that were made already."""
        self.named = named
        self.before = before
        self.since = perf_counter()
        self.handing_ms = 0.0
        """What the reply waited for this."""
        self.runs: list[RunBeside] = list(runs)
        self.left: list[RunningVariant] = []
        self._store: Store | None = None
        self._held: Held | None = None
        self._holding = False
        self._database: Database | None = None
        self._settled = False
        self._guard = Lock()

    def wait_for(
        self, variants: Sequence[RunningVariant], store: Store, database: Database, known: Held | None = None
    ) -> None:
        """Holds the state that this thread sees, for these variants. They are counted where that cannot be.

        `known` is a hold on the same state, which is shared as long as it lasts.
        """
        if any(record.state == "skipped" for record in self.before.control.steps):
            for variant in variants:
                variant.drop("late")
            return
        self._held = known if known is not None and known.share() else database.hand_over()
        if self._held is None:
            for variant in variants:
                variant.drop("state")
            return
        self._store, self._database, self.left = store, database, list(variants)
        self._holding = True

    @property
    def holding(self) -> bool:
        """Whether a state of the store is held for it."""
        return self._holding and self._held is not None and not self._held.ended

    @property
    def held(self) -> Held | None:
        """The hold on the state, also when it has ended."""
        return self._held

    @property
    def idle(self) -> bool:
        """Whether it waits for a moment without searches, and for nothing else."""
        return bool(self.left) and all(variant.place != "beside" for variant in self.left)

    def next_at(self, place: str) -> tuple[RunningVariant | None] | None:
        """The first variant that runs at this place; (None,) for a query that waits for none, None for nothing."""
        if not self.left:
            return (None,) if place == "beside" else None
        for variant in list(self.left):
            if variant.place == "off":
                self.left.remove(variant)
                variant.drop("off")
            elif variant.place == place:
                return (variant,)
        return (None,) if not self.left and place == "beside" else None

    def run(self, variant: RunningVariant, pause: Pause) -> Run | None:
        """The query through a variant. None when the state was not to be had any more."""
        held, store, database = self._held, self._store, self._database
        self.left.remove(variant)
        if held is None or store is None or database is None or held.ended:  # another shared it, whose variant hung
            variant.drop("state")
            return None
        with held.adopted():
            run = self.before.run(variant.runner, store, pause)
        if run.failure and database.lost:
            variant.drop("state")
            return None
        return run

    def ran(self, run: RunBeside) -> None:
        """Adds what a variant made of the query."""
        self.runs.append(run)

    def drop(self, why: Why) -> None:
        """Nothing of what is left runs. The state is held until `end`, which nobody calls who has others wait."""
        for variant in self.left:
            variant.drop(why)
        self.left.clear()

    def abandon(self) -> None:
        """A thread that was given up may still use the state: nobody else does from now on."""
        if self._lets_go() and self._held:
            self._held.abandon()

    def end(self, *, take_up_log: bool = False) -> None:
        """Lets the state go, see `Held.end`. It may be repeated. No thread may be at one of its variants."""
        if self._lets_go() and self._held:
            self._held.end(take_up_log=take_up_log)
        self._store = self._database = None

    def _lets_go(self) -> bool:
        with self._guard:
            held, self._holding = self._holding, False
        return held

    def settles(self) -> bool:
        """True for the first who asks: it is noted once, whoever finds it done."""
        with self._guard:
            settled, self._settled = self._settled, True
        return not settled

    def failed(self, variant: RunningVariant, failure: str, seconds: float) -> RunBeside:
        """A run of a variant that came to nothing after so long."""
        ns = int(seconds * 1e9)
        run = replace(
            self.before.control, pipeline=variant.runner.pipeline, outcome=None, steps=(), total_ns=ns, spent_ns=ns,
            failure=failure, parted_at="",
        )  # fmt: skip
        return RunBeside(variant, run, 0.0)
