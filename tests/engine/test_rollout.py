"""Flags that are enabled for a share: a session always meets the same pipeline, through every door."""

from __future__ import annotations

from pathlib import Path

import pytest
from files import write_file

from speckit_memory.config.workspace.settings import FLAGS_FILE
from speckit_memory.engine import Memory, components
from speckit_memory.engine.answers.search_options import SearchOptions
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.configuration.checked_variants import bucket
from tests.server.doors import call, indexed_workspace

NAME = "SPECKIT_RSF_FUSION"


@pytest.mark.requirement("P11.percent")
@pytest.mark.parametrize(
    ("identity", "place"),
    [("", 0), ("a", 97), ("hello", 22), ("session-1", 98), ("polygenelubricants", 48), ("é", 33), ("😀", 99)],
)
def test_the_place_of_an_identity_is_the_same_everywhere(identity: str, place: int) -> None:
    assert bucket(identity) == place


@pytest.mark.requirement("P11.percent")
def test_a_share_is_about_as_large_as_it_says() -> None:
    places = [bucket(f"session {number}") for number in range(10_000)]
    assert 0.17 < sum(place < 20 for place in places) / len(places) < 0.23


def flags(root: Path, said: str) -> None:
    write_file(root / FLAGS_FILE, f"flags: {{{said}}}\n")


def both(environ: dict[str, str]) -> tuple[str, str]:
    registry = components.registry()
    return examine("default", registry, {}).hash, examine("default", registry, {**environ, NAME: "true"}).hash


@pytest.mark.requirement("P11.percent")
def test_a_session_is_answered_by_the_same_pipeline_over_all_doors(tmp_path: Path) -> None:
    root = indexed_workspace(tmp_path)
    flags(root, f"{NAME}: {{state: enabled, was: shadow, percent: 50}}")
    without, opened = both({})
    within, beyond = "hello", "session-x"
    assert bucket(within) < 50 <= bucket(beyond)
    environ = {"SPECKIT_ROOT": str(root)}
    with Memory.open(root / "memory.db", root=root, environ=environ) as memory:
        found = {session: memory.search("rank fusion", session=session) for session in (within, beyond)}
        assert {session: one.pipeline.hash for session, one in found.items()} == {within: opened, beyond: without}
        assert memory.pipelines.current.hash == without
        nobody = memory.search("rank fusion").pipeline.hash
        assert nobody == (opened if bucket(str(root / "memory.db")) < 50 else without)
        assert "rsf" in str(memory.explain.row(found[within], found[within].results[0].id).as_json())
        told = memory.explain.why_not(found[within], "docs/tone.md")
        assert told
    for session, hashed in ((within, opened), (beyond, without)):
        ran = call(root, ["search", "rank fusion", "--session", session, "--json"])
        assert ran.json["pipeline"]["hash"] == hashed


@pytest.mark.requirement("P11.percent")
def test_wishes_change_the_pipeline_of_the_share_and_nothing_where_it_does_that_anyway(tmp_path: Path) -> None:
    root = indexed_workspace(tmp_path)
    flags(root, f"{NAME}: {{state: enabled, was: shadow, percent: 50}}")
    within, beyond = "hello", "session-x"
    with Memory.open(root / "memory.db", root=root, environ={"SPECKIT_ROOT": str(root)}) as memory:
        for session, fuser in ((within, "rsf"), (beyond, "z_score")):
            plain, same, other = (
                memory.search("rank fusion", session=session, adjust=wanted)
                for wanted in (
                    SearchOptions(),
                    SearchOptions(rerank=True, state_limits=False),
                    SearchOptions(rerank=False),
                )
            )
            assert same.pipeline == plain.pipeline != other.pipeline
            assert [row.steps for row in same.results] == [row.steps for row in plain.results]
            answered_by = memory.session.configuration.answered(other).answering(other).pipeline
            assert (answered_by.hash, answered_by.fusion.fuser.use) == (other.pipeline.hash, fuser)


@pytest.mark.requirement("P4.basis")
def test_queries_with_wishes_are_replayed_without_them(tmp_path: Path) -> None:
    pipeline = write_file(tmp_path / "beside.yaml", "shadows: [bm25]\n")

    with Memory.open(tmp_path / "memory.db", pipeline, root=tmp_path, environ={}) as memory:
        memory.feedback.delivered(memory.search("anything", adjust=SearchOptions(rerank=True)))
        memory.feedback.delivered(memory.search("anything else", adjust=SearchOptions(rerank=False)))
        assert memory.shadows.finish(10)

    with EvaluationDatabase.open(tmp_path / "memory.evaluation.db", create=False) as database:
        assert [pair.basis for pair in database.pairs()] == ["served", "present"]


@pytest.mark.requirement("P11.percent")
@pytest.mark.parametrize(("percent", "on"), [(0, False), (100, True)])
def test_none_and_all(tmp_path: Path, percent: int, on: bool) -> None:
    flags(tmp_path, f"{NAME}: {{state: enabled, was: shadow, percent: {percent}}}")
    environ = {"SPECKIT_ROOT": str(tmp_path)}
    assert examine("default", components.registry(), environ).hash == both({})[on]
    assert "% of sessions" not in pipelines.show("default", environ)


@pytest.mark.requirement("P11.percent")
def test_larger_shares_contain_smaller_ones_and_are_checked_before_anything_is_served(tmp_path: Path) -> None:
    flags(tmp_path, f"{NAME}: {{state: enabled, percent: 20}}, SPECKIT_MMR: {{state: enabled, percent: 60}}")
    shown = pipelines.show("default", {"SPECKIT_ROOT": str(tmp_path)}).splitlines()
    assert [line.partition(": ")[2] for line in shown if "% of sessions" in line] == [
        f"{NAME}, SPECKIT_MMR", "SPECKIT_MMR"
    ]  # fmt: skip
    flags(tmp_path, f"{NAME}: {{state: enabled, percent: 20}}, SPECKIT_RRF: {{state: enabled, percent: 20}}")
    environ = {"SPECKIT_ROOT": str(tmp_path)}
    (told,) = pipelines.check("default", environ)
    assert told.message.endswith("(with SPECKIT_RRF and SPECKIT_RSF_FUSION, for 20 % of sessions)")
    with pytest.raises(SpeckitError, match="for 20 % of sessions"):
        Memory.open(tmp_path / "memory.db", root=tmp_path, environ=environ)


@pytest.mark.requirement("P4.basis")
def test_what_a_share_is_answered_is_replayed_through_the_pipeline_of_the_others(tmp_path: Path) -> None:
    flags(tmp_path, f"{NAME}: {{state: enabled, was: shadow, percent: 50}}")
    pipeline = write_file(tmp_path / "beside.yaml", "shadows: [bm25]\n")

    with Memory.open(tmp_path / "memory.db", pipeline, root=tmp_path, environ={}) as memory:
        memory.feedback.delivered(memory.search("anything", session="hello"))
        assert memory.shadows.finish(10)
        control = memory.pipelines.current.hash

    with EvaluationDatabase.open(tmp_path / "memory.evaluation.db", create=False) as database:
        [pair], [seen] = database.pairs(), database.served()
    assert seen.control.pipeline != pair.control.pipeline == control
    assert pair.basis == "present"
