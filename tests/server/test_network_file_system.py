"""A workspace on a file system where processes share no memory, through the doors."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from speckit_memory.memory.store.file import file_system, opening
from tests.server.doors import call, connected, indexed_workspace


@pytest.mark.requirement("M1.journal")
def test_commands_and_the_server_work_there_and_doctor_says_what_is_different(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path_factory.mktemp("proc") / "mountinfo"
    table.write_text(f"22 1 0:50 / {tmp_path} rw - nfs4 server:/export rw\n", encoding="utf-8")
    monkeypatch.setattr(file_system, "MOUNT_TABLE", table)
    monkeypatch.setattr(opening, "_warned", set())
    root = indexed_workspace(tmp_path)

    async def searched() -> None:
        async with connected(root) as client:
            saved = await client.call_tool("memory_save", {"content": "# Ferry\n\nThe ferry leaves at dawn.\n"})
            assert not saved.is_error
            found = await client.call_tool("memory_search", {"query": "when does the ferry leave?"})
            assert "leaves at dawn" in str(found.content)

    anyio.run(searched)
    assert call(root, ["search", "rank fusion", "--json"]).json["results"]
    ran = call(root, ["doctor", "--json"])
    (check,) = (check for check in ran.json["checks"] if check["name"] == "store")
    assert (ran.status, check["verdict"]) == (0, "ok")
    assert f"it is on nfs4 at {tmp_path}: processes share no memory there" in check["detail"]
    assert "SPECKIT_DB" in check["detail"]
    assert not list(tmp_path.rglob("*-shm")) + list(tmp_path.rglob("*-wal"))
