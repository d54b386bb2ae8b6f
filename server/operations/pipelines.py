"""Pipelines: check, show and compare; states of their feature flags: list, audit, promote, demote (P1 to P3, P11)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge, plural
from speckit_memory.server.console import completion
from speckit_memory.server.operations.fields import Flag, Name
from speckit_memory.server.operations.operation import Option, Parameters, Row, View, operation

if TYPE_CHECKING:
    from speckit_memory.server.operations.command_line import CommandCall

BY_USER = "people decide on the pipeline that agents are served by"
PipelineName = Annotated[str, Option("A pipeline file or preset.", argument=True, complete=completion.pipelines)]


class PipelineCheck(Parameters):
    file: PipelineName


@operation("tuning", "pipeline check", one_door=BY_USER, reads=True, shared=("set", "json"))
def check(call: CommandCall, params: PipelineCheck) -> View:
    """Check a pipeline FILE (or preset) and report all problems at once.

    Each problem has the form file:line:column: code message, followed by a hint.
    """
    from speckit_memory.engine.pipelines import pipelines
    from speckit_memory.server.console.environment import remarks

    problems = pipelines.check(params.file, os.environ, call.common.overrides)
    if problems:
        found = SpeckitError.of(problems)
        return View(
            f"{plural(len(found.problems), 'problem')} in {abridge(params.file)}",
            {},
            remarks=tuple(remarks(os.environ)),
            problems=tuple(found.problems),
            status=found.exit_status,
        )
    lints = pipelines.remarks(params.file, os.environ)
    return View(
        f"{params.file}: no problems",
        {"file": params.file, "problems": []} | ({"remarks": lints} if lints else {}),
        remarks=(*remarks(os.environ), *lints),
    )


class PipelineView(Parameters):
    effective: Annotated[Flag, Option("Show every parameter with its value, defaults included.")] = False
    origin: Annotated[Flag, Option("Show where each value comes from, key by key.")] = False


@operation("tuning", "pipeline show", one_door=BY_USER, reads=True, shared=("pipeline", "set", "json"))
def show(call: CommandCall, params: PipelineView) -> View:
    """Show the pipeline in use as YAML: as written, or with every value filled in."""
    from speckit_memory.engine.pipelines import pipelines

    config, overrides = call.config, call.common.overrides
    text = pipelines.show(config.pipeline, os.environ, overrides, effective=params.effective, origin=params.origin)
    if params.origin:
        text = f"# {config.pipeline_told}\n{text}"
    return View("", {"pipeline": config.pipeline, "yaml": text}, text=text)


class PipelineDiff(Parameters):
    a: PipelineName
    b: PipelineName


@operation("tuning", "pipeline diff", one_door=BY_USER, reads=True, shared=("json",))
def diff(call: CommandCall, params: PipelineDiff) -> View:  # noqa: ARG001 -- it needs no store
    """Compare two pipelines (files or presets) by what would run, defaults included."""
    from speckit_memory.engine.pipelines import pipelines

    text = pipelines.diff(params.a, params.b, os.environ)
    return View(
        "" if text else f"{params.a} and {params.b} would do the same",
        {"a": params.a, "b": params.b, "same": not text, "diff": text},
        text=text or None,
    )


@operation("tuning", "pipeline schema", one_door=BY_USER, reads=True, shared=("json",))
def schema(call: CommandCall, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """Print the JSON Schema of pipeline files, for completion and checks in editors."""
    from speckit_memory.engine.pipelines import pipelines

    found = pipelines.schema()
    return View("", found, text=json.dumps(found, ensure_ascii=False, indent=2))


HEADS = (
    *("flag", "state", "runs", "pipelines", "group", "owner", "days", "expires", "decided by"),
    *("criterion", "evidence"),
)
FlagName = Annotated[Name, Option("Name of the flag.", argument=True)]


@operation("tuning", "flags list", one_door=BY_USER, reads=True, shared=("pipeline", "json"))
def list_flags(call: CommandCall, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """List the feature flags with state, age, expiry, criterion and evidence.

    Also shows who decided on the state, the pipelines whose steps wait for the flag, and its present effect on the
    pipeline in use.
    """
    from speckit_memory.config.flags.flags import read_flags
    from speckit_memory.engine.pipelines.flags_in_pipelines import waiting
    from speckit_memory.server.console.environment import flags_of_extensions, remarks
    from speckit_memory.server.flags.flag_audit import audit, today

    found = audit(os.environ, today(), extensions=flags_of_extensions(os.environ))
    pipelines = waiting(call.config)
    in_force, _ = read_flags(os.environ, extensions=flags_of_extensions(os.environ))
    if unreadable := [problem for problem in found.problems if problem.code != "E124"]:
        raise SpeckitError.of(unreadable)
    rows: list[dict[str, Any]] = [
        {
            **flag.as_json(),
            "pipelines": list(pipelines.pipelines(flag.name)),
            "runs": pipelines.runs(in_force[flag.name]),
        }
        for flag in found.flags
    ]
    none = "No feature flags are declared: every step of the pipeline is decided by its file alone."
    return View(
        "" if rows else none,
        {"flags": rows},
        rows="flags",
        cells=_flag_cells,
        heads=HEADS,
        remarks=(*remarks(os.environ), *found.remarks),
    )


def _flag_cells(row: Row) -> tuple[str, ...]:
    return (
        row["name"],
        row["state"] if row["percent"] == 100 else f"{row['state']} {row['percent']} %",
        row["runs"],
        ", ".join(row["pipelines"]),
        row["group"],
        row["owner"],
        "" if row["age_days"] is None else str(row["age_days"]),
        row["expires"],
        row["origin"],
        row["criterion"],
        row["evidence"],
    )


class FlagAudit(Parameters):
    strict: Annotated[Flag, Option("Treat expired shipped flags as a breach too.")] = False


@operation("tuning", "flags audit", one_door=BY_USER, reads=True, shared=("db", "pipeline", "json"))
def audit_flags(call: CommandCall, params: FlagAudit) -> View:
    """Check the rules of feature flags; exit with 1 on a breach.

    The rules: at most 6 active flags, 90 days of life, an owner, a criterion, one state at a time, evidence for flags
    that are on. Reads the flags of the product and .speckit/flags.yaml of the workspace, and changes nothing. Expired
    shipped flags are only remarked on, unless --strict is given.
    """
    from speckit_memory.server.console.environment import flags_of_extensions
    from speckit_memory.server.flags.flag_audit import audit, today
    from speckit_memory.server.flags.flag_reading import evidence_in_force

    with evidence_in_force(call.common.db, call.common.pipeline) as evidence:
        extensions = flags_of_extensions(os.environ)
        found = audit(os.environ, today(), strict=params.strict, extensions=extensions, evidence=evidence)
    return View(
        f"{len(found.flags)} flags, {'a rule is broken' if found.problems else 'no rule is broken'}",
        {"flags": len(found.flags), "problems": [], "remarks": found.remarks},
        hints=() if found.problems else tuple(f"remark: {remark}" for remark in found.remarks),
        problems=tuple(found.problems),
        status=1 if found.problems else 0,
    )


class FlagPromotion(Parameters):
    name: FlagName
    evidence: Annotated[
        Name, Option("The comparison to rest on: an id from `shadow report` or `eval compare`.", metavar="ID")
    ] = ""
    reason: Annotated[
        str,
        Option(
            "The purpose of the flag, needed if its criterion only rules out a loss and the comparison shows no gain."
        ),
    ] = ""


@operation("tuning", "flags promote", one_door=BY_USER, shared=("db", "pipeline", "json"))
def promote_flag(call: CommandCall, params: FlagPromotion) -> View:
    """Move the flag NAME one state forward: off, dark_run, shadow, enabled, permanent.

    To become enabled, and again to become permanent, a flag needs a stored comparison of exactly the pipeline in use
    without and with it, which meets its criterion and shows no loss; to become permanent, one on other queries than the
    one by which it was enabled. Otherwise the command exits with 2 and lists everything that is missing. Writes the
    state into .speckit/flags.yaml of the workspace and leaves the rest of that file unchanged.
    """
    from speckit_memory.server.flags.flag_changes import promote

    common = call.common
    return _changed(promote(params.name, params.evidence, common.db, common.pipeline, reason=params.reason.strip()))


class FlagDemotion(Parameters):
    name: FlagName


@operation("tuning", "flags demote", one_door=BY_USER, shared=("db", "pipeline", "json"))
def demote_flag(call: CommandCall, params: FlagDemotion) -> View:
    """Move the flag NAME one state back, which needs no evidence.

    Writes .speckit/flags.yaml of the workspace.
    """
    from speckit_memory.server.flags.flag_changes import demote

    return _changed(demote(params.name, call.common.db, call.common.pipeline))


def _changed(changed: Any) -> View:
    first, *more = changed.lines()
    return View(first, changed.as_json(), hints=tuple(more), remarks=tuple(changed.remarks))
