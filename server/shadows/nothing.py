"""Why there is nothing to report, and what would change that."""

from __future__ import annotations

from speckit_memory.config.flags.flag_states import ahead
from speckit_memory.config.workspace.recording import recording_in_force
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.variants import Variant

_START = """\
No pipeline runs beside {served}. To start one, write at the top of {file}:
    shadows: [rsf]
It takes any preset or pipeline file, or several. {flags}Then search as usual: this report asks both what you \
asked in the last days, and compares them."""
_FLAG = """\
Or take a flag that this pipeline waits for to shadow, one state at a time:
{commands}
"""


def why_nothing(config: Settings, since: str | None) -> str:
    """The reason in lines; those that are indented are there to be copied."""
    from speckit_memory.engine import components
    from speckit_memory.pipeline.configuration.loading import load
    from speckit_memory.pipeline.configuration.variants import variants_of, waiting_flags

    environ = config.environ_of_root
    registry = components.registry(environ)
    try:
        control = load(config.pipeline, environ, offered=registry.flag_files)
        variants = variants_of(control, environ, registry.flag_files)
    except SpeckitError as error:
        return f"The pipeline that is served cannot be read: {error}\nSee `speckit-memory doctor`."
    if variants:
        beside = "\n".join(f"    {_told(variant)}" for variant in variants)
        when = f"since {since}" if since else "yet"
        return (
            f"These run beside {config.pipeline_told}, and no search that they saw has been recorded {when}:\n"
            f"{beside}\n"
            "A search counts when it is served through this store: by the command line, over MCP or from Python."
            f"{_kept(config)}"
        )
    folder = config.root / ".speckit"
    flag = next((name for name in waiting_flags(control) if control.flags[name].state == "off"), "")
    commands = "\n".join([f"    speckit-memory flags promote {flag}"] * ahead("off", "shadow"))
    flags = "\n" + _FLAG.format(commands=commands) if flag else ""
    return _START.format(served=config.pipeline_told, file=folder / "pipeline.yaml", flags=flags)


def _kept(config: Settings) -> str:
    if recording_in_force(config).texts:
        return ""
    return " Shadows are asked nothing, as the words of queries are not kept: `evaluation: {keep_texts: never}`."


def _told(variant: Variant) -> str:
    share = "" if variant.sample == 1 else f", on {variant.sample:.0%} of the queries"
    return f"{variant.name}: {variant.asked_for}{share}"
