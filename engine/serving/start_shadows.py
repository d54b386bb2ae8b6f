"""Prepares the variants that run with a served pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.serving.serving import ConfigurationState
from speckit_memory.engine.shadowing.replays import Replays
from speckit_memory.engine.shadowing.shadows import Shadows
from speckit_memory.engine.shadowing.variant import RunningVariant, earlier
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.builder import check_pipeline
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant
from speckit_memory.pipeline.configuration.loading import PipelineSource, load
from speckit_memory.pipeline.configuration.variants import Variant
from speckit_memory.pipeline.roles.registry import Registry

if TYPE_CHECKING:
    from speckit_memory.engine.search.searcher import Searcher


def beside_searches(
    searching: Searcher, config: Settings, recorder: Recorder, *, inline: Sequence[PipelineSource] = ()
) -> Shadows | None:
    """The variants to run live: the configured dark runs and interleaved variant, or the `inline` pipelines instead.

    Shadows are not among them; they are replayed, see `Replays`.

    Args:
        searching: The pipeline that is served, with its variants.
        config: The settings in force.
        recorder: Stores the observations; if it is off, configured variants do not run.
        inline: Pipelines whose answers are attached to each result.

    Returns:
        The variants; None if there are none to run.

    Raises:
        SpeckitError: All problems of the inline pipelines.
    """
    control = searching.runner.pipeline
    budget = control.budgets_ms["shadow"]
    if inline:
        asked = [RunningVariant.of(one, budget) for one in _checked(inline, config, searching.registry)]
        return Shadows(control, (), recorder, inline=asked)
    live = [one for one in searching.variants if one.variant.interleave or one.variant.mode == "dark_run"]
    if not live or not recorder.on:
        return None
    running = [RunningVariant.of(one, budget) for one in live]
    return Shadows(control, running, recorder, earlier=partial(earlier, recorder.path, control.hash))


def serving_of(config: Settings, searching: Searcher, recorder: Recorder) -> ConfigurationState:
    """A configuration state: the pipeline, its live variants, and the replays for its shadows."""
    checked = searching.checked
    compared = [one for one in searching.variants if one.variant.mode == "shadow" and not one.variant.interleave]
    replays = None
    if compared and checked is not None and recorder.on:
        pipeline = searching.runner.pipeline
        replays = Replays(pipeline, checked, compared, searching.extensions, config, recorder)
    return ConfigurationState(config, searching, beside_searches(searching, config, recorder), replays)


def _checked(pipelines: Sequence[PipelineSource], config: Settings, registry: Registry) -> list[CheckedVariant]:
    found: list[CheckedVariant] = []
    problems: list[Problem] = []
    names: Counter[str] = Counter()
    for pipeline in pipelines:
        effective = load(pipeline, config.environ_of_root, offered=registry.flag_files)
        names[effective.name] += 1
        number = names[effective.name]
        named = replace(effective, name=f"{effective.name} ({number})") if number > 1 else effective
        checked = check_pipeline(named, registry)
        problems += checked.problems
        found.append(CheckedVariant(Variant(named.name, "shadow", named), checked))
    if problems:
        raise SpeckitError.of(problems)
    return found
