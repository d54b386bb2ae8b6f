"""Background work by hand: maintain the store, restore archived memories (features M5 and M11)."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from speckit_memory.errors.echo import plural
from speckit_memory.server.calls.parameters import MemoryName
from speckit_memory.server.operations.fields import ID_OR_KEY, DryRun
from speckit_memory.server.operations.operation import Call, Option, Parameters, operation
from speckit_memory.server.operations.view import View

if TYPE_CHECKING:
    from speckit_memory.engine.upkeep.maintenance import JobOutcome


class UpkeepRun(Parameters):
    dry_run: DryRun = False


@operation("administration", "maintain", one_door="a running server does this by itself")
def maintain(call: Call, params: UpkeepRun) -> View:
    """Run the background work that is due, once: for cron, where no server runs.

    Forgets sessions that are over, deletes memories whose files were missing for too long, archives expired memories
    and those that are old, rarely used and doubted, embeds memories that wait for vectors, finds contradictions,
    adjusts the strength of links to their use, links memories that share a name if .speckit/config.yaml says `entities:
    link`, and ranks memories by the causal graph. Only one process does this at a time; if another one is running,
    nothing is done. Exits with 1 when a job fails.
    """
    found = call.memory().lifecycle.maintain(dry_run=params.dry_run)
    return View(
        "another process is running the background work" if found.elsewhere else plural(len(found.jobs), "job"),
        {
            "dry_run": params.dry_run,
            "elsewhere": found.elsewhere,
            "failed": found.failed,
            "jobs": [asdict(done) for done in found.jobs],
        },
        facts={done.job: _outcome(done, params.dry_run) for done in found.jobs},
        status=1 if found.failed else 0,
    )


def _outcome(done: JobOutcome, dry_run: bool) -> str:
    if done.failure:
        return f"failed: {done.failure}"
    if done.state == "not due":
        return "not due"
    if done.state == "waiting":
        return f"would be run: {done.count} {done.what}" if dry_run else "due"
    return f"{done.count} {done.what}" + (", and more to do" if done.state == "unfinished" else "")


class ArchiveRestoration(Parameters):
    keys: Annotated[
        list[MemoryName],
        Option("Ids or keys of the memories; without one, list them.", argument=True, metavar=ID_OR_KEY),
    ] = []


@operation("daily", "unarchive", one_door="the tool is memory_validate, which restores a memory that was useful")
def unarchive(call: Call, params: ArchiveRestoration) -> View:
    """Restore archived memories for searches; without a name, list them.

    A memory that was archived because it had expired lives seven more days. An unknown name makes the whole command
    fail.
    """
    from speckit_memory.server.console.arguments.memory_names import known_key

    memory = call.memory()
    if not params.keys:
        rows = [found._asdict() for found in memory.lifecycle.archived()]
        return View(
            f"{plural(len(rows), 'memory')} archived",
            {"archived": rows},
            rows="archived",
            cells=lambda row: (row["key"], row["reason"], _day(row["archived_at"])),
            heads=("memory", "reason", "archived"),
        )
    known = [known_key(memory, name) for name in dict.fromkeys(params.keys)]
    restored = {key: memory.lifecycle.unarchive(key) for key in known}
    return View(
        f"{plural(sum(restored.values()), 'memory')} restored",
        {"restored": [key for key, was in restored.items() if was], "memories": list(restored)},
        facts={key: "found by searches again" if was else "was not archived" for key, was in restored.items()},
    )


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(when))
