"""The installed console script and the documents that the tests of the doors share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "speckit-memory"

DOCUMENTS = {
    "docs/fusion.md": (
        "---\ntitle: Why rank fusion\ntrigger_phrases: [reciprocal rank fusion]\nimportance_tier: important\n"
        "context_type: decision\n---\n# Why rank fusion\n\nScores of lexical and dense channels cannot be compared, "
        "so the ranks are fused.\n"
    ),
    "docs/storage/wal.md": (
        "# Write-ahead log\n\nThe store runs SQLite in WAL mode. The function `computeMPAB` and the setting "
        "busy_timeout are described in REQ-006.\n"
    ),
    "docs/storage/backup.md": "# Backups\n\nCopy the file with the online backup, never with cp.\n",
    "docs/cjk.md": "# 検索の設計\n\n全文検索は二文字の並びで日本語を索引する。\n",
    "docs/tone.md": "# Tone\n\nBe or not to be: what this is about is how we write to one another.\n",
    "docs/long.md": "# Long passage\n\n" + "The quokka cache keeps warm entries close to the reader. " * 60 + "\n",
}


@dataclass(frozen=True)
class Ran:
    """A finished run of the console script."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def environment(root: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECKIT_", "PYTHON"))}
    return {**kept, "SPECKIT_ROOT": str(root), "SPECKIT_DB": str(root / "memory.db"), **more}


def call(
    root: Path, arguments: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Ran:
    finished = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        check=False,
        cwd=cwd or root,
        env=environment(root, **(env or {})),
        stdin=subprocess.DEVNULL,
        timeout=240,
    )
    ran = Ran(finished.returncode, finished.stdout.decode(), finished.stderr.decode())
    assert "Traceback" not in ran.out + ran.err
    return ran


def indexed_workspace(root: Path) -> Path:
    """Writes the documents into a folder and indexes them."""
    for name, text in DOCUMENTS.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    ran = call(root, ["index", "docs", "--json"])
    assert ran.status == 0, ran.err
    assert ran.json["created"] == sorted(DOCUMENTS)
    return root
