"""The setting for recording answered queries: environment, then the workspace's file, then the default."""

from __future__ import annotations

from dataclasses import replace

from speckit_memory.config.options.recording_modes import RECORDED, RecordingOptions
from speckit_memory.config.workspace.settings import EVALUATION_VARIABLE, Settings, refused_setting
from speckit_memory.config.workspace.workspace_file import load_workspace_config


def recording_in_force(config: Settings) -> RecordingOptions:
    """The setting in force. Raises SpeckitError for an invalid value in the environment or the file."""
    in_file = load_workspace_config(config.root).evaluation
    written = config.environ.get(EVALUATION_VARIABLE, "").strip().lower()
    if not written:
        return in_file
    for recorded in RECORDED:
        if recorded == written:
            return replace(in_file, record=recorded)
    raise refused_setting(EVALUATION_VARIABLE, written, RECORDED)
