"""With `--json` standard output holds one document, whatever else writes there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call, indexed_workspace

TALKER = '''\
import os

from speckit_memory.pipeline import About, Notes, Params, Role


class Talker:
    """Prints, in both ways."""

    Params = Params
    about = About()

    def __init__(self, params):
        pass

    def annotate(self, query, ranking, store):
        print("from Python")
        os.write(1, b"from below\\n")
        return Notes()


def register(registry):
    registry.add(Role.ANNOTATOR, Talker, "talker")
'''


def _installed(folder: Path) -> dict[str, str]:
    """The environment in which an extension that prints is installed, and trusted as it is by default."""
    about = folder / "talker-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: talker\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[speckit_memory.components]\ntalker = talker:register\n")
    (folder / "talker.py").write_text(TALKER)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("ending", [[], ["--limit", "0"]], ids=["answered", "refused"])
@pytest.mark.usefixtures("processes")
def test_what_a_trusted_component_prints_is_no_part_of_the_document(tmp_path: Path, ending: list[str]) -> None:
    env = _installed(tmp_path / "installed")
    root = indexed_workspace(tmp_path / "workspace")
    (root / "talking.yaml").write_text("extends: default\nannotate: {add: [talker]}\n")

    ran = call(root, ["search", "rank fusion", "--pipeline", "talking.yaml", "--json", *ending], env)

    if ending:
        assert (ran.status, ran.json["error"]["code"]) == (2, "E032")
    else:
        assert ran.status == 0 and ran.json["results"] and ran.json["notes"]["degraded"] == []
        assert "from Python\n" in ran.err and "from below\n" in ran.err


def test_help_that_is_asked_for_beside_json_stands_on_standard_output(tmp_path: Path) -> None:
    ran = call(tmp_path, ["search", "--json", "--help"])
    assert ran.status == 0 and ran.out.startswith("Usage: speckit-memory search")
