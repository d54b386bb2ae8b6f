"""Embedding models by name: list, download, switch (feature I6)."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.operations.fields import Flag, Name
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

BY_USER = "people decide on the model, which takes network and time"


@operation("set-up", "model list", one_door=BY_USER, reads=True)
def list_models(call: Call, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """List embedding models: in the store, on this machine, and available by name."""
    from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
    from speckit_memory.memory.models.embedders.model_name import SERVICES
    from speckit_memory.memory.models.embedders.pulled import fetching, shelf

    store = _models_of_store(call)
    here = shelf.installed_models(os.environ)
    try:
        offered, missing = fetching.offered_models(), ""
    except SpeckitError as error:
        offered, missing = [], f"{error.problems[0].message}: {error.problems[0].actions[0]}"
    fetched: list[Row] = [
        {"name": f"fastembed:{one.model}", "dimensions": one.dimensions, "revision": one.revision}
        for one in here.values()
    ]
    can_be: list[Row] = [
        {"name": f"fastembed:{one.model}", "dimensions": one.dimensions, "megabytes": round(one.megabytes)}
        for one in offered
        if one.model not in here
    ]
    named, build = os.environ.get(EMBEDDER_VARIABLE, ""), store["build"]
    services = ", ".join(f"{kind}:MODEL" for kind in SERVICES)
    rows = [
        *(one | {"where": f"in the store, {one['place']}"} for one in store["models"]),
        {"name": "bundled", "dimensions": 256, "where": "on this machine"},
        *(one | {"where": f"on this machine, revision {one['revision'][:12]}"} for one in fetched),
        *(one | {"where": f"can be fetched, {one['megabytes']} MB"} for one in can_be),
    ]
    return View(
        plural(len(rows), "model"),
        {
            "models": rows,
            "store": store,
            "named": named,
            "fetched": fetched,
            "offered": can_be,
            "missing": missing,
        },
        facts={
            "being built": f"{build['name']}, {build['done']:,} of {build['total']:,} passages" if build else "",
            f"named by {EMBEDDER_VARIABLE}": named,
        },
        rows="models",
        cells=lambda row: (row["name"], f"{row['dimensions'] or ''}", row["where"]),
        heads=("model", "dimensions", "where"),
        hints=(
            *(["`speckit-memory model pull NAME` fetches a model"] if can_be else []),
            *([missing] if missing else []),
            f"services: {services} (docs/embedders.md)",
        ),
    )


def _models_of_store(call: Call) -> dict[str, Any]:
    from speckit_memory.memory.store.file.guarding.store_file import store_is_there

    if not store_is_there(call.config.db):
        return {"models": [], "build": None}
    known = call.memory().models.list()
    places = {known.serving: "in use", known.previous: "before"}
    models = [{**stamp._asdict(), "place": places.get(model_id, "cached")} for model_id, stamp in known.stamps.items()]
    if known.serving and known.serving not in known.stamps:
        models.append({"model_id": known.serving, "name": known.serving, "dimensions": 0, "place": "in use"})
    build = known.build._asdict() if known.build else None
    return {"models": sorted(models, key=lambda one: (one["place"] != "in use", one["name"])), "build": build}


class ModelPull(Parameters):
    name: Annotated[Name, Option("Name of the model.", argument=True)]


@operation("set-up", "model pull", one_door=BY_USER, shared=("json",))
def pull(call: Call, params: ModelPull) -> View:
    """Fetch the embedding model NAME, such as fastembed:BAAI/bge-small-en-v1.5.

    Needs the extra 'quality'. Every file is compared with the checksum from its repository. Afterwards the network is
    not used.
    """
    from speckit_memory.memory.models.embedders.model_name import FASTEMBED, parse_model_name
    from speckit_memory.memory.models.embedders.pulled import fetching, shelf

    wanted = parse_model_name(params.name, {})
    if wanted.kind != FASTEMBED:
        raise SpeckitError(
            "E030",
            f"'{params.name}' cannot be fetched: only names such as fastembed:BAAI/bge-small-en-v1.5 can",
            actions=("run `speckit-memory model list` for their names",),
        )
    with call.progress("fetching") as progress:
        manifest, fetched = fetching.fetch(wanted.model, os.environ, progress)
    place = shelf.place_of(manifest.model, os.environ)
    what = "fetched into" if fetched else "is already complete in"
    return View(
        f"fastembed:{manifest.model}, revision {manifest.revision[:12]}, {what} {place}",
        {**asdict(manifest), "folder": str(place), "fetched": fetched},
        hints=(f"`speckit-memory model use fastembed:{manifest.model}` activates it",),
    )


class ModelUse(Parameters):
    name: Annotated[Name | None, Option("Name of the model.", argument=True)] = None
    rollback: Annotated[Flag, Option("Go back to the model that was in use before the last change.")] = False
    compare_only: Annotated[Flag, Option("Build the vectors and compare them; keep those in use.")] = False
    no_compare: Annotated[Flag, Option("Change without a comparison.")] = False


@operation("set-up", "model use", one_door=BY_USER, shared=("db", "json", "verbose"))
def use(call: Call, params: ModelUse) -> View:
    """Build the vectors of the embedding model NAME and use them unless they are worse.

    The vectors are compared by the answers to queries made of your memories and, by vectors alone, to the judged
    questions that ship. Searches use the old vectors until the change, which is one step for all processes. The next
    run continues an interrupted one. --rollback restores the previous model and computes nothing.
    """
    if params.rollback == bool(params.name):
        raise SpeckitError("E031", "give either a NAME or --rollback")
    if params.rollback and (params.compare_only or params.no_compare):
        raise SpeckitError("E031", "--rollback takes no other option")
    if params.compare_only and params.no_compare:
        raise SpeckitError("E031", "--compare-only and --no-compare exclude each other")
    memory = call.memory()
    if params.name is None:
        with call.progress("embedding") as progress:
            back = memory.models.roll_back(progress=lambda now: progress(now.done, now.total or 0))
        return _used(params, {"changed": _plain(back)})
    return _build(call, memory, params.name, params)


def _build(call: Call, memory: Memory, name: str, params: ModelUse) -> View:
    from speckit_memory.evaluation.tuning.spaces import compare_spaces
    from speckit_memory.server.reports.terminal import report_lines

    with call.progress("embedding") as progress:
        built = memory.models.build(name, progress=lambda now: progress(now.done, now.total or 0))
    found: dict[str, Any] = {"built": {"embedded": built.embedded, "cached": built.cached, "total": built.total}}
    worse, text = False, ""
    if not params.no_compare and memory.models.list().serving not in ("", built.stamp.model_id):
        with call.progress("comparing") as progress:
            compared = compare_spaces(memory, name, progress)
        report, worse = compared.as_report(), compared.worse
        found["compared"] = report.data
        text = "\n".join(report_lines(report, full=bool(call.common and call.common.verbose)))
    if worse and not params.compare_only:
        found["refused"] = (
            f"nothing was changed, because the vectors of {name} are worse than those in use; "
            f"`speckit-memory model use {name} --no-compare` changes the model anyway"
        )
    elif not params.compare_only:
        found["changed"] = _plain(memory.models.use(name))
    return _used(params, found, text)


def _used(params: ModelUse, found: dict[str, Any], text: str = "") -> View:
    built, changed = found.get("built"), found.get("changed")
    hints: tuple[str, ...] = ()
    if "refused" in found:
        summary = found["refused"]
    elif changed is None:
        summary = f"nothing was changed; `speckit-memory model use {params.name}` changes the model"
    else:
        waiting = f", {changed['pending']:,} memories wait for their vectors" if changed["pending"] else ""
        before = "" if changed["before"] in ("", changed["after"]) else f", {changed['before']} was before"
        summary = f"{changed['after']} is in use{before}{waiting}"
        hints = ("`speckit-memory model use --rollback` goes back",) if before else ()
    passages = ""
    if built:
        told = f"{built['embedded']:,} embedded, {built['cached']:,} taken from the cache"
        passages = f"{plural(built['total'], 'passage')}: {told}"
    return View(
        summary,
        found,
        facts={"built": passages},
        hints=hints,
        text=text or None,
        status=int("refused" in found),
    )


def _plain(changed: Any) -> dict[str, Any]:
    return {"before": changed.before, "after": changed.after, "pending": changed.pending}
