"""Finds the pipelines with steps behind a flag, and the flag's present effect; for lists and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.loading import load, name_of
from speckit_memory.pipeline.configuration.variants import waiting_flags


@dataclass(frozen=True, slots=True)
class WaitingPresets:
    """The presets with steps behind each flag, and the flags used by the pipeline in use, with its name.

    `preset` is the preset in use, "" for a pipeline from another source.
    """

    presets: Mapping[str, tuple[str, ...]]
    in_use: str
    of_it: frozenset[str]
    preset: str = ""

    def pipelines(self, flag: str) -> tuple[str, ...]:
        """The pipelines that use a flag, the one in use first."""
        others = tuple(name for name in self.presets.get(flag, ()) if name != self.preset)
        return ((self.in_use,) if flag in self.of_it else ()) + others

    def runs(self, flag: Flag) -> str:
        """What the flag enables in the pipeline in use now, "" for nothing."""
        if flag.name not in self.of_it or flag.state == "off":
            return ""
        if flag.beside is not None:
            return f"as a variant of {self.in_use}, in {flag.beside}"
        return f"in {self.in_use}" + (f" for {flag.percent} % of sessions" if flag.percent < 100 else "")


def waiting(config: Settings) -> WaitingPresets:
    """The flags of the presets and of the pipeline in use. An unreadable pipeline counts as using none."""
    environ, offered = config.environ_of_root, components.registry(config.environ, config.root).flag_files
    by_flag: dict[str, list[str]] = {}
    shipped = presets()
    for preset in shipped:
        for flag in waiting_flags(load(preset, environ, offered=offered)):
            by_flag.setdefault(flag, []).append(preset)
    try:
        served = load(config.pipeline, environ, offered=offered)
        source, name, of_it = name_of(served), served.name, frozenset(waiting_flags(served))
    except SpeckitError:
        source, name, of_it = config.pipeline, config.pipeline, frozenset()
    preset = source if source in shipped else ""
    if name in shipped and not preset:
        name = source  # a file whose name is that of a preset
    return WaitingPresets({flag: tuple(names) for flag, names in by_flag.items()}, name, of_it, preset)
