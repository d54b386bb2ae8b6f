"""The documentation is executed: snippets run, references are current, links lead somewhere."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest
from files import write_file

from speckit_memory.config.workspace.settings import workspace_root
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import Where
from speckit_memory.memory.indexing import Analyser
from speckit_memory.memory.indexing.documents import build
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.parsing.declarations.causal_links import unresolved
from tests.server.doors import script

ROOT = workspace_root(Path(__file__).parent)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(language: str) -> list[tuple[str, str]]:
    fence = re.compile(rf"```{language}\n(.*?)```", re.DOTALL)
    return [(page.name, text) for page in PAGES for text in fence.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "text"), [block for block in blocks("yaml") if block[1].startswith("pipeline:")])
def test_every_pipeline_in_the_documentation_is_without_problems(page: str, text: str, tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", text)
    assert [str(problem) for problem in pipelines.check(str(file), {})] == []


def commands() -> list[str]:
    lines = [line for _, text in blocks("sh") for line in text.splitlines() if "speckit-memory" in line]
    return [re.sub(r"\s+#.*", "", line) for line in lines if line.startswith(".venv/bin/speckit-memory")]


@pytest.mark.parametrize("line", commands())
@pytest.mark.usefixtures("processes")
def test_every_command_in_the_documentation_is_accepted(line: str, tmp_path: Path) -> None:
    write_file(tmp_path / "docs" / "note.md", "# Rank fusion\n\nWe fuse by score.\n")
    (tmp_path / "my-pipeline.yaml").write_text("pipeline: mine\n", encoding="utf-8")
    dataset = tmp_path / "DIR"
    (dataset / "qrels").mkdir(parents=True)
    (dataset / "corpus.jsonl").write_text('{"_id": "a", "title": "Rank", "text": "fusion", "metadata": {}}\n')
    (dataset / "queries.jsonl").write_text('{"_id": "q", "text": "rank", "metadata": {}}\n')
    (dataset / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    start = script(os.environ)
    subprocess.run([*start, "index", "docs"], cwd=tmp_path, check=True, capture_output=True)

    done = subprocess.run([*start, *shlex.split(line)[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_decision_stands_in_the_index_with_its_title_and_every_number_is_accounted_for() -> None:
    folder = ROOT / "docs" / "decisions"
    rows = re.findall(
        r"^\| (?:\[(\d{4})\]\((.+?)\)|(\d{4})) \| (.*?) \|", (folder / "README.md").read_text(), re.MULTILINE
    )
    titles = {page.name: re.findall(r"^# (.+)$", page.read_text(), re.MULTILINE)[0] for page in folder.glob("0*.md")}

    assert {file: title for _, file, _, title in rows if file} == titles
    numbers = [number or unused for number, _, unused, _ in rows]
    assert numbers == [f"{number:04}" for number in range(1, len(rows) + 1)]
    assert all(file.startswith(number) for number, file, _, _ in rows if file)


def test_reference_pages_are_what_the_code_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["docs.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "scripts/docs.py"), run_name="__main__")

    assert (capsys.readouterr().err, ended.value.code) == ("", 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.name)
def test_every_page_is_a_memory_without_problems(page: Path) -> None:
    key = str(page.relative_to(ROOT))
    keys = {str(other.relative_to(ROOT)) for other in ROOT.glob("docs/**/*.md")}

    targets: list[tuple[str, Where]] = []

    document, problems = build(Source(key, page.read_text(encoding="utf-8")), Analyser(), targets=targets)

    assert [str(problem) for problem in (*problems, *unresolved(targets, keys))] == []
    assert document.triggers


def test_every_promise_names_the_tests_that_attack_it() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = text.partition("## What is promised")[2].partition("## Where it ends")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ") and "attacked by" not in line]
    cited = [re.findall(r"`([^`]+)`", row[-2]) for row in rows]

    assert len(rows) > 10
    assert all(cited)
    for name in {name for names in cited for name in names if name.endswith(".py")}:
        assert (ROOT / name).is_file(), name
