"""The MCP clients that `init` supports: the place and format of their server lists."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from speckit_memory.config.workspace.settings import ROOT_VARIABLE

NAME = "speckit-memory"
"""The name of the server in a client's list, and of its command on the PATH."""
Entry = dict[str, Any]
"""The command that starts the server: `command`, `args` and `env`."""


@dataclass(frozen=True, slots=True)
class AgentClient:
    """An MCP client.

    Attributes:
        name: Name for `init --client`.
        title: Product name.
        file: Returns the path of its settings, given the workspace. Below the workspace for `scope` "workspace", else
            in the user's folder, where one file serves all projects.
        keys: Key of its table of servers.
        signs: Files or folders which show that the client is used in a workspace; none for `scope` "user".
        also: Further fields of an entry, after `command`, `args` and `env`.
        form: Format of the file.
        variable: The client's placeholder for the opened folder, "" if it documents none. Such clients start servers in
            that folder.
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
        """Adapts an entry with local paths to this client.

        A file in the workspace is shared by a team: the command is the one on the PATH, or relative to the opened
        folder, and values that only hold on this machine are left out.
        """
        if self.scope == "user":
            return {**self.also, **entry}
        root = Path(entry["env"][ROOT_VARIABLE])
        shared = {**self.also, "command": self._within(root, entry["command"]) or NAME, "args": entry["args"]}
        # absolute paths of this machine are useless to the rest of the team
        env = {name: path for name, value in entry["env"].items() if (path := self._within(root, value))}
        return {**shared, "env": env} if env else shared

    def _within(self, root: Path, path: str) -> str:
        """A path relative to the opened folder; "" for a path outside, or if the client has no placeholder for it."""
        if not self.variable or not Path(path).is_relative_to(root):
            return ""
        return "/".join([self.variable, *Path(path).relative_to(root).parts])

    def is_used(self, root: Path) -> bool:
        """Whether the workspace has files of this client."""
        return any((root / sign).exists() for sign in self.signs)


def _sibling_of(path: str) -> Callable[[Path], Path]:
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
"""Required by versions that support servers from extensions; others ignore it."""
_OPENED = "${workspaceFolder}"
CLIENTS = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code", "Claude Code", _sibling_of(".mcp.json"), "mcpServers", signs=(".mcp.json", ".claude")
        ),
        AgentClient("claude-desktop", "Claude Desktop", _desktop, "mcpServers", scope="user"),
        AgentClient(
            "cursor", "Cursor", _sibling_of(".cursor/mcp.json"), "mcpServers", signs=(".cursor",), variable=_OPENED
        ),
        AgentClient(
            "vscode",
            "VS Code",
            _sibling_of(".vscode/mcp.json"),
            "servers",
            signs=(".vscode",),
            also={"type": "stdio"},
            variable=_OPENED,
        ),
        AgentClient("codex", "Codex", _sibling_of(".codex/config.toml"), "mcp_servers", signs=(".codex",), form="toml"),
        AgentClient("windsurf", "Windsurf", _windsurf, "mcpServers", scope="user"),
        AgentClient("zed", "Zed", _sibling_of(".zed/settings.json"), "context_servers", signs=(".zed",), also=_ZED),
    )
}
