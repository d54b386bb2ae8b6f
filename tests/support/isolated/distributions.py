"""Installed distributions that offer components, as folders for the import path."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

HERE = Path(__file__).parent
METHODS = {"SIGNAL": "evidence(self, query, pool, store)", "ANNOTATOR": "annotate(self, query, ranking, store)"}
STEP = """\
{before}
from speckit_memory.pipeline import About, Notes, Params, Role, SignalParams


class Step:
    'A step of an extension.'

    Params = {params}
    about = About()
    {more}

    def __init__(self, params):
        pass

    def {method}:
{work}


def register(registry):
    registry.add(Role.{role}, Step, "{name}")
"""


def step_source(name: str, role: str, work: str, before: str = "import os, time\nimport numpy as np") -> str:
    """The text of a module that registers a step of this role and name, whose method does this `work`."""
    params, more = ("SignalParams", 'combine = "add"') if role == "SIGNAL" else ("Params", "")
    lines, method = indent(work, " " * 8), METHODS[role]
    return STEP.format(before=before, params=params, more=more, method=method, work=lines, role=role, name=name)


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
