"""Health checks of the store, SQLite, the models and the configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE, Settings
from speckit_memory.config.workspace.store_address import store_label
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.diagnostics import configuration_health
from speckit_memory.engine.diagnostics.configuration_health import told_vectors
from speckit_memory.engine.diagnostics.health_report import DAMAGED, HealthCheck, HealthReport
from speckit_memory.engine.recording.recording_health import notes, told_latency
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
from speckit_memory.engine.serving.reloading import FilesFollowed
from speckit_memory.engine.serving.serving import ConfigurationState
from speckit_memory.engine.session.reopening import Replacement
from speckit_memory.engine.shadowing.variant import WHY, ShadowState, tally_states
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge, list_names, plural
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.file_system import file_system_of
from speckit_memory.memory.store.file.guarding.failures import told_by_driver
from speckit_memory.memory.store.file.opening import WITHOUT_SHARED_MEMORY
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.segment_writing.diagnosis import findings
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import encoder_vectors
from speckit_memory.memory.store.tables.vectors.vectors import MODEL
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.registry import Extension

EXAMPLE = "how does the memory fuse its channels?"
LISTED = 6
"""Maximum number of components listed per extension."""
NAMED = 5
"""Maximum number of faults or keys listed in one check."""
FAILING = (
    "Answers are not affected. `speckit-memory shadow report` names the step that failed: fix it, or remove the "
    "pipeline from `shadows`."
)
STEPPED_BACK = "Answers do not wait for it; `speckit-memory shadow report` lists its timings."
LONGEST_QUESTION = 200
"""Characters of a stored title that the search check asks for."""


@dataclass(frozen=True, slots=True)
class HealthContext:
    """The input of the checks: an open store, the configuration in force, and a function that runs a search.

    `replacements` lists reopenings of the store's file, `shadows` the state of each variant, and `files` the state of
    the configuration files, None if they are not followed.
    """

    opened: OpenStore
    serving: ConfigurationState
    replacements: Sequence[Replacement]
    ask: Callable[[str], SearchResult]
    shadows: Sequence[ShadowState] = ()
    files: FilesFollowed | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.serving.settings

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline in force."""
        return self.serving.searching.runner.pipeline

    @property
    def database(self) -> Database:
        """The store's file."""
        return self.opened.database


def health(seen: HealthContext) -> HealthReport:
    """Runs all checks. Never raises: a check that fails with an error is reported as not ok."""
    checks: dict[str, Callable[[HealthContext], HealthCheck]] = {
        "sqlite": _engine,
        "store": _store,
        "content": _content,
        **({"replicas": _replicas} if seen.database.has_replicas else {}),
        "aliases": _aliases,
        "graph": _graph,
        "segment": _segment,
        "maintenance": _maintenance,
        "model": _model,
        "vectors": _vectors,
        "words": _words,
        "extensions": _extensions,
        "configuration": _configuration,
        "flags": _flags,
        "pipeline": _pipeline,
        "shadows": _shadows,
        "evaluation": _evaluation,
        "latency": _latency,
        "search": _search,
    }
    return HealthReport(tuple(_guarded(name, check, seen) for name, check in checks.items()))


def _guarded(name: str, check: Callable[[HealthContext], HealthCheck], seen: HealthContext) -> HealthCheck:
    try:
        return check(seen)
    except SpeckitError as error:
        return HealthCheck(name, False, str(error.problems[0]), error.problems[0].hint)
    except Exception as error:  # a damaged store can hold anything; the check of the store names it
        told = told_by_driver(error, seen.database.path)
        detail = str(told) if told else f"failed on the data it read: {type(error).__name__}: {error}"
        return HealthCheck(name, False, detail, told.problems[0].hint if told else DAMAGED)


def _engine(seen: HealthContext) -> HealthCheck:
    engine, version, extension, extension_version = reader.engine_versions(seen.database)
    return HealthCheck(engine.lower(), True, f"{engine} {version}, {extension} {extension_version}")


def _store(seen: HealthContext) -> HealthCheck:
    from speckit_memory.engine.runtime.store_check import check_store  # searches do not need it

    wrong, unseen, _ = check_store(seen.database)
    path, shared = seen.database.path, seen.database.shared
    if wrong:
        return HealthCheck("store", False, list_names(wrong, NAMED, "; "), "" if shared else DAMAGED)
    remarks = [*_history(seen), *([] if shared else _open_to_others(path)), *([unseen] if unseen else [])]
    if shared:
        rest = "segments, checkpoints and the evaluation database are on this machine"
        return HealthCheck(
            "store", True, "; ".join([f"{store_label(path)} answers; {rest}, in {path.parent}", *remarks])
        )
    if seen.database.rollback:
        remarks.append(f"it is on {file_system_of(path)}: {WITHOUT_SHARED_MEMORY}")
    if seen.database.only_read:
        remarks.append("it is read-only: it can be searched, but nothing is saved, indexed or counted")
    return HealthCheck("store", True, "; ".join([f"{path} is consistent", *remarks]))


def _replicas(seen: HealthContext) -> HealthCheck:
    """The replicas that searches read from. Without them the store itself answers, so the check passes."""
    told, hint = [], ""
    for state in seen.database.replica_states():
        if state.problem:
            told.append(f"{state.address} is not read from: {state.problem}")
            hint = "Searches read from the store itself meanwhile; docs/postgresql.md says when a replica is read from."
        else:
            told.append(f"{state.address} is {state.lag}, at change {state.last_change:,}")
    return HealthCheck("replicas", True, "; ".join(told), hint)


def _history(seen: HealthContext) -> list[str]:
    """Replacements of the file since this process opened it."""
    if not (changes := seen.replacements):
        return []
    last = changes[-1]
    return [f"it was reopened {len(changes)} times, last at {_moment(last.at)}, when the file {last.what}"]


def _open_to_others(path: Path) -> list[str]:
    """A remark if other users can read the file. Not a fault, since some users share a store."""
    mode = path.stat().st_mode
    return [f"other users of this computer may read it (chmod 600 {path})"] if mode & 0o044 else []


def _content(seen: HealthContext) -> HealthCheck:
    stats = reader.statistics(seen.database.reader())
    detail = ", ".join(
        (plural(stats.memories, "memory"), plural(stats.chunks, "passage"), plural(stats.edges, "causal edge"))
    )
    if stats.pending_embeddings:
        hint = f"Vectors follow: {WHO_EMBEDS}."
        return HealthCheck("content", False, f"{detail}; {stats.pending_embeddings} wait for their vectors", hint)
    return HealthCheck("content", True, detail)


def _aliases(seen: HealthContext) -> HealthCheck:
    """Files with the same content, which an answer shows twice. Reported without failing the check."""
    from speckit_memory.memory.store.reading.comparing import equal_contents

    found = equal_contents(seen.database.reader(), time.time())
    if not found:
        return HealthCheck("aliases", True, "no two files have the same content")
    told = list_names([" = ".join(map(abridge, keys[:NAMED])) + _further(keys) for keys in found], NAMED, "; ")
    groups = "1 group of files has" if len(found) == 1 else f"{len(found):,} groups of files have"
    hint = (
        "Keep one of each: `speckit-memory delete KEY` moves the other's file aside, a line in .speckitignore leaves "
        "it where it is, and with `importance_tier: deprecated` in it no search finds it."
    )
    return HealthCheck("aliases", True, f"{groups} the same content: {told}", hint)


def _further(keys: Sequence[str]) -> str:
    return f" and {len(keys) - NAMED:,} more" if len(keys) > NAMED else ""


def _graph(seen: HealthContext) -> HealthCheck:
    from speckit_memory.engine.graph.report import graph_told  # loads numeric code that other checks do not need

    return HealthCheck("graph", True, graph_told(seen.database.reader()))


def _segment(seen: HealthContext) -> HealthCheck:
    """Problems of the segment. They cost time but change no answer, so the check passes."""
    shelf = findings(seen.database)
    hints = dict.fromkeys(found.hint for found in shelf.findings)
    return HealthCheck("segment", True, "; ".join([shelf.detail, *map(str, shelf.findings)]), " ".join(hints))


def _maintenance(seen: HealthContext) -> HealthCheck:
    """Which background work ran, and when."""
    from speckit_memory.engine.upkeep.maintenance import told_runs  # searches do not need it
    from speckit_memory.engine.upkeep.maintenance_jobs import jobs_for

    detail, hint = told_runs(seen.database.reader(), time.time(), jobs_for(seen.opened))
    return HealthCheck("maintenance", not hint, detail, hint)


def _model(seen: HealthContext) -> HealthCheck:
    embedder = seen.opened.embedder
    vector = embedder.embed_query(EXAMPLE)
    stored = get_meta(seen.database.reader(), MODEL)
    if not np.isclose(float(vector @ vector), 1.0, atol=1e-3):
        return HealthCheck("model", False, f"{embedder.model_id} returns vectors whose length is not 1", "Reinstall.")
    if stored not in (None, embedder.model_id):
        detail = f"the store holds vectors of '{stored}', the configured model is '{embedder.model_id}'"
        return HealthCheck("model", False, detail, "Run `speckit-memory index PATH` to embed again.")
    where = getattr(getattr(embedder, "endpoint", None), "host", "")
    detail = f"{embedder.model_id}, {embedder.dimensions} dimensions, {f'asked at {where}' if where else 'offline'}"
    unsettled = seen.opened.models.unsettled()
    if unsettled:
        try:
            seen.opened.models.wanted().embed_query(EXAMPLE)
        except SpeckitError as error:
            problem = error.problems[0]
            detail = f"the configured model cannot be used: {problem}; in use is {detail}"
            return HealthCheck(
                "model", False, detail, problem.hint or f"Fix it, or name another in {EMBEDDER_VARIABLE}."
            )
    hint = "`speckit-memory model list` shows details, `model use NAME` continues." if unsettled else ""
    return HealthCheck("model", True, f"{detail}; {unsettled}" if unsettled else detail, hint)


def _vectors(seen: HealthContext) -> HealthCheck:
    detail, hint = told_vectors(seen.opened)
    encoder = seen.opened.encoder
    if encoder is None:
        return HealthCheck("vectors", True, detail, hint)
    encoder.embed_query(EXAMPLE)
    made, total = encoder_vectors.coverage(seen.database.reader(), encoder.model_id)
    detail = f"{detail}; {encoder.model_id} reranks, with {made:,} of {total:,} vectors made"
    rest = "" if made == total else f"{encoder_vectors.REST.capitalize()}."
    return HealthCheck("vectors", True, detail, f"{hint} {rest}".strip())


def _words(seen: HealthContext) -> HealthCheck:
    # imported here: a search loads no indexing code
    from speckit_memory.memory.indexing.versions import ANALYSER

    stored, current = get_meta(seen.database.reader(), ANALYSER), seen.opened.analyser.version
    if stored not in (None, current):
        detail = f"words were split by the analyser '{stored}', the current one is '{current}'"
        return HealthCheck("words", False, detail, "Run `speckit-memory index PATH`; it splits them again.")
    return HealthCheck("words", True, f"analyser {current}")


def _extensions(seen: HealthContext) -> HealthCheck:
    wanted = seen.serving.searching.extensions
    found = seen.serving.searching.registry.extensions()
    if not found:
        return HealthCheck("extensions", True, f"none are installed ({wanted.mode})")
    failed = [f"{one.name}: {one.failure}" for one in found if one.failure]
    if wanted.mode == "none":
        return HealthCheck("extensions", True, f"installed and not loaded ({wanted.mode}): {_list(found)}")
    limit = f", at most {wanted.memory_mb} MB" if wanted.memory_mb else ""
    where = {"trusted": "in this process", "isolated": f"in a separate process{limit}"}[wanted.mode]
    detail = f"{_list(found)}, {where} ({wanted.mode})"
    if failed:
        hint = "Remove the extension, or report it to its author. The product's own components work without it."
        return HealthCheck("extensions", False, f"{detail}; cannot be used: {'; '.join(failed)}", hint)
    return HealthCheck("extensions", True, detail)


def _configuration(seen: HealthContext) -> HealthCheck:
    told = configuration_health.told_settings(seen.settings)
    if seen.files is None:
        return HealthCheck("configuration", True, told)
    if waiting := configuration_health.waiting_for_restart(seen.settings, seen.serving.searching.extensions):
        hint = "These values take effect after a restart; changes of pipelines, flags and the rest are followed."
        return HealthCheck("configuration", False, f"{told}; changed since the start: {', '.join(waiting)}", hint)
    return HealthCheck("configuration", True, told)


def _flags(seen: HealthContext) -> HealthCheck:
    return HealthCheck("flags", True, configuration_health.told_flags(seen.settings, seen.serving.searching.registry))


def _pipeline(seen: HealthContext) -> HealthCheck:
    told = configuration_health.told_pipeline(seen.settings, seen.pipeline)
    if seen.files is not None:
        return _pipeline_followed(told, seen.files)
    if changed := configuration_health.changed_since(seen.settings, seen.pipeline, seen.serving.searching.registry):
        return HealthCheck("pipeline", False, f"{told}; {changed}", configuration_health.RESTART)
    return HealthCheck("pipeline", True, told)


def _pipeline_followed(told: str, files: FilesFollowed) -> HealthCheck:
    if files.wrong:
        wrong = list_names([str(problem) for problem in files.wrong], NAMED, "; ")
        if files.stands_in:
            return HealthCheck(
                "pipeline", False, f"{told}; the configuration cannot be used: {wrong}", configuration_health.MEND_START
            )
        return HealthCheck(
            "pipeline", False, f"{told}; the files were changed and cannot be used: {wrong}", configuration_health.MEND
        )
    if files.at is None:
        return HealthCheck("pipeline", True, told)
    times = "once" if files.changes == 1 else f"{files.changes} times"
    return HealthCheck("pipeline", True, f"{told}; applied without a restart {times}, last at {_moment(files.at)}")


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _shadows(seen: HealthContext) -> HealthCheck:
    unusable = seen.serving.searching.unusable
    if unusable:
        hint = "The other pipelines run; `speckit-memory pipeline check FILE` checks all of them again."
        return HealthCheck("shadows", False, "; ".join(map(str, unusable)), hint)
    if not seen.shadows:
        return HealthCheck("shadows", True, "no shadow pipelines run")
    states = tally_states(seen.shadows, seen.pipeline.hash, seen.opened.recorder)
    states = tuple(sorted(states, key=lambda state: (-state.failed, state.place != "off")))
    failing = [state for state in states if state.failed]
    off = [state for state in states if state.place == "off"]
    hint = FAILING if failing else STEPPED_BACK if off or any(state.retreat for state in states) else ""
    detail = "; ".join(map(shadow_told, states))
    if len(states) > 1 and hint:
        counts = [
            f"{len(some)} of {len(states)} {what}" for some, what in ((failing, "fail"), (off, "are switched off"))
        ]
        detail = "; ".join([*(count for count in counts if not count.startswith("0")), detail])
    return HealthCheck("shadows", not failing, detail, hint)


def shadow_told(shadow: ShadowState) -> str:
    """One variant's state in words."""
    where = {"beside": "with the reply", "idle": "in idle moments", "off": "switched off", "replay": "by replay"}
    share = f" of {shadow.sample:.0%} of queries" if shadow.sample < 1 else ""
    parts = [f"'{shadow.name}' in {shadow.mode}{share}, {where[shadow.place]}", f"{shadow.seen} seen"]
    if shadow.waiting:
        parts.append(f"{shadow.waiting} waiting")
    if shadow.failed:
        parts.append(f"{shadow.failed} failed")
    parts += [f"{count} not seen: {WHY[why]}" for why, count in sorted(shadow.dropped.items())]
    if shadow.retreat:
        parts.append(f"stepped back: {shadow.retreat}")
    return ", ".join(parts)


def _evaluation(seen: HealthContext) -> HealthCheck:
    return HealthCheck("evaluation", *notes(seen.opened.recorder))


def _latency(seen: HealthContext) -> HealthCheck:
    """Whether searches keep to the latency budgets of the pipeline. Slow searches are a warning, not a failure."""
    detail, hint = told_latency(seen.opened.recorder, seen.pipeline)
    return HealthCheck("latency", True, detail, hint)


def _list(extensions: Sequence[Extension]) -> str:
    return ", ".join(
        f"{one.name} ({list_names(sorted(one.components), LISTED)})" if one.components else one.name
        for one in extensions
    )


def _search(seen: HealthContext) -> HealthCheck:
    known, _ = reader.list_memories(seen.database.reader(), "", "created_at", limit=1, offset=0)
    if not known:
        return HealthCheck(
            "search", True, f"the pipeline '{seen.pipeline.name}' is built; there is nothing to search yet"
        )
    # The query is a stored title. An empty answer is no failure: the memory may be out of scope, and a title of two
    # common words finds nothing in a small store.
    title = known[0].title[:LONGEST_QUESTION]
    question = title if any(sign.isalnum() for sign in title) else EXAMPLE
    result = seen.ask(question)
    degraded = [part.part for part in result.notes.degraded]
    detail = f"the pipeline '{seen.pipeline.name}' answers in {result.timings_ms.total:.1f} ms"
    if degraded:
        return HealthCheck("search", False, f"{detail}, but without {', '.join(degraded)}", "See the other checks.")
    return HealthCheck("search", True, detail)
