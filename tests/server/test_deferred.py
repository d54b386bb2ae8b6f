"""Saves that leave their vectors for later: background work makes them, from the console and beside the answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import embedding_service
import pytest
from raw_server import raw_server

from speckit_memory.engine import Memory
from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.server.console.fitting_actions import advice_for_client
from tests.server.doors import call
from tests.server.test_life import stored
from tests.server.test_mcp_stdio import calls

VECTORS = (
    "SELECT m.key, c.ordinal, v.embedding, t.tokens FROM chunks c JOIN memories m ON m.id = c.memory_id "
    "JOIN chunk_vectors v ON v.rowid = c.id JOIN chunk_tokens t ON t.chunk_id = c.id ORDER BY m.key, c.ordinal"
)
TEXTS = {
    "docs/limits.md": "# Rate limits\n\nCalls of one tenant are slowed down by a token bucket.\n",
    "docs/guide.md": "\n\n".join(f"## Part {part}\n\nStep {part} of the guide is done.\n" * 40 for part in range(9)),
}


def saved_without_vectors(root: Path, **environ: str) -> None:
    with Memory.open(root / "memory.db", root=root, environ=environ) as memory:
        for name, text in TEXTS.items():
            (root / name).write_text(text)
            assert memory.documents.save(root / name, defer_embedding=True, force=True).pending


def maintained(
    root: Path, *arguments: str, status: int = 0, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What became of the job."""
    ran = call(root, ["maintain", "--json", *arguments], env=environ)
    assert ran.status == status, ran.out
    [job] = [job for job in ran.json["jobs"] if job["job"] == "vectors"]
    assert isinstance(job, dict)
    return job


def checks(root: Path, *arguments: str, **environ: str) -> dict[str, Any]:
    ran = call(root, ["doctor", "--json", *arguments], env=environ)
    return {check["name"]: check for check in ran.json["checks"]}


@pytest.mark.requirement("I9.deferred", "I9.finished")
def test_maintenance_embeds_what_was_saved_without_vectors_as_an_index_run_would(workspace: Path) -> None:
    saved_without_vectors(workspace)
    [(passages,)] = stored(workspace, "SELECT count(*) FROM chunks WHERE vector = 'pending'")
    told = checks(workspace)["content"]
    assert (told["verdict"], "2 wait for their vectors" in told["detail"]) == ("fail", True)
    assert "speckit-memory maintain" in told["hint"]
    planned = maintained(workspace, "--dry-run")
    assert (planned["state"], planned["count"]) == ("waiting", passages)

    done = maintained(workspace)

    assert (done["state"], done["count"]) == ("ran", passages)
    assert stored(workspace, "SELECT count(*) FROM memories WHERE embedding_status = 'pending'") == [(0,)]
    after = checks(workspace)
    assert after["content"]["verdict"] == "ok"
    assert f"{passages} waiting passages embedded" in after["maintenance"]["detail"]
    made = stored(workspace, VECTORS)
    (workspace / "memory.db").unlink()
    assert call(workspace, ["index", "docs"]).status == 0
    assert stored(workspace, VECTORS) == made
    # what is saved the next minute waits for no hour to pass
    (workspace / "docs/limits.md").write_text(TEXTS["docs/limits.md"] + "\nThe bucket holds ten.\n")
    assert maintained(workspace)["state"] == "ran"
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.documents.save(workspace / "docs/limits.md", defer_embedding=True, force=True)
    assert maintained(workspace)["count"] == 1
    assert maintained(workspace)["state"] == "not due"


@pytest.mark.requirement("I9.finished")
@pytest.mark.usefixtures("processes")
def test_a_server_embeds_what_was_saved_without_vectors_beside_its_answers(workspace: Path) -> None:
    (workspace / "docs/limits.md").write_text(TEXTS["docs/limits.md"])
    save = {"filePath": "docs/limits.md", "asyncEmbedding": True, "force": True}
    waiting = "SELECT key FROM memories WHERE embedding_status = 'pending'"
    with raw_server(workspace, "--no-warm-up", spawned=True) as server:
        server.start()
        answer = server.call(2, "memory_save", save)["structuredContent"]
        assert answer["data"]["embedding_pending"] is True
        while stored(workspace, waiting):
            assert server.process.poll() is None
        assert server.close() == 0
    assert stored(workspace, "SELECT count(*) FROM memories WHERE key = 'docs/limits.md'") == [(1,)]
    assert checks(workspace)["content"]["verdict"] == "ok"


@pytest.mark.requirement("I9.finished", "I6")
def test_no_text_goes_to_a_service_that_the_environment_does_not_name_and_a_failure_is_tried_again(
    workspace: Path,
) -> None:
    def failed_long_ago() -> None:
        with (
            Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory,
            memory.session.database.write() as txn,
        ):
            txn.connection.execute("UPDATE job_runs SET ended_at = ended_at - 600 WHERE job = 'vectors'")

    with embedding_service.running() as service:
        named = service.environ
        assert call(workspace, ["index", "docs"], env=named).status == 0
        saved_without_vectors(workspace, **named)
        asked = len(service.requests)

        refused = maintained(workspace, status=1)

        assert (refused["state"], refused["count"]) == ("failed", 0)
        assert "vectors made by 'openai-tiny-" in refused["failure"]
        assert len(service.requests) == asked
        assert "vectors failed at" in checks(workspace, **named)["maintenance"]["detail"]
        assert maintained(workspace, environ=named)["state"] == "not due"
        failed_long_ago()
        service.always = lambda _service, _body: (400, {}, b"{}")
        assert "400" in maintained(workspace, status=1, environ=named)["failure"]
        failed_long_ago()
        service.always = embedding_service.well
        assert maintained(workspace, environ=named)["state"] == "ran"
        assert {text for text in service.texts if "token bucket" in text}
        assert stored(workspace, "SELECT count(*) FROM memories WHERE embedding_status = 'pending'") == [(0,)]


@pytest.mark.requirement("I9.finished", "M5.one")
def test_what_was_paid_for_is_asked_once_whoever_takes_over_or_whatever_fails_meanwhile(workspace: Path) -> None:
    answered: list[str] = []

    def well(service: embedding_service.Service, body: dict[str, Any]) -> embedding_service.Answer:
        answered.extend(body["input"])
        return embedding_service.well(service, body)

    def refused(_service: embedding_service.Service, _body: dict[str, Any]) -> embedding_service.Answer:
        return 400, {}, b"{}"

    def another_takes_over(service: embedding_service.Service, body: dict[str, Any]) -> embedding_service.Answer:
        changed("INSERT OR REPLACE INTO job_lease VALUES (1, 'another', strftime('%s', 'now') + 60)")
        return well(service, body)

    def changed(statement: str) -> None:
        with Database.open(workspace / "memory.db") as database, database.write() as txn:
            txn.connection.execute(statement)

    with embedding_service.running() as service:
        named = service.environ
        assert call(workspace, ["index", "docs"], env=named).status == 0
        (workspace / "docs/steps.md").write_text(
            "".join(f"## Part {n}\n\n{f'Step {n} is done. ' * 50}\n" for n in range(80))
        )
        with Memory.open(workspace / "memory.db", root=workspace, environ=named) as memory:
            assert memory.documents.save(workspace / "docs/steps.md", defer_embedding=True, force=True).pending
        waiting = "SELECT count(*) FROM chunks WHERE vector = 'pending'"
        [(passages,)] = stored(workspace, waiting)
        service.always = well
        service.behaviours = [well, refused]  # the first group of passages is embedded, the second is not
        assert maintained(workspace, status=1, environ=named)["state"] == "failed"
        assert 0 < len(answered) < passages
        changed("UPDATE job_runs SET ended_at = ended_at - 600 WHERE job = 'vectors'")
        service.behaviours = [another_takes_over]
        assert maintained(workspace, environ=named)["state"] == "waiting"
        assert len(answered) == passages
        assert stored(workspace, waiting) == [(passages,)]
        changed("DELETE FROM job_lease")

        done = maintained(workspace, environ=named)

        assert (done["state"], done["count"]) == ("ran", passages)
        assert len(answered) == len(set(answered)) == passages


@pytest.mark.requirement("I9.finished", "T9.undone", "M14")
def test_who_brings_back_what_another_model_embedded_is_told_who_embeds_it(workspace: Path) -> None:
    def out(*arguments: str, **environ: str) -> str:
        return " ".join(call(workspace, arguments, env=environ).ok().out.split())

    with embedding_service.running() as service:
        deletions = [call(workspace, ["delete", f"docs/{name}.md", "--json"]).json for name in ("tone", "cjk")]
        assert call(workspace, ["checkpoint", "create", "before", "--folder", "docs/storage"]).status == 0
        assert call(workspace, ["export", str(workspace.parent / "out")]).status == 0
        named = service.environ
        assert call(workspace, ["delete", "docs/storage/wal.md"]).status == 0
        assert call(workspace, ["delete", "docs/fusion.md"]).status == 0
        out("index", "docs", **named)

        assert f"1 passage without vectors: {WHO_EMBEDS}" in out("undelete", deletions[0]["undo"], **named)
        assert f"2 passages without vectors of this embedding model: {WHO_EMBEDS}" in out(
            "checkpoint", "restore", "before", **named
        )
        assert f"2 passages without vectors: {WHO_EMBEDS}" in out("import", str(workspace.parent / "out"))
        assert WHO_EMBEDS in checks(workspace)["content"]["hint"]
        assert maintained(workspace, environ=named)["state"] == "ran"
        assert checks(workspace)["content"]["verdict"] == "ok"
        [undone] = calls(workspace, ("memory_delete", {"undo": deletions[1]["undo"]}))
        told = advice_for_client(WHO_EMBEDS, lambda _: True)
        assert undone["hints"] == [f"lexical search finds all already; vectors follow: {told}"]
