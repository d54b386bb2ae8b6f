"""The tool profile in force: the call, then environment, then the workspace's file, then the default."""

from __future__ import annotations

from speckit_memory.config.options.tool_profile import TOOL_PROFILES, ToolProfile
from speckit_memory.config.workspace.settings import PROFILE_VARIABLE, Settings, refused_setting
from speckit_memory.config.workspace.workspace_file import load_workspace_config


def tool_profile_in_force(config: Settings, called: ToolProfile | None = None) -> ToolProfile:
    """The profile in force. Raises SpeckitError for an invalid value in the environment or the file."""
    if called is not None:
        return called
    written = config.environ.get(PROFILE_VARIABLE, "").strip().lower()
    if not written:
        return load_workspace_config(config.root).profile
    for accepted in TOOL_PROFILES:
        if accepted == written:
            return accepted
    raise refused_setting(PROFILE_VARIABLE, written, TOOL_PROFILES)
