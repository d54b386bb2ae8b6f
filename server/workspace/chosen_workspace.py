"""A workspace that the client chooses, once for its connection, among those that the server may serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import listed
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.replies.answer_cache import SECONDS
from speckit_memory.server.workspace.workspace import NO_WORKSPACE, Workspace

NAMED = 10
"""So many folders are named in an error."""
_ELSEWHERE = (
    "start the server with one --workspace, in a process for each",
    "serve over HTTP, where each workspace has an address",
)


class ChosenWorkspace(Workspace):
    """What belongs to nobody until the client has said which folders it works in.

    From then on it is that one: whatever a later answer of the client says, no call of this connection reaches another.
    """

    def __init__(self, common: Common, roots: Mapping[str, Path], *, cache_seconds: float = SECONDS) -> None:
        """`roots` are the folders that may be served, by their names."""
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
        """The settings of the workspace. Raises E015 unless one is chosen, and still the client's."""
        if self._refused is not None:
            raise self._refused
        assert self._chosen is not None
        return self._chosen

    def warm_up(self) -> None:
        """Does nothing before there is something to be warmed up: the call that chooses opens the store anyway."""
        if self._refused is None:
            super().warm_up()

    def choose(self, announced: Sequence[Path]) -> bool:
        """Serves the workspace that the client's folders are in; whether there is one. Else every call is refused, with
        the reason."""
        lies_in = {
            name: folder for folder in announced for name, root in self._roots.items() if folder.is_relative_to(root)
        }
        told = listed([str(folder) for folder in announced], NAMED) or "none"
        if not lies_in:
            self._refused = self._nothing(f"the client works in no folder that is served here: {told}")
        elif len(lies_in) > 1:
            self._refused = self._nothing(f"the client works in several workspaces: {', '.join(lies_in)} ({told})")
        else:
            [name] = lies_in
            self._take(name)
        return self._refused is None

    def refuse(self, reason: str) -> None:
        """Refuses every call until something is chosen."""
        self._refused = self._nothing(reason)

    def _take(self, name: str) -> None:
        found = replace(settings(None, self._common.pipeline, self._roots[name]), overrides=self._common.overrides)
        if self._chosen is not None and self._chosen.root != found.root:
            before = next(one for one, root in self._roots.items() if root == self._chosen.root)
            self._refused = SpeckitError(
                NO_WORKSPACE,
                f"this connection serves '{before}', and the client works in '{name}' by now",
                hint="A connection has one workspace, so that no call under way meets another.",
                actions=("connect anew", *_ELSEWHERE),
            )
            return
        self._chosen, self._refused, self.name = found, None, name

    def _nothing(self, reason: str) -> SpeckitError:
        return SpeckitError(NO_WORKSPACE, reason, hint=f"Served are {', '.join(self._roots)}.", actions=_ELSEWHERE)
