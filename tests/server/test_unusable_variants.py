"""Pipelines that should run beside the served one and cannot, through the installed command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call, indexed_workspace


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        ("nosuch.yaml", "pipeline.yaml:2:11: E121 'nosuch.yaml' is neither a file nor a preset"),
        ("broken.yaml", "broken.yaml:2:"),
    ],
)
def test_a_variant_that_cannot_run_stops_no_search(tmp_path: Path, variant: str, told: str) -> None:
    plain = call(indexed_workspace(tmp_path), ["search", "rank fusion", "--json"]).json["results"]
    folder = tmp_path / ".speckit"
    folder.mkdir(exist_ok=True)
    (folder / "broken.yaml").write_text("pipeline: broken\nfusion: [{use: z_scor}]\n", encoding="utf-8")
    (folder / "pipeline.yaml").write_text(f"extends: default\nshadows: [{variant}, bm25]\n", encoding="utf-8")
    found = call(tmp_path, ["search", "rank fusion", "--json"]).ok()
    assert [(row["id"], row["score"]) for row in found.json["results"]] == [(row["id"], row["score"]) for row in plain]
    (warning,) = [one for one in found.json["notes"]["warnings"] if "a shadow pipeline cannot run: " in one]
    assert told in warning
    assert told in " ".join(call(tmp_path, ["search", "rank fusion"]).out.split())
    doctor = call(tmp_path, ["doctor", "--json"]).ended(1)
    (check,) = [check for check in doctor.json["checks"] if check["name"] == "shadows"]
    assert check["verdict"] == "fail"
    assert told in check["detail"]
    checked = call(tmp_path, ["pipeline", "check", folder / "pipeline.yaml"])
    assert checked.status != 0
    assert told in checked.out + checked.err
