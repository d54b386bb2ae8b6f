"""Wheels and clean environments, made as a user makes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A finished command; of the environment nothing of Python or of the product is left."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPECKIT_"))}
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, cwd=cwd, env=clean | environ, capture_output=True, text=True, check=False)


def built(source: Path, out: Path) -> Path:
    """The wheel of a source folder."""
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = out.glob("*.whl")
    return file


def environment(folder: Path, *installs: Sequence[str | Path]) -> Path:
    """The folder of the commands of a new environment, after so many `pip install` with these arguments."""
    venv.create(folder, with_pip=True)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    for arguments in installs:
        done = run(*pip, *arguments, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def locked(folder: Path, *names: str) -> Path:
    """A requirements file with the entries that the lock of the development environment has for these packages."""
    text = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    entries = {entry[1]: entry[0] for entry in re.finditer(r"^([\w.-]+)==(?:.*\\\n)*.*\n", text, re.MULTILINE)}
    file = folder / "locked.txt"
    file.write_text("".join(entries[name] for name in names), encoding="utf-8")
    return file
