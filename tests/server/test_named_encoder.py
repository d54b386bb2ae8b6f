"""A sentence encoder for the second look, named in the environment, through the command line and a server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answered import present
from raw_server import raw_server
from tiny_encoder import UNKNOWN, write_encoder

from speckit_memory.config.workspace.settings import ENCODER_VARIABLE
from speckit_memory.engine import Memory
from speckit_memory.engine.upkeep import maintenance
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import encoder_vectors
from speckit_memory.memory.models.embedders.encoder import EncoderEmbedder
from tests.server.doors import DOCUMENTS, call
from tests.server.test_life import stored

TABLE = {UNKNOWN: (0.0, 0.0, 0.01), "felines": (1.0, 0.0, 0.0), "quokka": (1.0, 0.0, 0.0)}
"""To this model felines and quokkas are the same; no document speaks of felines."""
QUESTION = "felines and the log"
NEAR = "docs/long.md"
"""What the encoder takes the question to be about."""
TEXTS = len(DOCUMENTS)
"""Each is short enough to have one vector."""
MADE = "SELECT count(*) FROM embedding_cache WHERE model_id LIKE 'onnx-tiny-%'"


@pytest.fixture
def encoder(tmp_path: Path) -> dict[str, str]:
    """The environment that names one."""
    return {ENCODER_VARIABLE: str(write_encoder(tmp_path / "models" / "tiny", TABLE))}


def searched(workspace: Path, environ: dict[str, str], *more: str) -> tuple[list[str], list[str]]:
    """The keys that a search finds, and its warnings."""
    answer = call(workspace, ["search", QUESTION, "--json", *more], environ).ok().json
    assert answer["notes"]["degraded"] == []
    warnings = [warning for warning in answer["notes"]["warnings"] if not warning.startswith("Evidence gap")]
    return [row["key"] for row in answer["results"]], warnings


def maintained(workspace: Path, environ: dict[str, str], *more: str) -> list[tuple[str, int]]:
    jobs = call(workspace, ["maintain", "--json", *more], environ).json["jobs"]
    return [(job["state"], job["count"]) for job in jobs if job["job"] == "encoder"]


def health(workspace: Path, environ: dict[str, str]) -> dict[str, Any]:
    checks = call(workspace, ["doctor", "--json"], environ).json["checks"]
    (found,) = (check for check in checks if check["name"] == "vectors")
    assert isinstance(found, dict)
    return found


@pytest.mark.requirement("R1.encoder")
def test_vectors_of_a_named_encoder_are_made_in_the_background_and_answers_use_them_as_far_as_they_go(
    workspace: Path, encoder: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without, _ = searched(workspace, {})
    assert without.index(NEAR) > 1
    rest = "a running server makes the rest within minutes, `speckit-memory maintain` at once"

    assert searched(workspace, encoder) == (
        without, [f"the encoder has vectors for 0 of these {len(without)} memories so far; {rest}"]
    )  # fmt: skip
    told = health(workspace, encoder)
    assert f"reranks, with 0 of {TEXTS} vectors made" in told["detail"]
    assert rest.lower() in told["hint"].lower()
    assert maintained(workspace, encoder, "--dry-run") == [("waiting", TEXTS)]

    monkeypatch.setattr(encoder_vectors, "BATCH", 2)
    monkeypatch.setattr(maintenance, "MOST_BATCHES", 1)
    assert maintained(workspace, encoder) == [("unfinished", 2)]
    _, (warning,) = searched(workspace, encoder)
    assert warning.startswith(f"the encoder has vectors for 1 of these {len(without)} memories so far")
    monkeypatch.setattr(maintenance, "MOST_BATCHES", 20)
    assert maintained(workspace, encoder) == [("ran", TEXTS - 2)]

    keys, warnings = searched(workspace, encoder)
    assert (keys.index(NEAR) < without.index(NEAR), sorted(keys), warnings) == (True, sorted(without), [])
    assert f"with {TEXTS} of {TEXTS} vectors made" in health(workspace, encoder)["detail"]
    assert searched(workspace, {}) == (without, [])
    assert maintained(workspace, {}) == []


@pytest.mark.requirement("R1.encoder")
def test_a_document_that_changed_waits_again_and_no_other(workspace: Path, encoder: dict[str, str]) -> None:
    maintained(workspace, encoder)
    (workspace / "docs/tone.md").write_text("# Tone\n\nBe brief.\n")
    call(workspace, ["index", "docs"], encoder).ok()

    assert maintained(workspace, encoder) == [("ran", 1)]
    assert maintained(workspace, encoder) == [("not due", 0)]


@pytest.mark.requirement("R1.encoder")
def test_a_short_memory_is_one_text_and_a_long_one_is_its_passages(workspace: Path, encoder: dict[str, str]) -> None:
    parts = [f"## Part {part}\n\n" + ("Seen by a quokka. " if part == 7 else "Nobody came. ") * 60 for part in range(9)]
    (workspace / "docs/guide.md").write_text("# Guide\n\n" + "\n\n".join(parts))
    with Memory.open(workspace / "memory.db", root=workspace, environ=encoder) as memory:
        memory.index([workspace / "docs"])
        made = memory.models.encode()
        store = memory.session.view()
        guide, short = (memory.get(key).id for key in ("docs/guide.md", NEAR))
        of_guide, of_short = ([passage.id for passage in store.passages.of_memory(id_)] for id_ in (guide, short))
        headed = [passage.heading.endswith("Part 7") for passage in store.passages.of_memory(guide)]
        asked = [*of_guide, *of_short, guide, short]
        cosines, whole = present(store.encoder.closeness("felines", np.array(asked)))

    assert made == len(DOCUMENTS) + len(of_guide)
    assert (len(of_short), any(headed)) == (2, True)
    assert (cosines > 0.9).tolist() == [*headed, True, True, False, True]
    assert whole.tolist() == [*(False for _ in of_guide), True, True, False, True]


@pytest.mark.requirement("R1.encoder")
def test_vectors_in_use_are_kept_although_the_cache_forgets_what_nobody_uses(
    workspace: Path, encoder: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time() + 60 * 24 * 3600.0
    with Memory.open(workspace / "memory.db", root=workspace, environ=encoder) as memory:
        assert memory.models.encode() == TEXTS
        monkeypatch.setattr(EncoderEmbedder, "embed_documents", None)  # nothing is computed again
        monkeypatch.setattr(time, "time", lambda: later)
        assert memory.models.encode() == TEXTS
    assert {used for (used,) in stored(workspace, MADE.replace("count(*)", "last_used_at"))} == {later}


@pytest.mark.requirement("R1.encoder")
def test_an_encoder_that_fails_half_way_loses_nothing_of_what_it_made(
    workspace: Path, encoder: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_vectors, "GROUP", 3)
    embed, calls = EncoderEmbedder.embed_documents, []

    def failing(self: EncoderEmbedder, texts: list[str]) -> Any:
        calls.append(len(texts))
        if len(calls) == 2:
            raise SpeckitError("E001", "the power went")
        return embed(self, texts)

    monkeypatch.setattr(EncoderEmbedder, "embed_documents", failing)
    with Memory.open(workspace / "memory.db", root=workspace, environ=encoder) as memory:
        with pytest.raises(SpeckitError, match="the power went"):
            memory.models.encode()
        assert stored(workspace, MADE) == [(3,)]
        assert memory.models.encode() == TEXTS - 3
    assert stored(workspace, MADE) == [(TEXTS,)]
    assert sum(calls) == TEXTS + 3


@pytest.mark.requirement("R1.encoder")
@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("openai:text-embedding-3-small", "which is not a sentence encoder on this machine"),
        ("bundled", "which is not a sentence encoder on this machine"),
        ("nowhere", "which is neither an ONNX file nor a folder with model.onnx"),
    ],
)
def test_an_encoder_that_cannot_be_had_is_told_and_changes_no_answer(workspace: Path, named: str, reason: str) -> None:
    without, _ = searched(workspace, {})
    environ = {ENCODER_VARIABLE: named}

    answer = call(workspace, ["search", QUESTION, "--json"], environ).ok().json

    assert [row["key"] for row in answer["results"]] == without
    (degraded,) = answer["notes"]["degraded"]
    assert degraded["part"] == "encoder"
    assert f"{ENCODER_VARIABLE} is '{named}', {reason}" in degraded["reason"]
    told = health(workspace, environ)
    assert (told["verdict"], reason in told["detail"]) == ("fail", True)
    assert maintained(workspace, environ)[0][0] == "failed"


@pytest.mark.requirement("R1.encoder")
@pytest.mark.usefixtures("processes")
def test_a_server_makes_the_vectors_beside_its_answers(workspace: Path, encoder: dict[str, str]) -> None:
    with raw_server(workspace, spawned=True, env=encoder) as server:
        server.start()
        while stored(workspace, MADE) != [(TEXTS,)]:
            assert server.process.poll() is None
        assert server.close() == 0
    assert searched(workspace, encoder)[0].index(NEAR) < searched(workspace, {})[0].index(NEAR)
