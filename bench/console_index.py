"""What `speckit-memory index` does with whole collections: in numbers, and with files that change between two runs.

`python -m bench.console_index COLLECTION... --out figures.json` takes folders in the BEIR layout, whose documents are
written out as Markdown files, and folders of Markdown files, which are copied. Each is indexed four times by the
console: all of it; again as it is; after one file was changed, one renamed, one deleted and one broken was added; and
again. What the runs say must be that and nothing else, else the command ends with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Report = dict[str, Any]
_UNSAFE = re.compile(r"[^\w.-]+")
BROKEN = "---\ntrigger_phrases: [\n---\n# Broken\n\nIts front matter is no YAML.\n"


def documents(collection: Path) -> Iterator[tuple[str, str]]:
    """Paths and contents of a collection's documents, in order."""
    corpus = collection / "corpus.jsonl"
    if not corpus.exists():
        for file in sorted(collection.rglob("*.md")):
            yield file.relative_to(collection).as_posix(), file.read_text(encoding="utf-8")
        return
    with corpus.open(encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            path = "/".join(_UNSAFE.sub("-", part) for part in document["_id"].split("/"))
            heading = f"# {document['title']}\n\n" if document.get("title") else ""
            yield f"{path}.md", f"{heading}{document['text']}\n"


def index(root: Path) -> Report:
    """The report of one run of the console over the folder `docs`, with the seconds of the whole process."""
    command = [str(Path(sys.executable).parent / "speckit-memory"), "index", "docs", "--json"]
    begun = time.monotonic()
    environment = {**os.environ, "SPECKIT_ROOT": str(root)}
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=environment)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"index ended with {ran.returncode}: {ran.stderr[-2000:]}")
    report: Report = json.loads(ran.stdout)
    return {**report, "process_seconds": time.monotonic() - begun}


def told(report: Report) -> Report:
    """What a run did, as counts."""
    counts = {name: len(report[name]) for name in ("created", "updated", "renamed", "vanished", "problems")}
    return {**counts, **{name: report[name] for name in ("unchanged", "chunks", "embedded", "cache_hits")}}


def changed(docs: Path) -> dict[str, str]:
    """Changes one file, renames one, deletes one and adds a broken one; returns which."""
    files = sorted(docs.rglob("*.md"), key=lambda file: (-file.stat().st_size, file))
    one, other, third = files[len(files) // 4], files[len(files) // 2], files[3 * len(files) // 4]
    one.write_text(one.read_text(encoding="utf-8") + "\nAdded by hand: marmots.\n", encoding="utf-8")
    moved = other.with_name("renamed-by-hand.md")
    other.replace(moved)
    third.unlink()
    (docs / "broken-by-hand.md").write_text(BROKEN, encoding="utf-8")
    names = {"changed": one, "from": other, "to": moved, "deleted": third}
    return {name: file.relative_to(docs.parent).as_posix() for name, file in names.items()}


def ids(root: Path) -> dict[str, int]:
    """The memories by key."""
    from speckit_memory.engine import Memory

    with Memory.open(root / ".speckit" / "memory.db", root=root) as memory:
        rows, _ = memory.list(limit=100_000)
        return {row.key: row.id for row in rows}


def measured(collection: Path, folder: Path) -> tuple[Report, list[str]]:
    """The figures of one collection, and what was otherwise than it must be."""
    docs = folder / "docs"
    for path, content in documents(collection):
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(content, encoding="utf-8")
    (folder / ".speckit").mkdir()
    first, second = index(folder), index(folder)
    before = ids(folder)
    hand = changed(docs)
    third, fourth = index(folder), index(folder)
    after = ids(folder)
    count, size = len(before), sum(file.stat().st_size for file in docs.rglob("*.md"))
    wrong = [
        text
        for text, holds in {
            "a second run did something": not any(told(second)[name] for name in ("created", "updated", "embedded")),
            "a second run does not know all files": second["unchanged"] == count,
            "the changed file was not the one updated": third["updated"] == [hand["changed"]],
            "the renamed file was not followed": [one["to"] for one in third["renamed"]] == [hand["to"]],
            "the renamed memory has another id": after.get(hand["to"]) == before[hand["from"]],
            "the deleted file was not the one that is absent": third["vanished"] == [hand["deleted"]],
            "the broken file is not told": "docs/broken-by-hand.md"
            in {one.get("where", {}).get("file") for one in third["problems"]},
            "a fourth run embedded something": fourth["embedded"] == 0,
        }.items()
        if not holds
    ]
    figures = {
        "documents": count,
        "bytes": size,
        "seconds": first["process_seconds"],
        "documents_per_second": count / first["process_seconds"],
        "megabytes_per_second": size / 1e6 / first["process_seconds"],
        "seconds_again": second["process_seconds"],
        "seconds_after_changes": third["process_seconds"],
        "runs": [told(report) for report in (first, second, third, fourth)],
        "wrong": wrong,
    }
    return figures, wrong


def main() -> int:
    """Measures the collections; 1 where a run did otherwise than it must."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found: dict[str, Report] = {}
    for collection in arguments.collections:
        folder = Path(tempfile.mkdtemp(prefix="console-index-"))
        try:
            found[collection.name], wrong = measured(collection, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        figures = found[collection.name]
        print(
            f"{collection.name}: {figures['documents']:,} documents, {figures['bytes'] / 1e6:.1f} MB, "
            f"{figures['seconds']:.1f} s ({figures['documents_per_second']:.0f} a second), again "
            f"{figures['seconds_again']:.2f} s, after changes {figures['seconds_after_changes']:.2f} s"
        )
        for text in wrong:
            print(f"  {text}")
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any(figures["wrong"] for figures in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
