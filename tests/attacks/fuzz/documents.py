"""Documents: Markdown, front matter and bytes of all kinds become memories, or are refused with a reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.errors.codes import CODES
from speckit_memory.memory.parsing.markdown import anchors
from speckit_memory.memory.parsing.markdown.chunks import split
from tests.attacks.fuzz.shared import NOTES, damaged, folder, give_up_absent, opened
from tests.attacks.fuzz.target import CORPUS, Target, same

TOKENS = (
    b"\n", b"\n\n", b"\r\n", b"\r", b"# ", b"## Two\n", b"###### six ######\n", b"===\n", b"---\n", b"```",
    b"~~~~\n", b"```python\n", b"| a | b |\n|---|---|\n| c |\n", b"- [ ] task\n", b"> ", b">>> ", b"    ", b"\t",
    b"<!-- ANCHOR:a -->\n", b"<!-- /ANCHOR:a -->\n", b"<!-- ANCHOR:", b"<!--", b"-->", b"<div>", b"[a](b.md)",
    b"[[a]]", b"![x](../../y.md)", b"[a]: <b>\n", b"`user_id`", b"**", b"__", b"REQ-006", b"OAuth2Token", b"v1.2.3",
    b"a/b/c.py", b"--dry-run", b"c++", b"\\", b"&amp;", b"&#0;", b"&#xD800;", b"\x00", b"\x1b[31m", b"title: ",
    b"trigger_phrases: [a, b]\n", b"importance_tier: critical\n", b"importance_weight: .inf\n", b"causalLinks:\n",
    b"  supports: [a.md]\n", b"created: 9999-99-99\n", b"&a ", b"*a", b"<<: *a\n", b"!!python/object:x ", b"? ",
    b": ", b"%YAML 1.1\n", b"...\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xed\xa0\x80", "é".encode(),
    "e\u0301".encode(), "検索の設計".encode(), "\u2028".encode(), "\u0085".encode(), "\ufeff".encode(),
    "\u202e".encode(), "ﷺ".encode(), "👨\u200d👩\u200d👧".encode(), b"word " * 300,
    b"x" * 3000, b"a." * 500, b"Sentence one. " * 200,
)  # fmt: skip
TABLES = (
    "memories",
    "chunks",
    "memory_fts",
    "surface_fts",
    "texts",
    "triggers",
    "causal_edges",
    "declared_links",
    "chunk_tokens",
)
MOST_WORDS = 6
"""Words that the analyser makes of a character at most, on the average: a name is kept whole and in parts."""


@cache
def store() -> Memory:
    """A store that every document comes to and leaves again."""
    return opened(folder(), strict=True)


def check(data: bytes, tally: Tally) -> None:
    """Indexes a document, again, and not any more."""
    try:
        _come_and_gone(store(), data)
    except BaseException:
        store.cache_clear()  # what is left of a finding must not meet the next document
        raise
    tally.tried()


def _come_and_gone(memory: Memory, data: bytes) -> None:
    root = memory.session.settings.root
    file = Path(root, "notes", "one.md")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    report = memory.index([file.parent])
    problems = [*report.failures, *report.problems]
    assert all(problem.code in CODES and problem.code != "E199" for problem in problems), problems
    kept = _chunks(memory)
    if report.created:
        _well_cut(memory)
        assert len(kept) <= 2 + len(data) // 2
        again = memory.index([file.parent], force=True)
        assert not again.absent and not again.created
        assert [row[2:] for row in _chunks(memory)] == [row[2:] for row in kept]
        record, _ = memory.list()
        found = memory.search(f"{record[0].title} x", deadline_ms=None, content=True)
        assert not found.notes.degraded
    else:
        assert problems or report.ignored
        assert not kept
    assert memory.session.database.check() == []
    file.unlink()
    gone = memory.index([file.parent])
    assert len(gone.absent) == bool(kept)
    assert not memory.list()[0]
    give_up_absent(memory)
    connection = memory.session.database.reader()
    left = {table: connection.execute(f"SELECT count(*) FROM {table}").get for table in TABLES}
    assert not any(left.values()), left
    assert memory.session.database.check() == []


def _chunks(memory: Memory) -> list[tuple[object, ...]]:
    return list(
        memory.session.database.reader().execute("SELECT id, memory_id, ordinal, text FROM chunks ORDER BY ordinal, id")
    )


def _well_cut(memory: Memory) -> None:
    """The passages are the text, cut in order; words and passages grow no faster than the text."""
    [record] = memory.list()[0]
    text = memory.session.view().passages.body(record.id)
    sections, _ = anchors.find(text, "note.md")
    passages = split(text, sections)
    assert "".join("".join(passage.text for passage in passages).split()) == "".join(text.split())
    assert len(memory.models.analyser.tokens(text)) <= 10 + MOST_WORDS * len(text)


def _seeds() -> list[bytes]:
    files = sorted((CORPUS / "documents").glob("*.md"))
    return [file.read_bytes() for file in files] + [note.encode() for note in NOTES.values()]


BUILT = st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join)
FRONT = st.lists(st.sampled_from(TOKENS), max_size=10).map(lambda lines: b"---\n" + b"".join(lines) + b"\n---\nText.\n")
TARGET = Target(
    "documents",
    st.one_of(BUILT, FRONT, damaged(st.deferred(lambda: st.sampled_from(_seeds())), TOKENS), st.binary(max_size=60)),
    check,
    ".md",
    "documents",
    same,
    same,
)
