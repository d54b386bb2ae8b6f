"""HTML as Markdown: what a reader of the page sees, and that no page takes long."""

from __future__ import annotations

from textwrap import dedent

import pytest

from speckit_memory.memory.parsing.formats import html
from speckit_memory.memory.parsing.limits import MOST_MARKUP
from speckit_memory.memory.parsing.markdown import anchors
from speckit_memory.memory.parsing.markdown.markdown import blocks

PAGE = dedent(
    """\
    <!DOCTYPE html>
    <html><head><title>Locks &mdash; Handbook</title>
    <META name="Description" content="How  locks work">
    <style>p { color: red }</style>
    <script>document.write("<p>never</p>")</script></head>
    <body><!-- a remark -->
    <section id="locks"><h1>Locks &amp; <code>leases</code></h1>
    <p>A lease is
    taken by <b>one</b>.<p>Unclosed.
    <ul><li>one<ol><li>inner</li></ol><li>two</ul>
    <pre>
    BEGIN;
      COMMIT;
    </pre>
    <table><tr><th>how<th>who</tr><tr><td>a|b</td><td><p>x</p></td></tr></table>
    <h2 id="bad id!">After</h2>
    # no heading<br>1 &lt; 2
    </section>
    <h1 id="end">End</h1>last
    </body></html>
    """
)


@pytest.mark.requirement("I1.formats")
def test_a_page_is_read_as_its_reader_sees_it() -> None:
    page = html.read(PAGE)

    assert (page.title, page.description) == ("Locks — Handbook", "How locks work")
    assert page.text == dedent(
        """\
        <!-- ANCHOR:locks -->

        # Locks & leases

        A lease is taken by one.

        Unclosed.

        - one
          1. inner
        - two

        ```
        BEGIN;
          COMMIT;
        ```

        | how | who |
        | --- | --- |
        | a\\|b | x |

        ## After

        \\# no heading
        1 < 2

        <!-- /ANCHOR:locks -->

        <!-- ANCHOR:end -->

        # End

        last

        <!-- /ANCHOR:end -->"""
    )


@pytest.mark.requirement("I1.formats")
def test_every_line_knows_the_line_of_the_file() -> None:
    page = html.read(PAGE)
    given = PAGE.split("\n")

    assert page.lines is not None
    assert len(page.lines) == page.text.count("\n") + 1
    for line, number in zip(page.text.split("\n"), page.lines, strict=True):
        for word in ("leases", "Unclosed", "inner", "COMMIT", "After", "heading", "last"):
            assert word not in line or word in given[number - 1]


@pytest.mark.requirement("I1.formats")
def test_ids_of_headings_name_sections() -> None:
    page = html.read(PAGE)
    sections, problems = anchors.find(page.text, "x.html")

    assert problems == []
    assert [section.id for section in sections] == ["locks", "end"]
    assert "## After" in sections[0].content(page.text)


@pytest.mark.requirement("I1.hostile")
@pytest.mark.parametrize(
    "unit",
    [
        "<", "<a", "<!--", "<![CDATA[", "<?", "<!", "</ ", '<a b="', "<a b='x\" ", "<script>", "<script></", "&a", "&#",
        "<a/", "<a b b b ", "<!-- -- -", "<p>hello", "<div>", "<title>&amp;", "<textarea>", "<ul><li>x", "</ul></li>x",
        "<table><tr><td>x", "<code>x</code>", "<pre>", "</pre>", "<h2 id=a>x", "<p a=b c=d>", "&#xD800;&#0;",
        "<!-- ANCHOR:a -->", "&lt;!-- ANCHOR:a --&gt;", "<pre>```\n",
    ],
)  # fmt: skip
def test_no_page_breaks_the_reader(unit: str) -> None:
    page = html.read(unit * (MOST_MARKUP // 10))

    assert page.lines is not None
    assert len(page.lines) == page.text.count("\n") + 1 or not page.text
    assert set(page.lines) <= {*range(1, unit.count("\n") * MOST_MARKUP // 10 + 2)}


@pytest.mark.requirement("I1.hostile")
def test_what_follows_too_many_tags_is_not_read() -> None:
    page = html.read("<p>word\n" * (MOST_MARKUP + 5))

    assert (page.limit, page.limit_line) == ("markup", MOST_MARKUP + 1)
    assert page.text.count("word") == MOST_MARKUP


def test_tags_that_a_page_speaks_of_hide_nothing() -> None:
    page = html.read("<p>&lt;!-- begins a comment,</p><p>&lt;pre&gt; shows code:</p><h2>After it</h2><p>Text.</p>")
    assert [block.heading for block in blocks(page.text) if block.kind == "heading"] == ["After it"]
