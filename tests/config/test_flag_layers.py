"""A workspace's flags laid upon the shipped ones: what it may decide, and all that is wrong with its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.flags.flag_files import FlagFile
from speckit_memory.config.flags.flags import flags_for, load_flags, read_flags, unknown_variables
from speckit_memory.config.workspace.settings import FLAGS_FILE, ROOT_VARIABLE

OWN = "group: D, owner: us, since: 2026-11-01, expires: 2026-12-01, evidence: a run"


def write(root: Path, text: str | bytes) -> Path:
    file = root / FLAGS_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def environ(root: Path, **more: str) -> dict[str, str]:
    return {ROOT_VARIABLE: str(root), **more}


def problems(root: Path, text: str) -> list[str]:
    file = write(root, text)
    return [str(problem).removeprefix(f"{file}:") for problem in read_flags(environ(root))[1]]


def test_the_environment_goes_before_the_workspace_and_that_before_the_shipped_file(tmp_path: Path) -> None:
    name = "SPECKIT_NOVELTY_BOOST"
    shipped = load_flags(environ(tmp_path))
    assert (shipped[name].state, shipped[name].of_workspace) == ("off", False)
    file = write(tmp_path, f"flags:\n  {name}: {{state: enabled}}\n")
    decided = load_flags(environ(tmp_path))
    assert (decided[name].state, decided[name].origin) == ("enabled", f"{file}:2")
    assert (decided[name].facts, decided[name].where) == (shipped[name].facts, shipped[name].where)
    assert {key: flag for key, flag in decided.items() if key != name} == {
        key: flag for key, flag in shipped.items() if key != name
    }
    called = load_flags(environ(tmp_path, **{name: "false"}))
    assert (called[name].state, called[name].origin) == ("off", "environment")


def test_a_workspace_declares_flags_of_its_own(tmp_path: Path) -> None:
    file = write(tmp_path, f'flags:\n  SPECKIT_OURS: {{state: "off", {OWN}}}\n')
    own = load_flags(environ(tmp_path))["SPECKIT_OURS"]
    assert (own.on, own.of_workspace, own.origin, own.facts["owner"]) == (False, True, f"{file}:2", "us")
    assert load_flags(environ(tmp_path, SPECKIT_OURS="true"))["SPECKIT_OURS"].on
    assert unknown_variables(environ(tmp_path, SPECKIT_OURS="true")) == []


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n", "flags:\n", "flags: {}\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    shipped = load_flags(environ(tmp_path))
    write(tmp_path, text)
    assert load_flags(environ(tmp_path)) == shipped


def test_every_problem_is_told_at_once_and_at_its_place(tmp_path: Path) -> None:
    text = f"""\
flag: {{}}
SPECKIT_TRM: {{state: dark_run}}
flags:
  SPECKIT_RRF: {{state: off, percent: 105}}
  SPECKIT_NOVELTY_BOST: {{state: enabled}}
  SPECKIT_DEGREE_BOOST: {{state: shadwo}}
  SPECKIT_DB: {{state: enabled, {OWN}}}
  SPECKIT_RSF_FUSION: {{stat: enabled}}
  SPECKIT_MMR: {{state: permanent, owner: us}}
  SPECKIT_OURS: {{state: enabled, ownr: us, group: D}}
  OURS: {{state: enabled, {OWN}}}
  SPECKIT_SPELLING: enabled
"""
    assert problems(tmp_path, text) == [
        "1:1: E115 the file has no key 'flag'; did you mean 'flags'?",
        "2:1: E115 'SPECKIT_TRM' is a flag; write it, indented, below a line 'flags:'",
        "4:38: E114 'percent' of 'SPECKIT_RRF' must be a whole number from 0 to 100; found 105",
        "5:3: E120 no flag is called 'SPECKIT_NOVELTY_BOST'; did you mean 'SPECKIT_NOVELTY_BOOST'?",
        "6:33: E114 'state' of 'SPECKIT_DEGREE_BOOST' is 'shadwo'; did you mean 'shadow'?",
        "7:3: E120 'SPECKIT_DB' is the name of a setting, and no flag can have it",
        "8:24: E115 'SPECKIT_RSF_FUSION' has no key 'stat'; did you mean 'state'?",
        "9:35: E115 a workspace decides only the state of 'SPECKIT_MMR', which config/flags.yaml:12:3 declares; found "
        "'owner'",
        "10:34: E115 'SPECKIT_OURS' has no key 'ownr'; did you mean 'owner'?",
        "11:3: E120 'OURS' must begin with SPECKIT_",
        "12:21: E114 'SPECKIT_SPELLING' must be a mapping such as {state: enabled}; found 'enabled'",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[a]\n", "1:1: E114 the file must be a mapping with the key 'flags'"),
        ("flags: [SPECKIT_RRF]\n", "1:8: E114 'flags' must be a mapping of names to flags"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, text: str, told: str) -> None:
    assert problems(tmp_path, text) == [told]


def test_what_lies_there_and_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, b"\xff\xfe")
    [unread] = read_flags(environ(tmp_path))[1]
    assert str(unread) == f"E110 {file} cannot be read: it is not UTF-8 text"
    file.unlink()
    file.mkdir()
    [unread] = read_flags(environ(tmp_path))[1]
    assert unread.message == f"{file} cannot be read: is a directory"
    file.rmdir()
    file.symlink_to(tmp_path / "nowhere")
    [unread] = read_flags(environ(tmp_path))[1]
    assert unread.message == f"{file} cannot be read: no such file or directory"
    (tmp_path / "nowhere").write_text("flags: {SPECKIT_SPELLING: {state: enabled}}\n")
    assert load_flags(environ(tmp_path))["SPECKIT_SPELLING"].on


@pytest.mark.requirement("P11")
@pytest.mark.parametrize("state", ["off", "dark_run", "shadow", "enabled", "permanent"])
def test_every_state_is_accepted_in_files_and_in_the_environment(tmp_path: Path, state: str) -> None:
    name = "SPECKIT_NOVELTY_BOOST"
    assert load_flags(environ(tmp_path, **{name: state.upper()}))[name].state == state
    write(tmp_path, f'flags:\n  {name}: {{state: "{state}"}}\n  SPECKIT_OURS: {{state: "{state}", {OWN}}}\n')
    flags = load_flags(environ(tmp_path))
    assert [(flags[one].state, flags[one].on) for one in (name, "SPECKIT_OURS")] == [
        (state, state in ("enabled", "permanent"))
    ] * 2


@pytest.mark.parametrize(("said", "found"), [("true", []), ("enabled", []), ("PERMANENT", []), ("shadow", [1])])
def test_what_is_permanent_stays_so_whatever_the_environment_says(tmp_path: Path, said: str, found: list[int]) -> None:
    write(tmp_path, f"flags: {{SPECKIT_OURS: {{state: permanent, {OWN}}}}}\n")
    flags, problems = read_flags(environ(tmp_path, SPECKIT_OURS=said))
    assert (flags["SPECKIT_OURS"].state, flags["SPECKIT_OURS"].origin) == ("permanent", f"{tmp_path / FLAGS_FILE}:1")
    told = ["SPECKIT_OURS is permanent and cannot be switched off" for _ in found]
    assert [problem.message for problem in problems] == told


def test_extensions_are_loaded_for_an_unknown_flag_and_not_for_a_misnamed_one(tmp_path: Path) -> None:
    asked: list[str] = []

    def offered() -> list[FlagFile]:
        asked.append("loaded")
        return []

    write(tmp_path, "flags: {OURS: {state: enabled}, SPECKIT_DB: {state: enabled}}\n")
    assert len(flags_for(environ(tmp_path), (), offered)[1]) == 2
    assert asked == []
    write(tmp_path, "flags: {SPECKIT_THEIRS: {state: enabled}}\n")
    assert len(flags_for(environ(tmp_path), (), offered)[1]) == 1
    assert asked == ["loaded"]
