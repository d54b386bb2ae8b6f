"""Arguments that clients write in another form: read as intended, said in the hints, and never by guessing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.config.workspace.settings import settings
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.server.calls.lenient_arguments import TO_THE_LETTER, LenientParameters, coercion_hints
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.mcp_server.app import tools
from speckit_memory.server.replies.envelope import Reply, fit_to_budget
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.server.test_answer_cache import Ask, asking, served

COUNT = StaticEmbedder().count_tokens
LISTED = ["caused", "derived_from"]
PARAMETERS = LenientParameters(
    {
        "properties": {
            "limit": {"type": "integer", "maximum": 100},
            "share": {"type": "number"},
            "whole": {"type": "boolean"},
            "id": {"type": ["string", "integer"]},
            "tier": {"type": "string", "enum": ["important", "normal"]},
            "sessionId": {"type": "string"},
            "include_all": {"type": "boolean"},
            "words": {"type": "array", "items": {"type": "string"}},
            "links": {"type": "array", "items": {"type": "string", "enum": LISTED}},
            "about": {"type": "object"},
            "confirm": {"type": "boolean"},
            "confirmName": {"type": "string"},
        }
    }
)


@pytest.mark.parametrize(
    ("written", "meant", "note"),
    [
        ({"limit": 3.0}, {"limit": 3}, "limit: read 3.0 as the whole number 3"),
        ({"limit": "3"}, {"limit": 3}, "limit: read the text '3' as the number 3"),
        ({"limit": " -3 "}, {"limit": -3}, "limit: read the text '-3' as the number -3"),
        ({"share": "0.7"}, {"share": 0.7}, "share: read the text '0.7' as the number 0.7"),
        ({"whole": "true"}, {"whole": True}, "whole: read the text 'true' as true"),
        ({"whole": "False"}, {"whole": False}, "whole: read the text 'False' as false"),
        ({"id": 3.0}, {"id": 3}, "id: read 3.0 as the whole number 3"),
        ({"tier": "Important"}, {"tier": "important"}, "tier: read 'Important' as 'important'"),
        ({"words": "a cat"}, {"words": ["a cat"]}, "words: read the text as a list of one"),
        ({"words": '["a", "b"]'}, {"words": ["a", "b"]}, "words: read the JSON text as a list"),
        ({"links": "caused"}, {"links": ["caused"]}, "links: read the text as a list of one"),
        (
            {"links": ["Caused", "DERIVED_FROM"]},
            {"links": LISTED},
            "links: read 'Caused' as 'caused' and 1 more of its values likewise",
        ),
        (
            {"links": '["CAUSED"]'},
            {"links": ["caused"]},
            "links: read the JSON text as a list, read 'CAUSED' as 'caused'",
        ),
        ({"about": '{"a": 1}'}, {"about": {"a": 1}}, "about: read the JSON text as an object"),
        ({"limit": "null"}, {}, "limit: not given, as the text 'null' says"),
        ({"session_id": "x"}, {"sessionId": "x"}, "session_id: read as sessionId"),
        ({"SESSIONID": "x"}, {"sessionId": "x"}, "SESSIONID: read as sessionId"),
        ({"session-id": "x"}, {"sessionId": "x"}, "session-id: read as sessionId"),
        ({"includeAll": True}, {"include_all": True}, "includeAll: read as include_all"),
        ({"Limit": "3"}, {"limit": 3}, "Limit: read as limit, read the text '3' as the number 3"),
        ({"Limit": 3, "limit": "null"}, {"limit": 3}, "Limit: read as limit"),
        ({"limit": "null", "Limit": 3}, {"limit": 3}, "Limit: read as limit"),
    ],
)
def test_another_form_is_read_and_noted(written: dict[str, Any], meant: dict[str, Any], note: str) -> None:
    read = PARAMETERS.as_meant(written)
    assert (read.arguments, list(read.notes.values())) == (meant, [note])
    assert json.dumps(read.arguments) == json.dumps(meant)  # 3.0 is equal to 3, and not the same


@pytest.mark.parametrize(
    "written",
    [
        {"limit": "three"},
        {"limit": 2.5},
        {"limit": "2.5"},
        {"limit": True},
        {"limit": "٣"},
        {"limit": "9" * 40},
        {"limit": 2.0**60},
        {"limit": float("inf")},
        {"share": "nan"},
        {"share": "1e999"},
        {"share": False},
        {"whole": "yes"},
        {"whole": 1},
        {"tier": "import"},
        {"tier": "null"},
        {"words": ""},
        {"words": "[a, b"},
        {"words": "a cat, a dog"},
        {"words": "a cat; a dog"},
        {"words": "a cat\na dog"},
        {"words": "猫、犬"},
        {"words": "None"},
        {"words": " {}"},
        {"words": "[" * 100_000},
        {"words": [1]},
        {"about": "a cat"},
        {"about": "[1]"},
        {"sessionId": 3},
        {"session_id": "x", "sessionId": "y"},
        {"session_id": "x", "session-id": "x"},
        {"sesionId": "x"},
        {"_" * 100 + "limit": 3},
        {"confirm": "true"},
        {"Confirm": True},
        {"confirm_name": "x"},
    ],
)
def test_what_is_no_other_form_stays_for_the_validation_to_refuse(written: dict[str, Any]) -> None:
    read = PARAMETERS.as_meant(written)
    assert read.arguments is not written
    assert (read.arguments, read.notes) == (written, {})


def _values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Valid values of a parameter, bounds aside."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    texts = st.text(max_size=20) | st.sampled_from(["3", "true", "null", "3.0", "[]", '["a"]', "Important"])
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": texts,
        "integer": st.integers(),
        "number": st.integers() | st.floats(allow_nan=False),
        "boolean": st.booleans(),
        "object": st.dictionaries(texts, texts | st.floats(allow_nan=False), max_size=3),
    }
    kind = schema["type"]
    if kind == "array":
        return st.lists(_values(schema["items"]), max_size=4)
    return st.one_of([kinds[each] for each in ([kind] if isinstance(kind, str) else kind)])


def _unopened(_create: bool) -> Any:
    raise AssertionError("nothing is asked of the memory")


ALL_TOOLS = tools(Workspace(_unopened, settings()), ThreadLimits())
OF_ALL_TOOLS = {tool.name: tool.parameters for tool in ALL_TOOLS}


@given(data=st.data(), tool=st.sampled_from(sorted(OF_ALL_TOOLS)))
def test_valid_arguments_of_every_tool_come_through_as_they_are(data: st.DataObject, tool: str) -> None:
    schema = OF_ALL_TOOLS[tool]
    optional = {name: _values(form) for name, form in schema["properties"].items()}
    arguments = data.draw(st.fixed_dictionaries({}, optional=optional))
    read = LenientParameters(schema).as_meant(arguments)
    assert read.notes == {}
    assert list(read.arguments) == list(arguments)
    assert all(read.arguments[name] is value or read.arguments[name] == value for name, value in arguments.items())
    assert repr(read.arguments) == repr(arguments)


@given(data=st.data(), tool=st.sampled_from(sorted(OF_ALL_TOOLS)))
def test_what_is_read_needs_no_reading_any_more(data: st.DataObject, tool: str) -> None:
    parameters = LenientParameters(OF_ALL_TOOLS[tool])
    names = st.sampled_from(["Limit", "spec_folder", "session-id", "confirm", *OF_ALL_TOOLS[tool]["properties"]])
    values = st.sampled_from(
        ["3", "true", "null", 3.0, "Important", '["Caused"]', "Caused", "{}", True, 2.5, ["CAUSED"]]
    )
    once = parameters.as_meant(data.draw(st.dictionaries(names, values, max_size=5)))
    again = parameters.as_meant(once.arguments)
    assert (again.arguments, again.notes) == (once.arguments, {})


def test_every_flag_that_allows_what_cannot_be_taken_back_is_taken_to_the_letter() -> None:
    there = {name for schema in OF_ALL_TOOLS.values() for name in schema["properties"]}
    assert there >= TO_THE_LETTER
    for schema in OF_ALL_TOOLS.values():
        for name in TO_THE_LETTER & set(schema["properties"]):
            for written in ({name: "true"}, {name.upper(): True}, {name: "null"}):
                assert LenientParameters(schema).as_meant(written).notes == {}


@pytest.mark.parametrize("tool", [tool for tool in ALL_TOOLS if tool.annotations and tool.annotations.destructive_hint])
def test_no_text_leaves_open_what_narrows_or_withholds_a_deed(tool: SpeckitTool) -> None:
    accepted = LenientParameters(tool.parameters, destructive=True)
    for name in tool.parameters["properties"]:
        for word in ("null", "NULL", "none", "None", "undefined", "{}", ""):
            read = accepted.as_meant({name: word})
            assert (read.arguments, read.notes) == ({name: word}, {})
        assert accepted.as_meant({name: "null", name.upper(): True}).arguments == {name: "null", name.upper(): True}


def test_notes_without_room_name_the_parameters_alone_as_far_as_there_is_room() -> None:
    notes = PARAMETERS.as_meant({"limit": "3", "whole": "true", "include_all": "true"}).notes
    assert coercion_hints(notes, 1000) == tuple(notes.values())
    assert coercion_hints(notes, 63) == ("3 parameters were read as intended: limit, whole, include_all",)
    assert coercion_hints(notes, 58) == ("3 parameters were read as intended: limit, whole, …",)
    assert coercion_hints(notes, 20) == ("3 parameters were read as intended",)
    assert coercion_hints({"limit": notes["limit"]}, 20) == ("1 parameter was read as intended",)
    assert coercion_hints({}, 0) == ()


@given(
    rows=st.lists(st.integers(0, 1500), max_size=30),
    budget=st.integers(300, 1500),
    last=st.sampled_from(["cut", "drop"]),
)
def test_notes_make_rows_give_way_and_change_nothing_else(rows: list[int], budget: int, last: Any) -> None:
    listed = [{"id": number, "memory_text": ("word " * length)[:length]} for number, length in enumerate(rows)]
    plain = fit_to_budget(Reply("found", {"results": listed}, rows="results", last=last), "t", budget, COUNT)
    before = (plain.text, json.dumps(plain.document))
    noted = plain.noted(("limit: read the text '3' as the number 3",), COUNT)
    assert (plain.text, json.dumps(plain.document)) == before
    assert noted.meta["token_count"] == COUNT([noted.text])[0] <= budget
    assert noted.document["hints"][0] == "limit: read the text '3' as the number 3"
    assert "Note: limit: read the text '3' as the number 3" in noted.text
    ids = [row["id"] for row in noted.document["data"]["results"]]
    assert ids == list(range(len(ids)))
    assert len(ids) == noted.document["data"]["count"] == len(noted.rows) <= len(plain.rows)
    assert len(set(noted.document["hints"])) == len(noted.document["hints"])
    left = f"{len(rows) - len(ids)} of {len(rows)} rows were left out"
    assert any(hint.startswith(left) for hint in noted.document["hints"]) == (len(ids) < len(rows))


@pytest.fixture
def ask(workspace: Path) -> Iterator[Ask]:
    """Asks a server in this process."""
    with asking(served(workspace)) as [client]:
        yield client


@pytest.mark.requirement("T25.kept")
def test_what_was_meant_gets_the_answer_that_is_kept_with_hints_of_its_own(ask: Ask) -> None:
    proper: dict[str, Any] = {"query": "rank fusion", "limit": 3, "specFolder": "docs"}
    first = ask("memory_search", **proper)
    other = ask("memory_search", query="rank fusion", limit="3", spec_folder="docs")
    again = ask("memory_search", **proper)
    notes = ["limit: read the text '3' as the number 3", "spec_folder: read as specFolder"]
    assert [one["meta"]["cache_hit"] for one in (first, other, again)] == [False, True, True]
    assert (again["hints"], again["text"]) == (first["hints"], first["text"])
    assert other["hints"] == notes + first["hints"]
    assert other["data"] == first["data"]
    assert all(f"Note: {note}" in other["text"] for note in notes)


@pytest.mark.requirement("T24.kept")
def test_hints_on_arguments_keep_the_budget_of_the_answer(ask: Ask) -> None:
    query = "quokka cache of the store with rank fusion and backups"
    for budget in range(200, 420, 20):
        usual = ask("memory_search", query=query, tokenBudget=budget)
        noted = ask("memory_search", Query=query, enable_dedup="true", token_budget=f"{budget}", includeContent="false")
        assert noted["meta"]["cache_hit"]
        assert noted["meta"]["token_count"] == COUNT([noted["text"]])[0] <= noted["meta"]["token_budget"] == budget
        assert 0 < noted["data"]["count"] <= usual["data"]["count"]
        assert "tokenBudget" in " ".join(noted["hints"])


def test_what_was_read_silently_is_named(ask: Ask) -> None:
    listed = ask("memory_search", concepts='["lexical channels", "ranks"]', limit=3)
    assert "concepts: read the JSON text as a list" in listed["hints"]
    changed = ask("memory_update", id="docs/tone.md", importance_weight="0.7")
    note = "importance_weight: read as importanceWeight, read the text '0.7' as the number 0.7"
    assert changed["hints"][0] == note
    assert f"Note: {note}" in changed["text"]
    long = ask("memory_search", query="fusion", anchors="secret " * 20)
    assert long["hints"][0] == "anchors: read the text as a list of one"


@pytest.mark.requirement("T11")
@pytest.mark.parametrize(
    "left", [{"dryRun": "null"}, {"dryRun": "none"}, {"olderThanDays": "null"}, {"older_than_days": "null"}]
)
def test_a_text_for_nothing_removes_no_guard_of_a_deletion(workspace: Path, ask: Ask, left: dict[str, Any]) -> None:
    before = ask("memory_list", limit=100)["data"]["total"]
    refused = ask("memory_bulk_delete", tier="normal", confirm=True, **left)
    [name] = left
    assert refused["error"]["code"] == "E030"
    assert refused["error"]["message"].startswith(f"'{name if name == 'dryRun' else 'olderThanDays'}'")
    assert ask("memory_list", limit=100)["data"]["total"] == before
    assert (workspace / "docs" / "tone.md").exists()
    # what withholds a deed is read in any form that means it
    tried = ask("memory_bulk_delete", tier="normal", confirm=True, dry_run="true")
    assert tried["data"]["count"] > 0
    assert tried["data"]["undo"] is None
    assert ask("memory_list", limit=100)["data"]["total"] == before


@pytest.mark.parametrize("text", ["alpha, beta", "alpha; beta", "alpha\nbeta", "{}", "none", "null"])
def test_no_text_that_may_be_several_phrases_or_none_is_written_into_a_document(
    workspace: Path, ask: Ask, text: str
) -> None:
    before = (workspace / "docs" / "tone.md").read_bytes()
    refused = ask("memory_update", id="docs/tone.md", triggerPhrases=text)["error"]
    assert refused["code"] == "E030"
    assert "'triggerPhrases'" in refused["message"]
    assert 'a list of texts, such as ["one", "two"]' in refused["message"]
    assert (workspace / "docs" / "tone.md").read_bytes() == before
    changed = ask("memory_update", id="docs/tone.md", triggerPhrases="alpha beta")
    assert changed["hints"][0] == "triggerPhrases: read the text as a list of one"
    assert "alpha beta" in (workspace / "docs" / "tone.md").read_text()


@pytest.mark.requirement("T24.kept")
def test_many_other_spellings_keep_the_budget_too(ask: Ask) -> None:
    written: dict[str, Any] = {
        "Query": "quokka cache of the store", "Limit": "5", "spec_folder": "docs", "MODE": "Auto",
        "enable_dedup": "true", "include_content": "false", "from_line": "1", "EXPLAIN": "false",
        "token_budget": "200", "deadline_ms": "0", "auto_detect_intent": "true", "include_constitutional": "true",
        "min_state": "cold", "apply_state_limits": "null", "use_decay": "true", "include_contiguity": "true",
        "enable_session_boost": "true", "enable_causal_boost": "true", "RERANK": "null",
        "apply_length_penalty": "null", "bypass_cache": "true", "CONCEPTS": "[]", "ANCHORS": "[]",
    }  # fmt: skip
    answer = ask("memory_search", **written)
    [joint] = [hint for hint in answer["hints"] if "as intended" in hint]
    assert joint.startswith(f"{len(written)} parameters were read as intended: query, limit, specFolder")
    assert joint.endswith("…")
    assert len(joint) <= 200
    assert answer["meta"]["token_count"] == COUNT([answer["text"]])[0] <= answer["meta"]["token_budget"] == 200
    assert answer["data"]["count"] > 0
