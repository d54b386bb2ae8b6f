"""A workspace that the client chooses once per connection, from those the server offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import list_names
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.replies.answer_cache import SECONDS
from speckit_memory.server.workspace.workspace import NO_WORKSPACE, Workspace

NAMED = 10
"""Folders listed in an error."""
_ELSEWHERE = (
    "start the server with one --workspace, in a process for each",
    "serve over HTTP, where each workspace has an address",
)


class ChosenWorkspace(Workspace):
    """A workspace that is selected by the folders the client works in.

    The choice holds for the connection: later answers of the client never lead to another workspace.
    """

    def __init__(self, common: Common, roots: Mapping[str, Path], *, cache_seconds: float = SECONDS) -> None:
        """`roots` are the folders that may be served, by name."""
        self._roots = roots
        self._chosen: Settings | None = None
        self._refused: SpeckitError | None = self._nothing("the client has not said which folder it works in")
        self._common = common
        super().__init__(
            lambda create: common.open(create=create, root=self._config.root, stand_in=True),
            None,
            cache_seconds=cache_seconds,
        )

    @property
    def _config(self) -> Settings:
        """The settings of the workspace. Raises E015 unless one is chosen and the client still works in it."""
        if self._refused is not None:
            raise self._refused
        assert self._chosen is not None
        return self._chosen

    def warm_up(self) -> None:
        """Loads the store if a workspace is chosen; otherwise the call that chooses one opens it anyway."""
        if self._refused is None:
            super().warm_up()

    def choose(self, announced: Sequence[Path]) -> bool:
        """Chooses the workspace that contains the client's folders. Returns False if there is none or more than one;
        every call is refused then, with the reason."""
        lies_in = {
            name: folder for folder in announced for name, root in self._roots.items() if folder.is_relative_to(root)
        }
        told = list_names([str(folder) for folder in announced], NAMED) or "none"
        if not lies_in:
            self._refused = self._nothing(f"the client's folders are not served here: {told}")
        elif len(lies_in) > 1:
            self._refused = self._nothing(f"the client works in several workspaces: {', '.join(lies_in)} ({told})")
        else:
            [name] = lies_in
            self._take(name)
        return self._refused is None

    def refuse(self, reason: str) -> None:
        """Refuses every call until a workspace is chosen."""
        self._refused = self._nothing(reason)

    def _take(self, name: str) -> None:
        found = replace(settings(None, self._common.pipeline, self._roots[name]), overrides=self._common.overrides)
        # never switch: calls in progress still use the store of the first workspace
        if self._chosen is not None and self._chosen.root != found.root:
            before = next(one for one, root in self._roots.items() if root == self._chosen.root)
            self._refused = SpeckitError(
                NO_WORKSPACE,
                f"this connection serves '{before}', but the client now works in '{name}'",
                hint="A connection has one workspace, so that no call in progress reaches another.",
                actions=("reconnect", *_ELSEWHERE),
            )
            return
        self._chosen, self._refused, self.name = found, None, name

    def _nothing(self, reason: str) -> SpeckitError:
        return SpeckitError(NO_WORKSPACE, reason, hint=f"Served are {', '.join(self._roots)}.", actions=_ELSEWHERE)
