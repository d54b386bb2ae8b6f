"""The MCP clients that `init` knows: where each keeps its servers, and in which form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from speckit_memory.config.workspace.settings import ROOT_VARIABLE

NAME = "speckit-memory"
"""The server among others, and its command on the PATH."""
Entry = dict[str, Any]
"""How a client starts the server: `command`, `args` and `env`."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Attributes:
        name: What `init --client` calls it.
        title: What people call it.
        file: Where it looks for servers, given the workspace. Below the workspace for `scope` "workspace", else in the
            folder of a person, where one file serves all their projects.
        keys: The names that lead to its table of servers, outermost first.
        signs: Files or folders of the workspace which show that the client is used there; none where `scope` is "user".
        also: What an entry holds beside `command`, `args` and `env`.
        form: How the file is written.
        variable: What stands in its file for the opened folder, where it documents such a variable. Without one it
            starts servers in that folder, at or below the workspace.
    """

    name: str
    title: str
    file: Callable[[Path], Path]
    keys: str
    scope: Literal["workspace", "user"] = "workspace"
    signs: tuple[str, ...] = ()
    also: Entry = field(default_factory=dict)
    form: Literal["json", "toml"] = "json"
    variable: str = ""

    def entry(self, entry: Entry) -> Entry:
        """The entry in the form of this client, from one with the paths of this machine.

        A file of the workspace is shared by a team: it names the server as it is found on the PATH, or from the folder
        that is opened, and leaves out what no other machine has.
        """
        if self.scope == "user":
            return {**self.also, **entry}
        root = Path(entry["env"][ROOT_VARIABLE])
        shared = {**self.also, "command": self._within(root, entry["command"]) or NAME, "args": entry["args"]}
        env = {name: path for name, value in entry["env"].items() if (path := self._within(root, value))}
        return {**shared, "env": env} if env else shared

    def _within(self, root: Path, path: str) -> str:
        """A path from the folder that is opened; "" for one outside, or where the client has no name for the folder."""
        if not self.variable or not Path(path).is_relative_to(root):
            return ""
        return "/".join([self.variable, *Path(path).relative_to(root).parts])

    def is_used(self, root: Path) -> bool:
        """Whether the workspace shows that somebody opens it with this client."""
        return any((root / sign).exists() for sign in self.signs)


def _beside(path: str) -> Callable[[Path], Path]:
    return lambda root: root / path


def _desktop(_: Path) -> Path:
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def _windsurf(_: Path) -> Path:
    return Path.home() / ".codeium" / "windsurf" / "mcp_config.json"


_ZED = {"source": "custom"}
"""Of versions that also have servers from extensions; others do without and take no harm."""
_OPENED = "${workspaceFolder}"
CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "Claude Code", _beside(".mcp.json"), "mcpServers", signs=(".mcp.json", ".claude")),
        Client("claude-desktop", "Claude Desktop", _desktop, "mcpServers", scope="user"),
        Client("cursor", "Cursor", _beside(".cursor/mcp.json"), "mcpServers", signs=(".cursor",), variable=_OPENED),
        Client(
            "vscode",
            "VS Code",
            _beside(".vscode/mcp.json"),
            "servers",
            signs=(".vscode",),
            also={"type": "stdio"},
            variable=_OPENED,
        ),
        Client("codex", "Codex", _beside(".codex/config.toml"), "mcp_servers", signs=(".codex",), form="toml"),
        Client("windsurf", "Windsurf", _windsurf, "mcpServers", scope="user"),
        Client("zed", "Zed", _beside(".zed/settings.json"), "context_servers", signs=(".zed",), also=_ZED),
    )
}
