"""Links of front matter that are changed keep whatever the change does not say (features I3 and M7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.link_edit import edit_links
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.store.records import Link, Relation

OLD = Link(Relation.SUPERSEDES, "old.md", 1.0, "supersedes: old.md")
LISTED = """---
title: New
causalLinks:  # of the file
  supersedes: [a.md]  # why
  # between
  caused_by:
    - b.md  # first
    # of c
    - c.md

tier: normal
---
Text.
"""


def added(text: str, *links: Link) -> str:
    return edit_links(text, lambda _: False, links, "new.md")


@pytest.mark.requirement("I3", "M7.declared")
@pytest.mark.parametrize(
    ("text", "link", "after"),
    [
        ("Text.\n", OLD, "---\ncausalLinks:\n  supersedes: [old.md]\n---\nText.\n"),
        (LISTED, OLD, LISTED.replace("[a.md]", "[a.md, old.md]")),
        (
            LISTED,
            Link(Relation.CAUSED, "d: e.md", 0.5, "caused_by: d: e.md", reverse=True),
            LISTED.replace("    - c.md\n", '    - c.md\n    - {target: "d: e.md", strength: 0.5}\n'),
        ),
        (
            LISTED,
            Link(Relation.SUPPORTS, "007", 1.0, "yes"),
            LISTED.replace("- c.md\n", '- c.md\n  supports: [{target: "007", evidence: "yes"}]\n'),
        ),
        (
            "---\ncausalLinks: {supersedes: a.md} # x\n---\n", OLD,
            "---\ncausalLinks: {supersedes: [a.md, old.md]} # x\n---\n",
        ),
        ("---\ncausalLinks:\n---\n", OLD, "---\ncausalLinks: {supersedes: [old.md]}\n---\n"),
        (
            "---\r\ntitle: New\r\n---\r\nText.\r\n", OLD,
            "---\r\ntitle: New\r\ncausalLinks:\r\n  supersedes: [old.md]\r\n---\r\nText.\r\n",
        ),
    ],
    ids=["no front matter", "a list in one line", "a list in lines", "another word", "one line", "nothing yet", "crlf"],
)  # fmt: skip
def test_a_link_is_added_and_taken_out_in_place(text: str, link: Link, after: str) -> None:
    assert added(text, link) == after
    assert added(after, link) == after
    without = edit_links(after, lambda other: other == link, [], "new.md")
    assert front_matter.parse(clean(without), "")[0].links.keys() == front_matter.parse(clean(text), "")[0].links.keys()
    assert without == text or "causalLinks: {" in after


@pytest.mark.requirement("M7.declared")
@pytest.mark.parametrize(
    "text",
    [
        "---\ncausalLinks: 7\n---\n", "---\ncausalLinks: {suprsedes: a.md}\n---\n", "---\n{title: a}\n---\n",
        "+++\ntitle = 'a'\n+++\nText.\n",
    ],
)  # fmt: skip
def test_front_matter_that_cannot_be_edited_for_certain_is_refused(text: str) -> None:
    with pytest.raises(SpeckitError, match="E101"):
        added(text, OLD)


def test_a_line_that_cannot_be_read_stays_where_a_link_is_added() -> None:
    assert added("---\ntitle: Re: x\n---\nText.\n", OLD).startswith("---\ntitle: Re: x\ncausalLinks:\n")


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=30)
LINKS = st.builds(
    lambda relation, target, strength, evidence: Link(
        relation, target, round(strength, 3), evidence or f"{relation}: {target}"
    ),
    st.sampled_from(Relation), TEXTS.map(str.strip).filter(bool), st.floats(0, 1), TEXTS.map(str.strip),
)  # fmt: skip


@pytest.mark.requirement("M7.declared")
@given(links=st.lists(LINKS, max_size=5, unique_by=lambda link: (link.relation, link.target)))
def test_whatever_links_say_is_read_as_it_was_written_or_refused(links: list[Link]) -> None:
    for text in ("Text.\n", LISTED):
        before = front_matter.parse(text, "")[0].links.keys()
        try:
            after = added(text, *links)
        except SpeckitError:
            continue
        assert front_matter.parse(clean(after), "")[0].links.keys() == before | set(links)
        assert edit_links(after, lambda link, kept=before: link not in kept, [], "") == text  # type: ignore[misc]
