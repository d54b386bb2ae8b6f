"""Installed distributions that offer components, as folders for the import path."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def installed(folder: Path, module: str, source: str | None = None) -> Path:
    """A folder with a distribution named as the module, which registers by `register`. Returns the folder.

    `source` is the module's text; without one it is the file of that name beside this one.
    """
    text = (HERE / f"{module}.py").read_text(encoding="utf-8") if source is None else source
    information = folder / f"{module}-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (information / "entry_points.txt").write_text(f"[speckit_memory.components]\n{module} = {module}:register\n")
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    return folder
