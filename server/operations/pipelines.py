"""Check, show and compare pipelines (features P1 to P3)."""

from __future__ import annotations

import json
import os
from typing import Annotated

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge, plural
from speckit_memory.server.calls.parameters import Flag
from speckit_memory.server.console import completion
from speckit_memory.server.operations.operation import Call, Option, Parameters, operation
from speckit_memory.server.operations.view import View

BY_USER = "people decide on the pipeline that agents are served by"
PipelineName = Annotated[str, Option("A pipeline file or preset.", argument=True, complete=completion.pipelines)]


class PipelineCheck(Parameters):
    file: PipelineName


@operation("tuning", "pipeline check", one_door=BY_USER, reads=True, shared=("set", "json"))
def check(call: Call, params: PipelineCheck) -> View:
    """Check a pipeline FILE (or preset) and report all problems at once.

    Each problem has the form file:line:column: code message, followed by a hint.
    """
    from speckit_memory.engine.pipelines import pipelines
    from speckit_memory.server.console.environment import remarks

    assert call.common is not None  # there is no tool
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
def show(call: Call, params: PipelineView) -> View:
    """Show the pipeline in use as YAML: as written, or with every value filled in."""
    from speckit_memory.engine.pipelines import pipelines

    assert call.common is not None  # there is no tool
    config, overrides = call.config, call.common.overrides
    text = pipelines.show(config.pipeline, os.environ, overrides, effective=params.effective, origin=params.origin)
    if params.origin:
        text = f"# {config.pipeline_told}\n{text}"
    return View("", {"pipeline": config.pipeline, "yaml": text}, text=text)


class PipelineDiff(Parameters):
    a: PipelineName
    b: PipelineName


@operation("tuning", "pipeline diff", one_door=BY_USER, reads=True, shared=("json",))
def diff(call: Call, params: PipelineDiff) -> View:  # noqa: ARG001 -- it needs no store
    """Compare two pipelines (files or presets) by what would run, defaults included."""
    from speckit_memory.engine.pipelines import pipelines

    text = pipelines.diff(params.a, params.b, os.environ)
    return View(
        "" if text else f"{params.a} and {params.b} would do the same",
        {"a": params.a, "b": params.b, "same": not text, "diff": text},
        text=text or None,
    )


@operation("tuning", "pipeline schema", one_door=BY_USER, reads=True, shared=("json",))
def schema(call: Call, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """Print the JSON Schema of pipeline files, for completion and checks in editors."""
    from speckit_memory.engine.pipelines import pipelines

    found = pipelines.schema()
    return View("", found, text=json.dumps(found, ensure_ascii=False, indent=2))
