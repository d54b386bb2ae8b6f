"""What `scripts/conformance` drives the server with: fetched by npm and pip, in these versions, into its own folder.

None of it is a dependency of the project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path

RELEASED = "conformance-released"
COMING = "conformance-coming"
PACKAGES = {
    "node": "22.23.3",  # the Inspector and the suite need a newer one than many machines have
    "@modelcontextprotocol/inspector": "2.12.0",
    RELEASED: "npm:@modelcontextprotocol/conformance@0.1.16",
    COMING: "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
}
FASTMCP = "4.1.2"
PATIENCE = 900
"""Seconds after which fetching is given up."""


class NotFetchedError(Exception):
    """Something could not be fetched, so that nothing is known of the server."""


def _run(what: str, *command: str | Path, cwd: Path) -> None:
    if shutil.which(str(command[0])) is None:
        raise NotFetchedError(f"{what} cannot be fetched: there is no {command[0]} on this machine")
    try:
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise NotFetchedError(f"{what} cannot be fetched: {command[0]} took more than {PATIENCE} s") from None
    if done.returncode:
        raise NotFetchedError(f"{what} cannot be fetched:\n{(done.stderr or done.stdout).strip()[-2000:]}")


def node_tools(folder: Path) -> Path:
    """The `node_modules` of the pinned packages below a folder; what is there already is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = json.dumps({"private": True, "dependencies": PACKAGES, "allowScripts": {"node": True}}, indent=2)
    manifest, complete = folder / "package.json", folder / "complete.json"
    if not complete.exists() or complete.read_text() != wanted:
        manifest.write_text(wanted)
        _run("the Inspector and the conformance suite", "npm", "install", "--no-audit", "--no-fund", cwd=folder)
        complete.write_text(wanted)
    return folder / "node_modules"


def node_environment(modules: Path, home: Path) -> dict[str, str]:
    """The environment in which the pinned node runs, and finds nobody's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECKIT_", "PYTHON", "MCP_"))}
    return {**kept, "PATH": f"{modules / '.bin'}{os.pathsep}{kept.get('PATH', '')}", "HOME": str(home)}


def fastmcp_python(folder: Path) -> Path:
    """The interpreter of an environment that holds nothing but fastmcp and what that needs."""
    home = folder / f"fastmcp-{FASTMCP}"
    python, complete = home / "bin" / "python", home / "complete"
    if not complete.exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run("fastmcp", *pip, f"fastmcp=={FASTMCP}", cwd=folder)
        complete.touch()
    return python
