"""Explains why there is nothing to report, and how to change that."""

from __future__ import annotations

from speckit_memory.config.flags.flag import ahead
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.variants import Variant

_START = """\
No shadow pipeline of {served} is running. To start one, write at the top of {file}:
    shadows: [rsf]
It accepts one or more presets or pipeline files. {flags}Then search as usual: this report runs the queries of the \
last days through both pipelines, and compares them."""
_FLAG = """\
Or promote a flag of this pipeline to shadow, one state at a time:
{commands}
"""


def why_nothing(config: Settings, since: str | None) -> str:
    """The reason as lines of text; indented lines are meant to be copied."""
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
        beside = "\n".join(f"    {_describe(variant)}" for variant in variants)
        when = f"since {since}" if since else "yet"
        return (
            f"These shadow {config.pipeline_told}, but none of their searches has been recorded {when}:\n"
            f"{beside}\n"
            "A search counts when it is served through this store: by the command line, over MCP or from Python."
            f"{_keeping(config)}"
        )
    folder = config.root / ".speckit"
    # The first flag that is off; one suggestion is enough.
    flag = next((name for name in waiting_flags(control) if control.flags[name].state == "off"), "")
    # one command per state on the way from off to shadow
    commands = "\n".join([f"    speckit-memory flags promote {flag}"] * ahead("off", "shadow"))
    flags = "\n" + _FLAG.format(commands=commands) if flag else ""
    return _START.format(served=config.pipeline_told, file=folder / "pipeline.yaml", flags=flags)


def _keeping(config: Settings) -> str:
    if load_workspace_config(config.root, config.environ).evaluation.texts:
        return ""
    return " Shadows do not run, because the text of queries is not kept: `evaluation: {keep_texts: never}`."


def _describe(variant: Variant) -> str:
    share = "" if variant.sample == 1 else f", on {variant.sample:.0%} of the queries"
    return f"{variant.name}: {variant.asked_for}{share}"
