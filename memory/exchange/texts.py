"""The exported text of a memory: the bytes of its file, or a document generated from the store."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from speckit_memory.config.workspace.formats import PLAIN
from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.config.yaml.editor import quote_scalar
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.front_matter_edit import scalar_or_list
from speckit_memory.memory.editing.link_edit import declared_link
from speckit_memory.memory.indexing.documents import content_hash
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.parsing.encoding import clean, decode
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.scanner import LARGEST_FILE
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import UNKNOWN_TIME, Link, Relation
from speckit_memory.memory.store.tables.memories import judgements


@dataclass(frozen=True, slots=True)
class ExportedText:
    """A text to export. `is_file`: it is a file of the workspace, which an import creates again; `found`: the file
    existed; `secrets`: the number of secrets left out; `own_hash`: the hash in the store, of the text with secrets."""

    data: bytes
    is_file: bool
    found: bool
    secrets: int
    own_hash: str

    def content_hash(self, key: str) -> str:
        """The hash under which a store records this text."""
        return content_hash(decode(self.data, key))


def of_file(root: Path, key: str, rules: SavingRules) -> ExportedText | None:
    """The bytes of the file with this key, without secrets according to the rules of saving; None if there is no such
    document."""
    try:
        data = inside.read(root, key, LARGEST_FILE).data
        text = decode(data, key)
    except (OSError, SpeckitError):
        return None
    own_hash = content_hash(text)
    if rules.secrets == "keep":
        return ExportedText(data, True, True, 0, own_hash)
    addresses = rules.secrets == "all"
    kept, found = secrets.redact(text, addresses=addresses)
    if not found:
        return ExportedText(data, True, True, 0, own_hash)
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    # Redact the original text where possible; UTF-16 and odd line endings are normalised.
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        own, _ = secrets.redact(data.decode("utf-8-sig"), addresses=addresses)
        if clean(own) == kept:  # keeps the line endings of the file
            return ExportedText(mark + own.encode(), True, True, len(found), own_hash)
    return ExportedText(mark + kept.encode(), True, True, len(found), own_hash)


def of_store(connection: Connection, key: str) -> ExportedText:
    """A Markdown document with the stored contents of a memory that never had a file or whose file is missing.

    An import makes it a file again if it came from one and a Markdown file may have its name.
    """
    [(memory, title, tier, kind, form, weight, made, mtime, body, extra, titled)] = rows(
        connection,
        "SELECT id, title, tier, context_type, memory_type, importance_weight, created_at, mtime_ns, body, extra, "
        "title_tokens <> '' FROM memories JOIN texts ON memory_id = id JOIN bodies USING (memory_id) WHERE key = ?",
        (key,),
    )
    tier = judgements.declared_tier(connection, memory) or tier
    triggers = rows(
        connection,
        "SELECT phrase FROM triggers WHERE memory_id = ? AND source = 'authored' ORDER BY ordinal",
        (memory,),
    )
    lines = [f"title: {quote_scalar(title)}"] * bool(titled)
    lines += [f"importance_tier: {tier}", f"context_type: {kind}", f"memory_type: {form}"]
    lines.append(f"importance_weight: {scalar_or_list(float(weight))}")
    if made != UNKNOWN_TIME:
        lines.append(f"created: {quote_scalar(datetime.fromtimestamp(made, UTC).isoformat())}")
    if triggers:
        lines.append("trigger_phrases:")
        lines += [f"  - {quote_scalar(phrase)}" for (phrase,) in triggers]
    lines += _links(connection, memory)
    lines += [f"{quote_scalar(name)}: {quote_scalar(told)}" for name, told in json.loads(extra).items()]
    text = "\n".join(["---", *lines, "---", body])
    is_file = mtime is not None and PurePosixPath(key).suffix.lower() in PLAIN
    return ExportedText(clean(text).encode(), is_file, False, 0, "")


def _links(connection: Connection, memory: int) -> list[str]:
    declared = rows(
        connection,
        "SELECT relation, target, strength, evidence, reverse FROM declared_links WHERE memory_id = ? ORDER BY ordinal",
        (memory,),
    )
    words: dict[str, list[str]] = {}
    for relation, target, strength, evidence, reverse in declared:
        word, item = declared_link(Link(Relation(relation), target, strength, evidence, bool(reverse)))
        words.setdefault(word, []).append(item)
    return ["causalLinks:", *(f"  {word}: [{', '.join(targets)}]" for word, targets in words.items())] if words else []
