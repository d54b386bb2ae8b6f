"""Documents that people call by their kind and number, through the installed command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call

DECISIONS = ("Use Postgres", "Session cookies", "Stripe checkout", "Rate limit at nginx", "Weekly releases")
FEATURES = ("cart", "search")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("numbered")
    texts = {
        f"docs/adr/{number:04d}-{title.lower().replace(' ', '-')}.md": f"# {title}\n\nAccepted, see ADR-0001.\n"
        for number, title in enumerate(DECISIONS, start=1)
    }
    texts["docs/adr/README.md"] = "# Decisions\n\nEvery ADR has 3 parts and 4 readers. An ADR is short.\n"
    for number, name in enumerate(FEATURES, start=1):
        for kind in ("spec", "plan", "tasks"):
            texts[f"specs/{number:03d}-{name}/{kind}.md"] = f"# The {kind}: {name}\n\nSpec 1, spec 2, spec 3.\n"
    for key, text in texts.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text(text)
    assert call(root, ["index", "."]).status == 0
    return root


def found(root: Path, query: str, count: int = 1) -> list[str]:
    ran = call(root, ["search", "--json", "--limit", str(count), "--", query]).ok()
    return [row["key"] for row in ran.json["results"]]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    "query",
    ["ADR 4", "ADR-4", "adr-004", "ADR 0004", "see ADR-0004", "docs/adr/0004", "what does ADR 4 say on limits?"],
)
def test_a_word_and_a_number_find_the_document_that_is_called_so(project: Path, query: str) -> None:
    assert found(project, query) == ["docs/adr/0004-rate-limit-at-nginx.md"]


@pytest.mark.requirement("C3")
def test_all_documents_of_a_numbered_folder_come_before_others(project: Path) -> None:
    assert set(found(project, "spec 2", 3)) == {f"specs/002-search/{kind}.md" for kind in ("spec", "plan", "tasks")}
