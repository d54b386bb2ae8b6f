"""Documents of other formats, from the console."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call

RST = "Handbook\n========\n\n.. _leases:\n\nLeases\n------\n\n.. include:: secret.txt\n\nA zebra takes the lease.\n"
HTML = "<title>t</title>\n<h1 id='top'>Pelican page</h1>\n<script>hidden()</script><p>The pelican flies.\n"


@pytest.mark.requirement("I1.formats")
def test_formats_are_taken_when_the_workspace_asks_and_answers_have_their_lines(tmp_path: Path) -> None:
    docs, config = tmp_path / "docs", tmp_path / ".speckit" / "config.yaml"
    docs.mkdir()
    config.parent.mkdir()
    (docs / "a.md").write_text("# A\n\nMarkdown.\n")
    (docs / "b.rst").write_text(RST)
    (docs / "c.html").write_text(HTML)

    before = call(tmp_path, ["index", "docs", "--json"]).json
    config.write_text("sources:\n  formats: [rst, html]\n")
    after = call(tmp_path, ["index", "docs", "--json"]).json

    assert before["created"] == ["docs/a.md"]
    assert [entry["key"] for entry in before["ignored"]] == ["docs/b.rst", "docs/c.html"]
    assert after["created"] == ["docs/b.rst", "docs/c.html"]
    assert after["problems"] == []
    [zebra, *_] = call(tmp_path, ["search", "zebra lease", "--json"]).json["results"]
    [pelican, *_] = call(tmp_path, ["search", "pelican flies", "--json"]).json["results"]
    assert (zebra["key"], zebra["title"]) == ("docs/b.rst", "Handbook")
    assert (pelican["key"], pelican["title"], pelican["lines"]) == ("docs/c.html", "Pelican page", [2, 3])
    assert call(tmp_path, ["search", "hidden", "--json", "--all"]).json.get("results", []) != [pelican]


def test_a_format_that_is_not_known_is_refused_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext\n")
    (tmp_path / ".speckit").mkdir()
    (tmp_path / ".speckit" / "config.yaml").write_text("sources: {formats: [rst, pdf]}\n")
    ran = call(tmp_path, ["index", "."])

    assert ran.status != 0
    assert "config.yaml:1:26" in ran.err
    assert "one of rst, html; found 'pdf'" in ran.err
