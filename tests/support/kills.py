"""Real processes of the installed script that are killed in the midst of an operation, and what others find then.

Every crash point is visited inside a process (`crashing`, tests/crashes). These show that a kill is what that stands
for: three of each operation in every run of the tests, `scripts/soak --kills 50` as many as one has time for.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import embedding_service
from killing import killed, points, spread

from tests.server.doors import call, environment

MODEL = "openai:tiny"


def _changed(root: Path) -> None:
    (root / "docs" / "fusion.md").unlink()
    (root / "docs" / "zebra.md").write_text("# Zebra\n\nA zebra at the backups.\n")
    (root / "docs" / "tone.md").write_text("# Tone\n\nSomething else altogether.\n")


DELETE = ["delete", "--folder", "docs/storage", "--confirm"]


def _to_index(root: Path) -> list[str]:
    _changed(root)
    return ["index", "docs"]


def _to_save(root: Path) -> list[str]:
    _changed(root)
    return ["save", "docs/zebra.md"]


def _to_restore(root: Path) -> list[str]:
    assert call(root, ["checkpoint", "create", "first"]).status == 0
    assert call(root, _to_index(root)).status == 0
    return ["checkpoint", "restore", "first", "--replace", "--no-backup"]


OPERATIONS: dict[str, Callable[[Path], list[str]]] = {
    "index": _to_index,
    "save": _to_save,
    "delete": lambda root: DELETE,
    "undelete": lambda root: ["undelete", call(root, [*DELETE, "--json"]).json["undo"]],
    "restore": _to_restore,
    "model": lambda root: ["model", "use", MODEL, "--no-compare"],
    "segment": lambda root: ["doctor", "--fix"],
}
"""Each makes a workspace ready and returns the command to be killed in it."""


def try_kills(name: str, indexed: Path, place: Path, kills: int) -> int:
    """Kills an operation at so many points, each time in a copy of an indexed workspace; the next run finishes it.

    Returns how many kills there were: an operation may have fewer points. Raises AssertionError where a store is
    damaged, or is another one in the end than after a run without a kill.
    """
    origin, root = place / "origin", place / "root"
    shutil.copytree(indexed, origin)
    arguments = OPERATIONS[name](origin)
    with embedding_service.running() as service:
        env = {"SPECKIT_EMBEDDER": MODEL, "SPECKIT_EMBEDDER_URL": service.url} if name == "model" else {}

        def copied() -> Path:
            shutil.rmtree(root, ignore_errors=True)
            return Path(shutil.copytree(origin, root))

        passed = points(copied(), arguments, environment(root, **env))
        expected = _state(root)
        chosen = spread(passed, kills)
        for at in chosen:
            assert killed(copied(), arguments, environment(root, **env), at), at
            assert call(root, ["doctor"], env).status == 0, at
            call(root, arguments, env)  # which refuses where nothing was left to do
            assert _state(root) == expected, at
            assert call(root, ["doctor"], env).status == 0, at
    return len(chosen)


def _state(root: Path) -> tuple[object, ...]:
    """The keys of the memories, the documents, and the model in use."""
    listed = call(root, ["list", "--limit", "50", "--json"]).json["memories"]
    texts = {str(file.relative_to(root)): file.read_text() for file in root.glob("docs/**/*.md")}
    models = call(root, ["model", "list", "--json"]).json["store"]["models"]
    return sorted(row["key"] for row in listed), texts, [(model["name"], model["place"]) for model in models]
