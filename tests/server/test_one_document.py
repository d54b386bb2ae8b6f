"""With `--json` standard output holds one document, whatever else writes there."""

from __future__ import annotations

from pathlib import Path

import pytest
from isolated.distributions import installed, step_source

from tests.server.doors import call, indexed_workspace


@pytest.mark.parametrize("ending", [[], ["--limit", "0"]], ids=["answered", "refused"])
@pytest.mark.usefixtures("processes")
def test_what_a_trusted_component_prints_is_no_part_of_the_document(tmp_path: Path, ending: list[str]) -> None:
    work = 'print("from Python")\nos.write(1, b"from below\\n")\nreturn Notes()'
    site = installed(tmp_path / "installed", "talker", step_source("talker", "ANNOTATOR", work))
    root = indexed_workspace(tmp_path / "workspace")
    (root / "talking.yaml").write_text("extends: default\nannotate: {add: [talker]}\n")

    ran = call(
        root, ["search", "rank fusion", "--pipeline", "talking.yaml", "--json", *ending], {"PYTHONPATH": str(site)}
    )

    if ending:
        assert (ran.status, ran.json["error"]["code"]) == (2, "E032")
    else:
        assert ran.status == 0 and ran.json["results"] and ran.json["notes"]["degraded"] == []
        assert "from Python\n" in ran.err and "from below\n" in ran.err


def test_help_that_is_asked_for_beside_json_stands_on_standard_output(tmp_path: Path) -> None:
    ran = call(tmp_path, ["search", "--json", "--help"])
    assert ran.status == 0 and ran.out.startswith("Usage: speckit-memory search")
