"""Applies additions, changes and removals of a file to inherited steps (feature P2).

Changed steps keep their places unless they name another. Then added and moved steps go to the places they name, in the
order written, or to the end. `before` and `after` may therefore name each other's steps, and steps that are removed,
since removal comes last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from speckit_memory.config.pipelines.pipeline_file import Edits, StepEntry
from speckit_memory.config.yaml.reader import merge_mappings
from speckit_memory.errors import Problem, nearest


def edit_slot(below: Sequence[StepEntry], edits: Edits, slot: str, problems: list[Problem]) -> tuple[StepEntry, ...]:
    """The steps of a slot after the edits.

    Args:
        below: The inherited steps.
        edits: The edits.
        slot: Name of the slot, for messages.
        problems: Receives the instructions that cannot be followed, which are ignored.
    """
    ids = [step.id for step in below]
    problems += _contradictions(ids, edits, slot)
    changes: dict[str, StepEntry] = {}
    for step in edits.change:
        problems += _useless_change(step, below)
        # setdefault: the first of several changes counts; the others are reported.
        changes.setdefault(step.id, step)
    added: dict[str, StepEntry] = {}
    for step in edits.add:
        if step.id not in ids:
            added.setdefault(step.id, step)
    steps = [_changed(step, changes[step.id]) if step.id in changes else step for step in below]
    placed = [changes[step.id] for step in below if step.id in changes and _anchor_of(changes[step.id])]
    for step in (*placed, *added.values()):
        problems += _misplaced(step, [*ids, *added], slot)
    # Positions are resolved with removed steps still present, as others may refer to them.
    order = _order(ids, [*placed, *added.values()], problems)
    removed = {name for name, _ in edits.remove}
    # a step that would replace a removed one when its flag is on is removed as well
    removed |= {step.id for step in below if step.flags and step.replaces in removed and step.id not in changes}
    # Reversed, so that of several steps with one id the first is kept.
    present = {step.id: step for step in reversed(steps)} | added
    repeated = [
        step for place, step in enumerate(steps) if step.id in ids[:place] and step.id not in removed
    ]  # rejected later by the rules of pipelines
    return (*(present[name] for name in order if name not in removed), *repeated)


def _anchor_of(step: StepEntry) -> str:
    return step.before or step.after


def _order(ids: Sequence[str], placed: Sequence[StepEntry], problems: list[Problem]) -> list[str]:
    """The ids with every placed step next to the step that it names; several after the same one keep their order."""
    known = {*ids, *(step.id for step in placed)}
    order = [name for name in dict.fromkeys(ids) if name not in {step.id for step in placed}]
    # Steps placed after the same one: the first stays next to it, each later one follows its predecessor.
    behind: dict[str, list[str]] = {}
    waiting = list(placed)
    # Every round removes a step from `waiting` or returns.
    while waiting:
        # A topological order: place the next step whose neighbour already has a place; none left means a cycle.
        step = next((one for one in waiting if not _anchor_of(one) or _anchor_of(one) in order), None)
        if step is None:
            if all(_anchor_of(one) in known and _anchor_of(one) != one.id for one in waiting):  # else already reported
                names = ", ".join(f"'{one.id}'" for one in waiting)
                message = f"{names} are only placed next to one another; let one of them name a step that is not moved"
                problems.append(Problem("E119", message, where=waiting[0].where))
            return [*order, *(one.id for one in waiting)]
        waiting.remove(step)
        if step.before:
            order.insert(order.index(step.before), step.id)
        elif step.after:
            last = behind.setdefault(step.after, [step.after])
            order.insert(order.index(last[-1]) + 1, step.id)
            last.append(step.id)
        else:
            order.append(step.id)
    return order


def _changed(below: StepEntry, step: StepEntry) -> StepEntry:
    """An inherited step with a change applied; its component and all other values are kept."""
    return replace(
        below,
        where=step.where,
        params=merge_mappings(below.params, step.params),
        flags=step.flags or below.flags,
        optional=step.optional if "optional" in step.places else below.optional,
        replaces=step.replaces or below.replaces,
        places=below.places | step.places,
    )


def _contradictions(ids: Collection[str], edits: Edits, slot: str) -> Iterator[Problem]:
    added: set[str] = set()
    for step in edits.add:
        if step.id in ids:
            message = f"'{slot}' has a step '{step.id}' already; change it, or give the new one another 'id'"
            yield Problem("E119", message, where=step.place("id" if "id" in step.places else "use"))
        elif step.id in added:
            yield Problem("E119", f"'{step.id}' is added twice; give one another 'id'", where=step.where)
        added.add(step.id)
    removed: set[str] = set()
    changed: set[str] = set()
    for name, where in edits.remove:
        if name not in ids:
            message = f"there is no step '{name}' to remove from '{slot}'; {nearest(name, ids)}"
            yield Problem("E119", message, where=where)
        elif name in removed:
            yield Problem("E119", f"'{name}' is removed twice; once is enough", where=where)
        removed.add(name)
    for step in edits.change:
        if step.id not in ids:
            message = f"there is no step '{step.id}' to change in '{slot}'; {nearest(step.id, ids)}"
            yield Problem("E119", message, where=step.place("id" if "id" in step.places else "use"))
        elif step.id in removed:
            yield Problem("E119", f"'{step.id}' is changed and removed; keep one of the two", where=step.where)
        elif step.id in changed:
            yield Problem("E119", f"'{step.id}' is changed twice; put it all into one entry", where=step.where)
        changed.add(step.id)


def _useless_change(step: StepEntry, below: Sequence[StepEntry]) -> Iterator[Problem]:
    uses = {other.use for other in below if other.id == step.id}
    if step.use and uses and step.use not in uses:
        message = f"'{step.id}' is a step '{min(uses)}', and a change cannot make it '{step.use}'"
        hint = f"Add the new step with 'before: {step.id}', and remove '{step.id}'."
        yield Problem("E119", message, hint=hint, where=step.place("use"))


def _misplaced(step: StepEntry, ids: Collection[str], slot: str) -> Iterator[Problem]:
    if step.before and step.after:
        message = f"'{step.id}' goes before '{step.before}' and after '{step.after}'; name one of the two"
        yield Problem("E119", message, where=step.place("after"))
    elif (beside := _anchor_of(step)) and (beside not in ids or beside == step.id):
        key = "before" if step.before else "after"
        others = [name for name in ids if name != step.id]
        message = f"'{slot}' has no other step '{beside}' for '{step.id}' to go {key}; {nearest(beside, others)}"
        yield Problem("E119", message, where=step.place(key))
