"""What documents say of themselves is found through the console script, and never shown for the text."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.server.doors import call

HEADS = {
    "yaml": "---\nauthors:\n  - Ada Quill\nstatus: rejected\ncreated: 2024-03-05\n---\n{title}",
    "toml": '+++\nowner = "Ada Quill"\nstate = "rejected"\ndate = 2024-03-05\n+++\n{title}',
    "lines": "Author: Ada Quill <ada@example.org>\nStatus: Rejected\nCreated: 05-Mar-2024\n\n{title}",
    "list": "{title}* Status: rejected\n* Deciders: Ada Quill, Bo Lind\n* Date: March 5, 2024\n\n",
    "bold": "{title}**Status:** rejected  \n**Owner:** Ada Quill  \n**Date:** 2024/03/05\n\n",
    "nested": "{title}- **Status**: rejected\n- **Authors**:\n  - Ada Quill\n- **Created**: 5 March 2024\n\n",
    "table": "{title}| Author | Ada Quill |\n|---|---|\n| Status | rejected |\n| Created | 2024-03-05 |\n\n",
    "sections": "{title}Date: 2024-03-05\n\nAuthor: Ada Quill\n\n## Status\n\nRejected\n\n## Context\n\n",
}
TEXT = "The quokka cache keeps entries close to the reader.\n"


@pytest.fixture
def declaring(tmp_path: Path) -> Path:
    """Two documents of each form, with one text; those of the second say something else."""
    for form, head in HEADS.items():
        other = head.replace("Ada Quill", "Cy Moss").replace("ejected", "eplaced").replace("2024", "2019")
        (tmp_path / form).mkdir()
        for name, said in (("mine", head), ("other", other)):
            (tmp_path / form / f"{name}.md").write_text(said.format(title=f"# The {form} cache\n\n") + TEXT)
    assert call(tmp_path, ["index", "."]).status == 0
    return tmp_path


@pytest.mark.requirement("I1.declared")
def test_documents_are_found_by_what_they_say_of_themselves(declaring: Path) -> None:
    for query in (
        "proposals by Ada Quill", "status rejected", "created 2024-03-05", "created in March 2024",
        "created on 5 March 2024",
    ):  # fmt: skip
        found = [row["key"] for row in call(declaring, ["search", query, "--limit", "16", "--json"]).json["results"]]
        assert len(found) == 2 * len(HEADS)
        assert not [form for form in HEADS if found.index(f"{form}/mine.md") > found.index(f"{form}/other.md")], query


@pytest.mark.requirement("I1.declared")
def test_a_document_is_as_old_as_it_says(declaring: Path) -> None:
    assert call(declaring, ["stats", "--json"]).json["oldest"] == datetime(2019, 3, 5, tzinfo=UTC).isoformat()
    assert call(declaring, ["stats", "--json"]).json["newest"] == datetime(2024, 3, 5, tzinfo=UTC).isoformat()


@pytest.mark.requirement("I1.declared")
def test_an_excerpt_leaves_the_head_out_unless_nothing_else_holds_the_words(declaring: Path) -> None:
    rows = call(declaring, ["search", "quokka cache", "--limit", "16", "--json"]).json["results"]
    assert {row["snippet"].partition("\n\n")[2] or row["snippet"] for row in rows} == {TEXT.strip()}

    lind = call(declaring, ["search", "Bo Lind", "--limit", "1", "--json"]).json["results"][0]
    assert (lind["key"], "Bo Lind" in lind["snippet"]) == ("list/mine.md", True)


@pytest.mark.requirement("I1.declared")
def test_prose_that_begins_with_a_colon_is_text(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("Warning: the quokka bites.\nAlso: it runs.\n\nBelow is more of it.\n")
    assert call(tmp_path, ["index", "."]).status == 0

    assert "Warning" in call(tmp_path, ["search", "quokka below", "--json"]).json["results"][0]["snippet"]
