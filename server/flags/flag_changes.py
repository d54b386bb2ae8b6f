"""Implements `flags promote` and `flags demote`: one step at a time, refused with all that is missing, and recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.flags.flag import ACTIVE, MAX_ACTIVE, ON, active_of, ahead
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.server.flags.flag_audit import expiry_of, today
from speckit_memory.server.flags.flag_reading import ActiveComponents

if TYPE_CHECKING:
    from speckit_memory.config.flags.flag import Flag
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase

_MEASURED = """\
`speckit-memory eval compare {own} --flag {name}` measures it on judged queries, all metrics of quality and the times \
included, and keeps the result under an id{others}."""
_MIXED = """\
A preference needs an entry of `shadows` with `interleave: true` for the pipeline with the flag; `shadow report` \
shows its id."""


@dataclass(frozen=True, slots=True)
class FlagTransition:
    """A change of a flag's state, in force for every process that starts from now on.

    `unrecorded` is the reason why the change is not in the evaluation database, "" if it is.
    """

    flag: str
    before: str
    after: str
    evidence: str
    file: str
    unrecorded: str
    remarks: tuple[str, ...] = ()
    """Reasons why the new state has no effect here."""

    def as_json(self) -> dict[str, object]:
        """The change as plain data."""
        return {**asdict(self), "recorded": not self.unrecorded, "remarks": list(self.remarks)}

    def lines(self) -> Iterator[str]:
        """The change as sentences."""
        yield f"{self.flag}: {self.before} → {self.after} ({self.file})"
        if self.unrecorded:
            yield f"The file is changed, but the time and reason are not recorded: {self.unrecorded}"
        yield "A running server uses the new state from its next search on, a Python program from its next start."


def promote(
    name: str, evidence: str, db: Path | str | None, pipeline: str | None, *, reason: str = ""
) -> FlagTransition:
    """Brings a flag to its next state.

    Args:
        name: Name of the flag.
        evidence: Id of the comparison that justifies the state; "" for none.
        db: File of the store; None for the configured one.
        pipeline: Name or file of the pipeline; None for the configured one.
        reason: Purpose of the flag, if its criterion requires no gain and the comparison shows none.

    Raises:
        SpeckitError: E127 with everything that is missing.
    """
    from speckit_memory.evaluation.experiments.flag_steps import next_state

    in_use = ActiveComponents.of(db, pipeline)
    flag = in_use.declared(name)
    after = next_state(flag.state)
    if after is None:
        raise SpeckitError("E127", f"{name} is permanent already")
    # remember all flags that were judged: `still` detects later changes by other processes
    judged = in_use.flags()
    stated = replace(flag, decision={**flag.decision, "reason": reason}) if reason else flag
    _judge(in_use, stated, after, evidence)

    def still() -> None:
        """Judges again if another process has changed flags meanwhile."""
        _require_unchanged(in_use, flag)
        if in_use.flags() != judged:
            _judge(in_use, stated, after, evidence)

    return _change(in_use, flag, after, evidence, still, reason)


def _judge(in_use: ActiveComponents, flag: Flag, after: str, evidence: str) -> None:
    """Raises SpeckitError with all that a flag lacks for its next state."""
    from speckit_memory.evaluation.experiments.flag_evidence import find_comparison, keep_evidence
    from speckit_memory.evaluation.experiments.flag_steps import lacking, second_window, too_dear

    name, whole, registry = flag.name, in_use.whole(), in_use.registry
    if whole.problems:
        raise SpeckitError.of(whole.problems)
    broken = list(_breaking(flag, after, in_use.flags()))
    database = in_use.opened(create=False)
    try:
        missing: Sequence[str] = ()
        if after in ON:
            find = cache(lambda one: find_comparison(database, one) if database else None)
            missing = lacking(whole, flag, registry, evidence, find)
            if after == "permanent":
                enabled_at = _enabled_at(database, name)
                missing = [*missing, *second_window(flag, evidence, enabled_at, find)]
            if after == "permanent" and flag.percent < 100:
                missing = [*missing, f"it is enabled for {flag.percent} % of sessions; raise 'percent' to 100 first"]
            if not missing and not broken and database is not None:
                keep_evidence(database, evidence, time.time())
        elif after == "shadow" and database is not None:
            missing = too_dear(whole, name, registry, database)
    finally:
        if database is not None:
            database.close()
    if evidence and after not in ON:
        missing = [*missing, "that state needs no comparison, and none would be judged; omit --evidence"]
    if missing or broken:
        measured = _how_to_measure(flag, after) if missing and after in ON else ""
        raise SpeckitError.of(
            Problem("E127", f"{name} stays {flag.state} and does not become {after}: {one}", measured)
            for one in (*broken, *missing)
        )


def _enabled_at(database: EvaluationDatabase | None, name: str) -> float:
    """When a flag was last enabled (epoch seconds); 0 if that is not recorded."""
    changes = database.flag_changes(name) if database else []
    return max(
        (change.at for change in changes if change.before == "shadow" and change.after == "enabled"), default=0.0
    )


def _how_to_measure(flag: Flag, after: str) -> str:
    """Describes how to make the comparison that a flag lacks, by means that can meet its criterion."""
    from speckit_memory.evaluation.ground_truth.own_queries import ENOUGH_QUERIES

    if any(condition.metric == "interleaving" for condition in flag.criterion):
        return _MIXED
    own = "--own --window 2" if after == "permanent" else "--own"
    if max((condition.queries for condition in flag.criterion), default=0) > ENOUGH_QUERIES:
        return _MEASURED.format(own="--dataset DIR", name=flag.name, others="")
    others = "; `--dataset DIR` does so on your own judgements, `eval replay --flag` on recorded queries"
    return _MEASURED.format(own=own, name=flag.name, others=others)


def _require_unchanged(in_use: ActiveComponents, flag: Flag) -> None:
    """Raises SpeckitError if another process has changed the flag since it was read."""
    now = in_use.declared(flag.name)
    if (now.state, now.decision) != (flag.state, flag.decision):
        message = f"{flag.name} was {flag.state} when it was judged; another process has since made it {now.state}"
        raise SpeckitError("E127", message, actions=("run the command again if you still want the change",))


def _breaking(flag: Flag, after: str, in_force: Mapping[str, Flag]) -> Iterator[str]:
    """The audit rules that a flag would break in its next state."""
    others = [other.name for other in active_of(in_force.values()) if other.name != flag.name]
    if after in ACTIVE and len(others) >= MAX_ACTIVE:
        yield f"{len(others)} others are active ({', '.join(others)}), accepted: at most {MAX_ACTIVE} in all"
    expired = expiry_of(flag, today())
    if expired is not None and after != "permanent":
        yield f"it expired on {expired}; `flags demote` takes it back, a later 'expires' gives it time"


def demote(name: str, db: Path | str | None, pipeline: str | None) -> FlagTransition:
    """Takes a flag back to its previous state. Raises SpeckitError if there is none."""
    from speckit_memory.evaluation.experiments.flag_steps import state_before

    in_use = ActiveComponents.of(db, pipeline)
    flag = in_use.declared(name)
    after = state_before(flag.state)
    if after is None:
        raise SpeckitError("E127", f"{name} is off already")
    if flag.state == "permanent" and (flag.before or "permanent") == "permanent":
        message = f"{name} is permanent where it is declared, {flag.where}, and is decided there"
        raise SpeckitError("E127", message)
    return _change(in_use, flag, after, "", lambda: _require_unchanged(in_use, flag))


def _change(
    in_use: ActiveComponents, flag: Flag, after: str, evidence: str, still: Callable[[], None], reason: str = ""
) -> FlagTransition:
    """Writes the new state and removes entries that only applied to the old one."""
    from speckit_memory.engine.pipelines.flag_edits import decide

    decision = {"state": after, "was": flag.state}
    if not flag.of_workspace:  # the `since` of a workspace flag is the first day of its life, from which its age counts
        decision |= {"since": str(today())}
    if after in ON and evidence:
        decision |= {"evidence": evidence}
    if reason:
        decision |= {"reason": reason}
    over = () if after in ON else ("evidence",)
    # a demotion also removes the share of sessions
    if ahead(flag.state, after) < 0:
        over = (*over, "percent")
    file = decide(in_use.config.root, flag.name, decision, over, still)
    folder = in_use.config.db.parent
    unrecorded = f"there is no folder '{folder}'"
    try:  # the file is authoritative; the database only records time and reason
        database = in_use.opened(create=folder.is_dir())
        if database is not None:
            from speckit_memory.memory.store.evaluation.records import FlagChange

            with database:
                database.flag_changed(FlagChange(flag.name, flag.state, after, time.time(), evidence))
            unrecorded = ""
    except SpeckitError as error:
        unrecorded = error.problems[0].message
    except OSError as error:
        unrecorded = str(error)
    remarks = tuple(_idle(in_use, flag.name, after))
    return FlagTransition(flag.name, flag.state, after, evidence, os.fspath(file), unrecorded, remarks)


def _idle(in_use: ActiveComponents, name: str, after: str) -> Iterator[str]:
    """Reasons why a new state has no effect here. Unreadable files are left to the commands that need them."""
    from speckit_memory.pipeline.configuration.loading import name_of
    from speckit_memory.pipeline.configuration.variants import waiting_flags

    with suppress(SpeckitError):
        whole = in_use.whole()
        if after != "off" and name not in waiting_flags(whole):
            yield (
                f"no step of the pipeline in use, {name_of(whole)}, waits for {name}; "
                "`speckit-memory flags list` shows which pipelines do"
            )
        state = in_use.flags()[name].state
        if state != after:
            variable = in_use.config.environ_of_root.get(name, "")
            yield f"the environment variable {name}={variable} decides here and makes it {state}; unset it"
