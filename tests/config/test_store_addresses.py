"""Where the store in force comes from: an address, a file of the workspace, or the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.workspace import store_address
from speckit_memory.config.workspace.settings import CONFIG_FILE, DB_VARIABLE, READ_FROM_VARIABLE, settings
from speckit_memory.config.workspace.store_address import address_at, store_link
from speckit_memory.config.workspace.workspace_file import load_workspace_config, read_workspace_config
from speckit_memory.errors import SpeckitError

ADDRESS = "postgresql://speckit@db.example/memories?workspace=one&sslmode=verify-full"
OTHER = "postgresql://speckit@db.example/memories?workspace=two"
SECRET = "h0rse-battery"


def configured(root: Path, text: str) -> Path:
    file = root / CONFIG_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_an_address_is_taken_from_the_call_then_the_environment_then_the_workspaces_file(tmp_path: Path) -> None:
    configured(tmp_path, f"store: {OTHER}\n")
    by_file = settings(root=tmp_path, environ={})
    by_variable = settings(root=tmp_path, environ={DB_VARIABLE: ADDRESS})
    by_call = settings(OTHER, root=tmp_path, environ={DB_VARIABLE: ADDRESS})

    assert [each.store_told for each in (by_file, by_variable, by_call)] == [OTHER, ADDRESS, OTHER]
    assert by_call.db == by_file.db
    assert settings("elsewhere.db", root=tmp_path, environ={DB_VARIABLE: ADDRESS}).db == Path("elsewhere.db")


def test_each_address_has_a_folder_of_its_own_in_the_workspace_that_git_ignores(tmp_path: Path) -> None:
    places = {settings(address, root=tmp_path, environ={}).db for address in (ADDRESS, OTHER)}

    assert len({place.parent for place in places}) == 2
    assert {place.parent.parent for place in places} == {tmp_path / ".speckit" / "postgres"}
    assert (tmp_path / ".speckit" / "postgres" / ".gitignore").read_text() == "*\n"
    assert {address_at(place) for place in places} == {ADDRESS, OTHER}


def test_a_workspace_that_is_not_there_is_not_made_for_a_store_link(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert not settings(ADDRESS, root=missing, environ={}).db.exists()
    assert not missing.exists()


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://speckit:{SECRET}@db.example/memories",
        f"postgres://db.example/memories?user=speckit&password={SECRET}",
        f"postgresql://db.example/memories?sslpassword={SECRET}",
        f"postgresql://speckit:{SECRET}@db.example:port/memories",
        f"postgresql://speckit:{SECRET}@[db.example/memories",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str, tmp_path: Path) -> None:
    configured(tmp_path, f"deadline_ms: 1\nstore: '{address}'\n")
    for named, environ in ((address, {}), (None, {DB_VARIABLE: address}), (None, {})):
        with pytest.raises(SpeckitError) as caught:
            settings(named, root=tmp_path, environ=environ)
        (problem,) = caught.value.problems
        assert problem.code == "E057"
        assert problem.where is None  # the console shows the line at a place
        assert SECRET not in str(problem.as_json())
    assert not list(tmp_path.rglob("*.store"))
    for text, variable in ((f"['{ADDRESS}', '{address}']", ""), (f"'{address}'", ""), ("[]", f"{ADDRESS} {address}")):
        configured(tmp_path, f"read_from: {text}\n")
        config, [problem] = read_workspace_config(tmp_path, {READ_FROM_VARIABLE: variable})
        assert (config.read_from, problem.code, problem.where) == ((), "E057", None)
        assert SECRET not in str(problem.as_json())


def test_the_replicas_in_the_environment_go_before_those_of_the_file(tmp_path: Path) -> None:
    configured(tmp_path, f"read_from: [{ADDRESS}]\n")
    assert load_workspace_config(tmp_path, {}).read_from == (ADDRESS,)
    config = load_workspace_config(tmp_path, {READ_FROM_VARIABLE: f" {OTHER}  {ADDRESS} "})
    assert (config.read_from, config.origins) == ((OTHER, ADDRESS), {"read_from": READ_FROM_VARIABLE})
    with pytest.raises(SpeckitError, match="E030 SPECKIT_READ_FROM: this is no address of a store"):
        load_workspace_config(tmp_path, {READ_FROM_VARIABLE: "replica.example"})


@pytest.mark.parametrize("value", ["3", "memory.db", "[a, b]", "mysql://db.example/memories"])
def test_what_is_no_address_is_refused_at_its_place(value: str, tmp_path: Path) -> None:
    file = configured(tmp_path, f"deadline_ms: 1\nstore: {value}\n")
    with pytest.raises(SpeckitError) as caught:
        settings(root=tmp_path, environ={})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where and (problem.where.file, problem.where.line)) == ("E114", (str(file), 2))


def test_other_mistakes_of_the_file_do_not_hide_its_store(tmp_path: Path) -> None:
    configured(tmp_path, f"deadline_ms: soon\nstore: {ADDRESS}\n")
    assert settings(root=tmp_path, environ={}).store_told == ADDRESS


def test_a_file_that_only_mentions_a_store_in_a_comment_names_none(tmp_path: Path) -> None:
    configured(tmp_path, f"deadline_ms: 10\n# store: {ADDRESS}\n")
    assert settings(root=tmp_path, environ={}).db == tmp_path / ".speckit" / "memory.db"


def test_a_link_in_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".speckit").write_text("a file, not a folder")
    with pytest.raises(SpeckitError) as caught:
        store_link(ADDRESS, tmp_path / ".speckit", "the test")
    assert [problem.code for problem in caught.value.problems] == ["E020"]


def test_a_store_file_is_not_opened_to_look_for_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(b"SQLite format 3" + bytes(512))
    opened: list[object] = []
    monkeypatch.setattr(store_address, "open_regular", opened.append)

    assert store_address.address_at(file) == ""
    assert opened == []


def test_an_address_longer_than_a_store_link_is_refused() -> None:
    with pytest.raises(SpeckitError) as caught:
        store_address.require_address(f"{ADDRESS}&application_name={'n' * store_address.LONGEST}", "the test")
    assert [problem.code for problem in caught.value.problems] == ["E030"]
