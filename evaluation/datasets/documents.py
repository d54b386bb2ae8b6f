"""The documents of a dataset: lines of `corpus.jsonl`, or else Markdown files below `docs/` and lines of
`memories.jsonl`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from speckit_memory.config.files.paths import is_file, is_folder
from speckit_memory.config.files.regular_file import read_bytes
from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.errors import SpeckitError, Where, nearest
from speckit_memory.evaluation.datasets.lines import LONGEST_LINE, JsonLine, Problems, json_records
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.parsing.markdown import title
from speckit_memory.memory.store.records import Tier

CORPUS, MARKDOWN, MEMORIES = "corpus.jsonl", "docs", "memories.jsonl"


@dataclass(frozen=True, slots=True)
class DatasetDocument:
    """One document. `created_at` is in epoch seconds, None when the dataset does not say."""

    key: str
    title: str
    text: str
    folder: str = ""
    tier: Tier = Tier.NORMAL
    triggers: tuple[str, ...] = ()
    created_at: float | None = None


def has_documents(folder: Path) -> bool:
    """Whether a dataset has documents in either form."""
    return is_file(folder / CORPUS) or is_folder(folder / MARKDOWN)


def document_files(folder: Path) -> list[Path]:
    """The files that hold the documents of a dataset, in the order of their keys."""
    if is_file(folder / CORPUS):
        return [folder / CORPUS]
    # Markdown is only read without a corpus file
    lines = [folder / MEMORIES] if is_file(folder / MEMORIES) else []
    return lines + sorted((folder / MARKDOWN).rglob("*.md"), key=lambda path: path.relative_to(folder).as_posix())


def documents(folder: Path, problems: Problems) -> Iterator[tuple[Where, DatasetDocument]]:
    """Every document with its location: lines of files in file order, then the Markdown files by key."""
    for path in document_files(folder):
        if path in (folder / CORPUS, folder / MEMORIES):
            for record in json_records(path, problems):
                yield record.where, _of_record(record)
            continue
        key, where = path.relative_to(folder).as_posix(), Where(str(path), 1, 1)
        try:
            text = decode(read_bytes(path, LONGEST_LINE), key)
        except (OSError, SpeckitError) as error:
            problems.add(where, f"the document cannot be read: {error}")
        else:
            yield where, of_markdown(key, text)


def copy_documents(source: Path, target: Path) -> None:
    """Writes the documents of one dataset as the `corpus.jsonl` of another. Raises OSError if that fails."""
    if document_files(source) == [source / CORPUS]:
        shutil.copyfile(source / CORPUS, target / CORPUS)
        return
    with (target / CORPUS).open("w", encoding="utf-8", newline="\n") as file:
        for _, document in documents(source, Problems()):
            file.write(json.dumps(_as_record(document), ensure_ascii=False) + "\n")


def of_markdown(key: str, text: str) -> DatasetDocument:
    """A Markdown file as a document, with the metadata it would have if the file were indexed.

    The text keeps its front matter, so that the links in it become edges.
    """
    front, _ = front_matter.parse(text, key)
    return DatasetDocument(
        key=key,
        title=title.choose(front.title, text[front.body_start :], key),
        text=text,
        folder=PurePosixPath(key).parent.as_posix(),
        tier=front.tier or Tier.NORMAL,
        triggers=front.triggers,
        created_at=front.created_at,
    )


def _as_record(document: DatasetDocument) -> dict[str, Any]:
    metadata = {
        "folder": document.folder,
        "tier": document.tier,
        "triggers": document.triggers,
        "created_at": document.created_at,
    }
    return {"_id": document.key, "title": document.title, "text": document.text, "metadata": metadata}


def _of_record(record: JsonLine) -> DatasetDocument:
    metadata = record.record("metadata")
    tier = metadata.text("tier") or Tier.NORMAL
    if tier not in tuple(Tier):
        metadata.report(f"'metadata.tier' is '{tier}'; {nearest(tier, Tier)}")
        tier = Tier.NORMAL
    return DatasetDocument(
        key=record.text("_id", required=True),
        title=record.text("title"),
        text=record.text("text"),
        folder=normalised_folder(metadata.text("folder")),
        tier=Tier(tier),
        triggers=metadata.texts("triggers"),
        created_at=metadata.moment("created_at"),
    )
