"""What every row of an answer must be, asked as an agent asks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import anyio
import pytest
from files import write_file
from mcp import Client

from tests.server.doors import call, connected, with_client

NOTES = {
    "backup/wal.md": "# Backups in WAL mode\n\nA backup of the SQLite file copies the write-ahead log as well.\n",
    "backup/tape.md": "# Tapes\n\nEvery backup goes to a tape in the cellar.\n",
    "backup/cellar.md": "# The cellar\n\nThe cellar is dry. Wine is kept there next to the tapes.\n",
    "store/sqlite.md": "# One file\n\nThe store is one sqlite file, and every index lives inside it.\n",
    "store/vacuum.md": "# Vacuum\n\nSQLite gives space back when it is told to vacuum.\n",
    "people/party.md": "# Summer party\n\nThere will be cake, music and a tombola.\n",
    "resume/state.md": "# State\n\n<!-- ANCHOR:state -->\nThe backup is half done.\n<!-- /ANCHOR:state -->\n",
}
RULES = {
    f"rules/{number:02}.md": f"---\nimportance_tier: constitutional\n---\n# Rule {number}\n\nNever push on {day}.\n"
    for number, day in enumerate(
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "Easter", "Christmas", "Whitsun",
         "leap days", "birthdays"), start=1,
    )
}  # fmt: skip


def asked(root: Path, tool: str, more: Mapping[str, str] = {}, /, **arguments: Any) -> dict[str, Any]:
    """The structured content of one answer."""

    async def work(client: Client) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.structured_content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    return with_client(root, work, **more)


def keys(answer: dict[str, Any]) -> list[str]:
    return [row["key"] for row in answer["data"]["results"]]


def written(root: Path, notes: Mapping[str, str]) -> Path:
    for name, text in notes.items():
        write_file(root / name, text)
    call(root, ["index", "."]).ok()
    return root


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("plain"), NOTES)


QUOKKA = "# Quokka cache\n\n" + "\n\n".join(
    f"## Part {part}\n\n<!-- ANCHOR:part-{part} -->\n"
    + " ".join(f"Sentence {part}.{n} of the quokka cache says what part {part} does." for n in range(1, 21))
    + f"\n<!-- /ANCHOR:part-{part} -->"
    for part in range(1, 6)
)  # fmt: skip
"""About 9,000 characters, seven passages."""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    others = {f"cache/{n}.md": f"# Cache {n}\n\n" + f"A quokka cache of kind {n}. " * 150 for n in range(1, 5)}
    return written(tmp_path_factory.mktemp("long"), {**NOTES, "cache/quokka.md": QUOKKA, **others})


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("ruled"), NOTES | RULES)


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("pipeline", ["default", "catalogue", "bm25", "fts5", "rrf", "vector"])
def test_every_row_is_about_every_concept(plain: Path, pipeline: str) -> None:
    found = asked(plain, "memory_search", {"SPECKIT_PIPELINE": pipeline}, concepts=["SQLite", "backup"], limit=25)

    assert keys(found) == ["backup/wal.md"]


@pytest.mark.requirement("C1")
def test_concepts_that_nothing_unites_find_nothing_and_say_so(plain: Path) -> None:
    found = asked(plain, "memory_search", concepts=["tombola", "vacuum"])

    assert keys(found) == []
    assert found["hints"][0] == "no memory is about all of 'tombola', 'vacuum'"


@pytest.mark.requirement("C1")
def test_rules_of_the_house_come_with_concepts_too(ruled: Path) -> None:
    found = keys(asked(ruled, "memory_search", concepts=["SQLite", "backup"], limit=25))

    assert found[5] == "backup/wal.md"
    assert [key for key in found if not key.startswith("rules/")] == ["backup/wal.md"]


@pytest.mark.requirement("C6")
def test_twelve_rules_leave_half_of_ten_rows_to_what_was_asked(ruled: Path) -> None:
    found = asked(ruled, "memory_search", query="where do the tapes of the backup go?", limit=10)

    tiers = [row["tier"] for row in found["data"]["results"]]
    assert tiers[:5] == ["constitutional"] * 5
    assert keys(found)[5] == "backup/tape.md"
    assert not any("constitutional" in hint for hint in found["hints"])


@pytest.mark.requirement("C6")
def test_rules_surface_in_a_folder_and_among_sections_without_a_warning(ruled: Path) -> None:
    scoped = asked(ruled, "memory_search", query="backup", specFolder="backup", limit=10)
    sections = asked(ruled, "memory_search", query="backup", anchors=["state"], limit=10)

    assert [key.startswith("rules/") for key in keys(scoped)[:5]] == [True] * 5
    assert {key for key in keys(scoped) if not key.startswith("rules/")} == {
        f"backup/{n}.md" for n in ("wal", "tape", "cellar")
    }
    assert [key.startswith("rules/") for key in keys(sections)[:5]] == [True] * 5
    assert [key for key in keys(sections) if not key.startswith("rules/")] == ["resume/state.md"]
    assert not any("constitutional" in hint for hint in (*scoped["hints"], *sections["hints"]))


@pytest.mark.requirement("C6")
def test_a_folder_without_memories_is_named_although_rules_are_shown(ruled: Path) -> None:
    found = asked(ruled, "memory_search", query="backup", specFolder="no/such", limit=4)

    assert all(key.startswith("rules/") for key in keys(found))
    assert "no memory is in a folder 'no/such'" in found["hints"][0]


@pytest.mark.requirement("C14")
def test_the_default_asks_silent_channels_for_no_more_than_at_first(plain: Path) -> None:
    ran = call(plain, ["search", "backup", "--folder", "no/such", "--json"])

    fallbacks = [reason for reason in ran.json["plan"]["reasons"] if reason.startswith("fallback")]
    assert fallbacks == ["fallback: nothing found; words only (bm25)"]


@pytest.mark.requirement("R4")
@pytest.mark.parametrize("pipeline", ["default", "catalogue", "bm25", "vector"])
def test_with_content_a_memory_of_many_passages_is_one_row_and_whole(long: Path, pipeline: str) -> None:
    asked_for = {"query": "sentence of part 3 of the quokka cache", "includeContent": True, "limit": 10}
    found = asked(long, "memory_search", {"SPECKIT_PIPELINE": pipeline}, **asked_for)

    rows = found["data"]["results"]
    assert keys(found).count("cache/quokka.md") == 1
    assert rows[0]["key"] == "cache/quokka.md"
    assert rows[0]["memory_text"] == QUOKKA
    assert len({*keys(found)}) == len(rows)
    assert found["meta"]["token_count"] <= found["meta"]["token_budget"] == 4000


@pytest.mark.requirement("R4", "T24")
def test_what_does_not_fit_as_a_whole_is_cut_from_below_and_said(long: Path) -> None:
    found = asked(long, "memory_search", query="quokka cache of kind", includeContent=True, limit=5)

    texts = [row["memory_text"] for row in found["data"]["results"]]
    whole = [text for key, text in zip(keys(found), texts, strict=True) if text == (long / key).read_text().strip("\n")]
    assert 0 < len(whole) < len(texts) == 5
    assert texts[: len(whole)] == whole
    hint = f"{len(whole)} of 5 memories are whole, to stay within 4000 tokens; ask for fewer, or by anchors"
    assert hint in found["hints"]
    assert found["meta"]["token_count"] <= 4000


@pytest.mark.requirement("R4", "T1")
def test_context_gives_whole_memories_within_the_budget_of_its_mode(long: Path) -> None:
    found = asked(long, "memory_context", input="cellar wine tapes", includeContent=True, limit=1)

    assert found["data"]["results"][0]["memory_text"] == NOTES["backup/cellar.md"].strip("\n")


@pytest.mark.requirement("R4", "T1")
def test_of_a_memory_that_does_not_fit_the_section_around_the_hit_is_shown(long: Path) -> None:
    asked_for = {"input": "part 3 of the quokka cache", "includeContent": True, "limit": 1, "mode": "deep"}
    [row] = asked(long, "memory_context", **asked_for)["data"]["results"]

    assert row["heading"].endswith("Part 3")
    assert all(f"Sentence 3.{number} of" in row["memory_text"] for number in range(1, 21))
    assert "Sentence 2." not in row["memory_text"]


@pytest.mark.requirement("A6", "T2")
def test_passages_are_whole_while_there_is_room(long: Path) -> None:
    def texts(**more: int) -> list[str]:
        asked_for = {"query": "sentence of part 3 of the quokka cache", "limit": 3, **more}
        return [row["memory_text"] for row in asked(long, "memory_search", **asked_for)["data"]["results"]]

    excerpts, filled = texts(tokenBudget=400), texts()
    assert len(excerpts) == len(filled) == 3
    assert len(filled[0]) > 3 * len(excerpts[0])
    assert len(filled[0]) > 800


AGES = {"constitutional": (300,), "critical": (300,), "important": (300,), "temporary": (6, 8)}


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    now = datetime.now(UTC)
    notes = {}
    for tier, ages in AGES.items():
        for days in ages:
            head = f"---\nimportance_tier: {tier}\ndate: {(now - timedelta(days=days)).isoformat()}\n---\n"
            notes[f"{tier}/{days}.md"] = f"{head}# The lighthouse, {tier}, {days} days\n\nIt blinks.\n"
    return written(tmp_path_factory.mktemp("aged"), notes)


@pytest.mark.requirement("F7")
def test_rules_and_critical_memories_do_not_decay_and_important_ones_do(aged: Path) -> None:
    env = {"SPECKIT_PIPELINE": "catalogue", "SPECKIT_TEMPORAL_DECAY": "true"}

    ran = call(aged, ["search", "lighthouse", "--explain", "--json"], env)

    gained = {
        explained["key"]: step["parts"]["temporal"]
        for explained in ran.json["explanations"]
        for step in explained["steps"]
        if step["step"] == "temporal"
    }
    assert gained["constitutional/300.md"] == gained["critical/300.md"] == 0.25
    # .25 · (1 + 19/81 · 300)^-0.5
    assert gained["important/300.md"] == pytest.approx(0.0296, abs=1e-4)


@pytest.mark.requirement("F7")
def test_temporary_memories_are_found_for_seven_days(aged: Path) -> None:
    found = [row["key"] for row in call(aged, ["search", "lighthouse", "--json"]).json["results"]]

    assert ("temporary/6.md" in found, "temporary/8.md" in found) == (True, False)


@pytest.mark.requirement("C16")
def test_importance_comes_from_front_matter_tier_kind_and_what_a_memory_opens_with(tmp_path: Path) -> None:
    notes = {
        "declared.md": "---\nimportance_weight: 0.35\nimportance_tier: critical\n---\n# Declared\n\nI want it so.\n",
        "tier.md": "---\nimportance_tier: important\n---\n# Tier\n\nA note.\n",
        "specs/spec.md": "# Spec\n\nA login.\n",
        "plain.md": "# Plain\n\nA note.\n",
        "correction.md": "# Correction\n\nI was wrong: the cache is cold.\n",
        "preference.md": "# Tabs\n\nWe never use tabs.\n",
        "critical.md": "---\nimportance_tier: critical\n---\n# Wait\n\nNot quite.\n",
        "late.md": "# Late\n\n" + "A sentence. " * 40 + "I want it.\n",
    }
    written(tmp_path, notes)

    listed = asked(tmp_path, "memory_list", sortBy="importance_weight")["data"]["memories"]

    assert {row["key"]: row["importance"] for row in listed} == {
        "critical.md": 1.0, "tier.md": 0.8, "specs/spec.md": 0.8, "correction.md": 0.7, "preference.md": 0.6,
        "plain.md": 0.5, "late.md": 0.5, "declared.md": 0.35,
    }  # fmt: skip
    assert listed[0]["key"] == "critical.md"
    assert listed[-1]["key"] == "declared.md"


@pytest.mark.requirement("C16")
def test_an_importance_outside_zero_and_one_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nimportance_weight: 1.7\n---\n# A\n\nText.\n")

    ran = call(tmp_path, ["index", ".", "--json"])

    [problem] = ran.json["problems"]
    assert (problem["code"], problem["where"]["line"]) == ("E090", 2)
    assert problem["message"] == "'importance_weight' must be a number from 0 to 1"


LINKED = {
    "hub.md": "---\ncausalLinks:\n  caused_by: [a.md, b.md, c.md]\n---\n# Ferry\n\nThe ferry leaves at noon.\n",
    **{f"{name}.md": f"# Pier {name}\n\nNothing but water.\n" for name in "abc"},
    "lone.md": "# Lighthouse\n\nIt blinks.\n",
}


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("linked"), LINKED)


@pytest.mark.requirement("C15")
def test_an_answer_says_how_many_memories_causal_links_connect_with_the_question(linked: Path, plain: Path) -> None:
    known = call(linked, ["search", "ferry", "--json"]).json["plan"]["coverage"]
    unknown = call(linked, ["search", "lighthouse", "--json"]).json["plan"]
    without = call(plain, ["search", "backup", "--json"]).json["plan"]["coverage"]

    assert known == {"connected": 3, "gap": False}
    assert unknown["coverage"] == {"connected": 0, "gap": True}
    assert "coverage: evidence gap, 0 connected memories (fewer than 3)" in unknown["reasons"]
    assert without == {"connected": 0, "gap": True}
    assert asked(linked, "memory_search", query="ferry")["data"]["coverage"] == known
    assert call(linked, ["pipeline", "plan", "ferry", "--json"]).json["plan"]["coverage"] == known


@pytest.mark.requirement("P8")
def test_an_answer_says_what_time_each_step_took(linked: Path) -> None:
    told = call(linked, ["search", "ferry", "--json"]).json["timings_ms"]
    shown = call(linked, ["search", "ferry", "--explain"]).out
    data = asked(linked, "memory_search", query="ferry", explain=True)["data"]["timings_ms"]

    steps = {entry["step"]: entry for entry in told["steps"]}
    assert {"coverage", "bm25", "vector", "z_score", "pin", "attribution"} <= steps.keys() == data["steps"].keys()
    assert all(entry["ms"] >= 0 and entry["outcome"] == "ran" for entry in steps.values())
    assert (steps["bm25"]["stage"], steps["bm25"]["rows_in"], steps["bm25"]["rows_out"]) == ("candidates", 0, 1)
    assert sum(entry["ms"] for entry in steps.values()) <= told["total"]
    assert "Causal links connect 3 memories with the question." in shown
    assert [line for line in shown.splitlines() if line.split()[:2] == ["candidates", "bm25"]]


@pytest.mark.requirement("C9")
def test_the_complexity_label_says_when_nothing_judged_it(linked: Path) -> None:
    judged = call(linked, ["search", "ferry", "--json"]).json["plan"]
    off = call(linked, ["search", "ferry", "--json", "--pipeline", "bm25"]).json["plan"]

    assert (judged["complexity"], judged["complexity_confidence"]) == ("simple", "high")
    assert (off["complexity"], off["complexity_confidence"]) == ("complex", "fallback")
    planned = call(linked, ["pipeline", "plan", "ferry", "--json", "--pipeline", "bm25"]).json["plan"]
    assert planned["complexity_confidence"] == "fallback"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sentence = "The payment gateway retries what fails, and waits a little longer every time. "
    notes = {f"gateway/{n:02}.md": f"# Gateway {n}\n\n{sentence * (6 + n % 5)}\n" for n in range(40)}
    return written(tmp_path_factory.mktemp("many"), notes)


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("query", "budget"),
    [
        ("gateway retries", 1500),
        ("which payment gateway retries what fails", 2500),
        ("which payment gateway retries what fails and waits a little longer every time it does", 4000),
    ],
)
def test_the_budget_of_the_complexity_reaches_the_agent(many: Path, query: str, budget: int) -> None:
    env = {"SPECKIT_PIPELINE": "catalogue", "SPECKIT_DYNAMIC_TOKEN_BUDGET": "true"}
    env["SPECKIT_COMPLEXITY_ROUTER"] = "true"

    meta = asked(many, "memory_search", env, query=query, limit=40)["meta"]

    assert meta["token_budget"] == budget
    assert budget - 500 < meta["token_count"] <= budget


@pytest.mark.requirement("A6", "T24")
def test_without_a_budget_of_the_pipeline_the_layer_decides(many: Path) -> None:
    assert (
        asked(many, "memory_search", query="which payment gateway retries what fails")["meta"]["token_budget"] == 1500
    )


@pytest.mark.requirement("T24.brief")
def test_why_memories_surfaced_is_left_out_before_memories_are(many: Path) -> None:
    def told(**more: Any) -> str:
        asked_for = {"query": "payment gateway", "limit": 6, **more}
        return str(with_client(many, lambda client: client.call_tool("memory_search", asked_for)).content[0].text)  # type: ignore[union-attr]  # all of it is text

    # of 500 tokens all six have room, without why they surfaced
    texts = [told(), told(tokenBudget=500), told(tokenBudget=500, explain=True)]
    assert [(text.count("found by"), text.count("\n## ")) for text in texts[:2]] == [(6, 6), (0, 6)]
    assert 0 < texts[2].count("found by") == texts[2].count("\n## ") < 6


@pytest.mark.requirement("T24.brief")
def test_a_row_of_which_only_the_key_is_known_takes_one_line_above_its_text(tmp_path: Path) -> None:
    root = written(tmp_path, {"log.txt": "The quokka sleeps.\n"})
    asked_for = {"query": "quokka", "explain": True}
    result = with_client(root, lambda client: client.call_tool("memory_search", asked_for))

    text = result.content[0].text  # type: ignore[union-attr]  # all of it is text
    assert re.search(r"\n## 1\. log\.txt · id 1\nfound by [^\n]*\nscores: [^\n]*\n> The quokka sleeps\.$", text)


@pytest.mark.requirement("A6")
@pytest.mark.usefixtures("processes")
def test_what_did_not_fit_is_logged_without_its_text(many: Path, tmp_path: Path) -> None:
    arguments = {"query": "gateway retries", "limit": 40, "tokenBudget": 1500}

    async def session(log: TextIO) -> dict[str, Any]:
        async with connected(many, env={"SPECKIT_PIPELINE": "catalogue"}, errlog=log) as client:
            result = await client.call_tool("memory_search", arguments)
            assert isinstance(result.structured_content, dict)
            return result.structured_content

    with (tmp_path / "log").open("w") as log:
        found = anyio.run(session, log)

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    of_tool, of_pipeline = (line for line in lines if line["event"] == "overflow")
    assert (of_pipeline["part"], of_pipeline["rows"], of_pipeline["budget"]) == ("pipeline", 40, 2000)
    assert (of_tool["part"], of_tool["rows"], of_tool["kept"]) == (
        "memory_search", of_pipeline["kept"], found["data"]["count"],
    )  # fmt: skip
    assert of_tool["tokens_wanted"] > of_tool["budget"] == 1500
    assert not any("payment" in json.dumps(line) for line in lines)


def test_a_document_without_a_date_is_neither_new_nor_old(tmp_path: Path) -> None:
    (tmp_path / "undated.md").write_text("# Ferry\n\nThe ferry leaves at noon.\n")
    os.utime(tmp_path / "undated.md", ns=(0, 0))
    assert call(tmp_path, ["index", "."]).status == 0
    flags = {f"SPECKIT_{name}": "true" for name in ("TEMPORAL_DECAY", "RECENCY_BOOST", "NOVELTY_BOOST")}

    ran = call(tmp_path, ["search", "ferry", "--explain", "--json", "--pipeline", "catalogue"], flags).json

    parts = {step["step"]: step["parts"] for step in ran["explanations"][0]["steps"]}
    assert ran["results"][0]["state"] == "UNKNOWN"
    assert [parts[step][step] for step in ("novelty", "temporal", "recency")] == [0.0, 0.0, 0.0]
    [listed] = asked(tmp_path, "memory_list")["data"]["memories"]
    assert listed["updated"] == "unknown"


@pytest.mark.requirement("I8")
def test_an_edit_is_seen_whatever_its_time_and_a_new_time_alone_is_no_change(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    second = 1_000_000_000
    outcomes = []
    for text, moment in [("One.", 0), ("Two.", second // 2), ("Two.", second), ("Two.", second), ("Three.", second)]:
        file.write_text(f"# Note\n\n{text}\n", encoding="utf-8")
        os.utime(file, ns=(0, 1_700_000_000 * second + moment))
        report = call(tmp_path, ["index", ".", "--json"]).json
        outcomes.append(next(name for name in ("created", "updated", "unchanged") if report[name]))

    # the last one keeps the time to the nanosecond
    assert outcomes == ["created", "updated", "unchanged", "unchanged", "updated"]
