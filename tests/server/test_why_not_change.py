"""`search --why-not`: the smallest change that brings a memory in works when it is pasted back."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from isolated.distributions import installed, step_source

from speckit_memory.engine import Memory
from tests.server.doors import Ran, call

FLAG = (
    'flags:\n  SPECKIT_WORDS: {state: "off", group: D, owner: docs, since: 2026-11-22, expires: 2027-01-31, '
    "evidence: nDCG@10 not worse}\n"
)
BM25 = "extends: none\ncandidates:\n  channels:\n    - {use: bm25%s}\nfusion: [{use: single, scale: bm25}]\n"
PIPELINES = {
    "words.yaml": BM25 % "",
    "three.yaml": BM25 % ", limit: 3",
    "similar.yaml": (
        "extends: none\ncandidates:\n  channels:\n    - {use: vector, min_similarity: 0.5}\n"
        "fusion: [{use: single, scale: cosine}]\n"
    ),
    "lowfloor.yaml": (BM25 % "") + "rerank: [{use: relevance_floor, channel: bm25, min_score: 0.9}]\n",
    "flagged.yaml": (
        "extends: none\ncandidates:\n  channels:\n    - {use: trigger}\n    - {use: bm25, flag: SPECKIT_WORDS}\n"
        "fusion: [{use: z_score}]\n"
    ),
    "routed.yaml": (
        "extends: none\ncandidates:\n  understand:\n    - {use: complexity}\n"
        "    - use: router\n      simple: {channels: [graph, degree]}\n      moderate: {channels: [graph, degree]}\n"
        "      complex: {channels: [graph, degree]}\n"
        "  channels:\n    - {use: graph}\n    - {use: degree}\n    - {use: bm25}\n"
        "fusion: [{use: z_score}]\n"
    ),
    "mixed.yaml": (
        "extends: none\ncandidates:\n  channels:\n    - {use: bm25, fields: {triggers: 0, title: 0}}\n"
        "    - {use: trigger}\nfusion: [{use: rrf, convergence_bonus: 0.0, weights: {bm25: 1.0, trigger: 0.5}}]\n"
    ),
}
NOTES = 12


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Notes that say less and less of the quokka, one in another folder, a copy, and two that no search finds."""
    root = tmp_path_factory.mktemp("herd")
    notes = root / "notes"
    notes.mkdir()
    for place in range(NOTES):
        grazing, grass = "The quokka grazes. " * (NOTES - place), "Grass grows in the valley. " * place
        (notes / f"{place:02}.md").write_text(f"# Herd {place}\n\n{grazing}A wombat digs burrow {place}. {grass}\n")
    (notes / "trigger.md").write_text("---\ntrigger_phrases: [night watch]\n---\n# Vigil\n\nWho stays awake.\n")
    (notes / "gone.md").write_text("---\nimportance_tier: deprecated\n---\n# Quokka of old\n\nThe quokka left.\n")
    (notes / "past.md").write_text("# Quokka of the day\n\nThe quokka grazes today.\n")
    write_file(root / "far" / "island.md", "# Quokka\n\nThe quokka lives on an island.\n")
    for name, text in PIPELINES.items():
        (root / name).write_text(text)
    write_file(root / ".speckit" / "flags.yaml", FLAG)
    assert call(root, ["index", "notes", "far"]).status == 0
    with sqlite3.connect(root / "memory.db") as store:
        assert store.execute("UPDATE memories SET expires_at = 1.0 WHERE key = 'notes/past.md'").rowcount == 1
    return root


def asked(root: Path, key: str, *arguments: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The document of a search that asks for a memory."""
    document: dict[str, Any] = call(root, ["search", *arguments, "--json", "--why-not", key], env=env).json
    return document


def keys(document: dict[str, Any]) -> list[str]:
    return [row["key"] for row in document["results"]]


def check(root: Path, key: str, *arguments: str) -> dict[str, Any]:
    """What is told of a lost memory, after it was typed, and has brought the memory in as told."""
    told = asked(root, key, *arguments)
    found: dict[str, Any] = told["why_not_change"]
    change = found["change"]
    assert change is not None, found["sentence"]
    more = list(change["arguments"])
    if change["file"]:
        (root / "pasted.yaml").write_text(change["file"])
        more += ["--pipeline", "pasted.yaml"]
    again = asked(root, key, *arguments, *more, env=change["environment"])
    assert keys(again).index(key) + 1 == found["rank"]
    assert [name for name in keys(told) if name not in keys(again)] == found["leaves"]
    assert again["why_not_change"] is None
    assert 0 < found["runs"] <= 60
    assert " ".join(change["arguments"]) in found["sentence"].replace("''", "") or not change["arguments"][1]
    return found


@pytest.mark.requirement("P8", "P8.change")
@pytest.mark.parametrize(
    ("key", "arguments", "name", "value"),
    [
        ("notes/04.md", "--pipeline words.yaml --limit 5", "limit", None),
        ("notes/04.md", "--pipeline three.yaml", "bm25.limit", None),
        ("notes/08.md", "--pipeline similar.yaml --limit 50", "vector.min_similarity", None),
        ("notes/08.md", "--pipeline lowfloor.yaml --limit 50", "relevance_floor.min_score", None),
        ("notes/08.md", "--pipeline flagged.yaml --limit 50", "SPECKIT_WORDS", True),
        ("notes/04.md", "--folder far", "folder", ""),
    ],
    ids=["limit", "channel limit", "similarity", "filter", "flag", "folder"],
)
def test_what_brings_a_memory_in_is_named_and_works(
    herd: Path, key: str, arguments: str, name: str, value: object
) -> None:
    change = check(herd, key, "quokka", *arguments.split())["change"]
    assert change["name"] == name
    assert value is None or change["to"] == value


@pytest.mark.requirement("P8.change")
def test_no_nearer_number_of_two_digits_brings_it_in(herd: Path) -> None:
    question = ("quokka", "--pipeline", "similar.yaml", "--limit", "50")
    change = check(herd, "notes/08.md", *question)["change"]

    nearer = asked(herd, "notes/08.md", *question, "--set", f"vector.min_similarity={change['to'] + 0.01:.2f}")

    assert (change["from"], change["arguments"]) == (0.5, ["--set", f"vector.min_similarity={change['to']}"])
    assert change["size"] == pytest.approx((0.5 - change["to"]) / 0.5, abs=1e-4)
    assert "notes/08.md" not in keys(nearer)


@pytest.mark.requirement("P8.change")
def test_a_weight_is_named_where_it_is_the_smallest_change(herd: Path) -> None:
    """The trigger counts little: eleven places up by the limit, or a larger weight."""
    found = check(herd, "notes/trigger.md", "quokka grazes night watch", "--pipeline", "mixed.yaml", "--limit", "3")

    assert found["change"]["name"].startswith("rrf.weights.")
    assert found["change"]["size"] < 1
    assert len(found["leaves"]) == 1


@pytest.mark.requirement("P8.change")
def test_a_step_without_a_value_that_helps_is_left_out_by_a_file(herd: Path) -> None:
    found = check(herd, "notes/08.md", "quokka", "--pipeline", "routed.yaml", "--limit", "50")

    assert found["change"]["kind"] == "step"


@pytest.mark.requirement("P8.change")
@pytest.mark.parametrize(
    ("key", "question", "words"),
    [
        ("notes/gone.md", ("quokka",), "it is deprecated, and no search finds such memories"),
        ("notes/past.md", ("quokka",), "it has expired or was archived, and no search finds such memories; reading"),
        ("notes/04.md", ('"quokka lives"',), 'it does not hold "quokka lives"; only other words'),
        ("notes/04.md", ("quokka -herd",), 'it holds "herd", which the query leaves out; only other words'),
    ],
)
def test_what_no_value_decides_is_said_without_a_search(
    herd: Path, key: str, question: tuple[str, ...], words: str
) -> None:
    found = asked(herd, key, *question)["why_not_change"]

    assert found["sentence"].startswith(f"No change of a value brings it in: {words}")
    assert (found["change"], found["runs"], found["tried"]) == (None, 0, [])


@pytest.mark.requirement("P8.change")
def test_where_two_changes_were_needed_it_is_told_how_near_one_comes(herd: Path) -> None:
    found = asked(herd, "notes/08.md", "quokka", "--pipeline", "similar.yaml", "--limit", "2")["why_not_change"]

    assert found["change"] is None
    assert found["complete"]
    assert found["nearest"]["name"] == "vector.min_similarity"
    assert found["sentence"].startswith(f"No single change brings it in: tried {len(found['tried'])} values")
    assert "Nearest came --set vector.min_similarity=" in found["sentence"]


def test_a_reader_is_told_it_below_the_reason(herd: Path) -> None:
    asked = "search quokka --pipeline three.yaml --limit 10 --why-not notes/04.md"
    shown = call(herd, asked.split()).out
    told = " ".join(shown.partition("Why not notes/04.md?")[2].split())

    assert "beyond its limit of 3. The smallest single change that brings it in: --set bm25.limit=" in told
    assert "Verified by searching (" in told


@pytest.mark.requirement("P8.change")
def test_what_is_tried_counts_as_no_use_and_changes_no_table(herd: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(herd, tmp_path / "herd"))
    with Memory.open(root / "memory.db", root / "words.yaml", root=root, environ={}) as memory:
        result = memory.search("quokka", limit=3, session="s")
        before = memory.session.database.reader().execute("SELECT * FROM sqlite_master").fetchall(), dump(root)
        change = memory.explain.smallest_change(result, "notes/06.md")
        again = memory.search("quokka", limit=3, session="s", now=result.outcome.query.now)

        assert change is not None
        assert change.change is not None
        assert change.runs > 1
        assert (
            memory.session.database.reader().execute("SELECT * FROM sqlite_master").fetchall(),
            dump(root),
        ) == before
        assert [(row.id, row.score) for row in again.results] == [(row.id, row.score) for row in result.results]
        assert memory.explain.smallest_change(result, result.results[0].id) is None


def dump(root: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every ordinary table of the store."""
    with sqlite3.connect(root / "memory.db") as store:
        names = store.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        return {name: store.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names.fetchall()}


def test_a_pipeline_that_is_called_resume_is_explained_by_itself(herd: Path) -> None:
    """The mode of that name answers by a preset of its own; the name alone decides nothing."""
    (herd / "mine.yaml").write_text("pipeline: resume\n" + PIPELINES["three.yaml"])

    told = asked(herd, "notes/04.md", "quokka", "--pipeline", "mine.yaml")

    assert told["pipeline"]["name"] == "resume"
    assert "bm25 has it at rank" in told["why_not"]
    assert told["why_not_change"]["change"]["name"] == "bm25.limit"


@pytest.mark.parametrize("name", ["", " ", "../../etc/passwd", "0", "9" * 40, "-1", "notes", "x" * 5000, "\x1b[31m"])
def test_names_of_nothing_are_refused(herd: Path, name: str) -> None:
    ran = call(herd, ["search", "quokka", "--json", f"--why-not={name}"])

    if name:
        assert (ran.status, ran.json["error"]["code"]) == (2, "E080")
    else:
        assert "why_not" not in ran.json


@pytest.mark.requirement("P8.change")
@pytest.mark.usefixtures("processes")
def test_where_the_time_was_over_it_is_the_smallest_found_so_far(herd: Path, tmp_path: Path) -> None:
    work = "time.sleep(0.25)\nreturn np.zeros(len(pool.candidates.parents))"
    installed(tmp_path, "slow", step_source("slow", "SIGNAL", work))
    file = PIPELINES["three.yaml"].partition("fusion:")[0] + "fusion: [{use: rrf, normalise: min_max}, {use: slow}]\n"
    (herd / "slow.yaml").write_text(file)
    paths = {"PYTHONPATH": str(tmp_path), "SPECKIT_EXTENSIONS": "trusted"}

    found = asked(herd, "notes/04.md", "quokka", "--pipeline", "slow.yaml", "--deadline-ms", "0", env=paths)

    change = found["why_not_change"]
    assert (change["complete"], change["change"]["name"]) == (False, "bm25.limit")
    assert change["sentence"].startswith("The smallest single change found so far that brings it in: --set bm25.limit=")
    assert "the search for a smaller one ended there" in change["sentence"]


def refused(root: Path, name: str) -> Ran:
    ran = call(root, ["search", "quokka", "--json", f"--why-not={name}"])
    assert (ran.status, ran.json["error"]["code"]) == (2, "E080")
    return ran


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("island", "far/island.md"),
        ("trigger", "notes/trigger.md"),
        ("Vigil", "notes/trigger.md"),
        ("notes/triger.md", "notes/trigger.md"),
        ("elsewhere/past.md", "notes/past.md"),
        ("ISLAND.MD", "far/island.md"),
    ],
)
def test_a_name_without_folder_or_ending_gets_the_key_that_was_meant(herd: Path, typed: str, key: str) -> None:
    error = refused(herd, typed).json["error"]

    assert f"did you mean '{key}'" in error["message"]
    assert error["actions"][0] == f"search with --why-not {key}"
    assert call(herd, ["search", "quokka", "--json", "--why-not", key]).status == 0


def test_of_several_near_keys_at_most_three_are_named(herd: Path) -> None:
    error = refused(herd, "herd").json["error"]

    assert len(error["actions"]) == 3
    assert error["message"].count("notes/") == 3
    assert "' or '" in error["message"]
