"""What a server can tell to be wrong before it serves, by means light enough for its start-up (feature T27)."""

from __future__ import annotations

from os.path import lexists
from pathlib import Path

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.settings import BY_CALL, CONFIG_FILE, FLAGS_FILE, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import require_file, store_is_there
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.console.environment import flags_of_extensions


def check_configuration(common: Common, root: Path | None = None) -> None:
    """Raises SpeckitError for a file that is no store, and for what is wrong with the text of `.speckit/config.yaml`,
    in the workspace of the options or in the one of a folder, and with a pipeline that the options name.

    Whether its steps exist and fit together takes their modules; the warm-up finds that out. For a pipeline and flags
    that files or the environment decide on, the shipped ones stand in where they cannot be used.
    """
    config = settings(common.db, common.pipeline, root)
    if store_is_there(config.db):
        require_file(config.db, create=True, writable=False)
    if lexists(config.root / CONFIG_FILE):
        from speckit_memory.config.workspace.workspace_file import load_workspace_config

        load_workspace_config(config.root)
    if config.pipeline_by != BY_CALL and not common.overrides:
        return
    if config.pipeline in presets() and not common.overrides and not lexists(config.root / FLAGS_FILE):
        return
    from speckit_memory.pipeline.configuration.loading import load

    problems = load(
        config.pipeline, config.environ_of_root, common.overrides, lambda: flags_of_extensions(config.environ)
    ).problems
    if problems:
        raise SpeckitError.of(problems)
