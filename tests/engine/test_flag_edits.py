"""Decisions on flags in files that people have written in every way that YAML allows."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.config.workspace.settings import FLAGS_FILE
from speckit_memory.config.yaml.reader import plain, read
from speckit_memory.engine.pipelines.flag_edits import decide, write_decision
from speckit_memory.errors import SpeckitError

NAME = "SPECKIT_X"
DECISION = {"state": "shadow", "was": "dark_run"}
ENTRY = "SPECKIT_X: {state: shadow, was: dark_run}"


def said(text: str) -> object:
    """What the product reads in a text; broken YAML is a failure."""
    node, problems = read(text.removeprefix("\ufeff"), "f")
    assert [one for one in problems if one.code != "E113"] == []
    return plain(node) if node else None


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("{flags: null}", f"{{flags: {{{ENTRY}}}}}"),
        ("{}", f"{{flags: {{{ENTRY}}}}}"),
        ("{}  # nothing yet\n", f"{{flags: {{{ENTRY}}}}}  # nothing yet\n"),
        ("---\n# x\n...\n", f"---\n# x\nflags:\n  {ENTRY}\n...\n"),
        ("--- # x", f"--- # x\nflags:\n  {ENTRY}\n"),
        ("~ # x\n", f"{{flags: {{{ENTRY}}}}} # x\n"),
        ("flags:  # my own flags\n", f"flags:  # my own flags\n  {ENTRY}\n"),
        ("flags: ~  # none\n# end", f"flags:  # none\n  {ENTRY}\n# end"),
        ("flags: null", f"flags:\n  {ENTRY}"),
        ("flags: &a ~ # x\n", f"flags: # x\n  {ENTRY}\n"),
        ("? flags\n", None),
        ("# a\u2028# b\nflags:\n", f"# a\u2028# b\nflags:\n  {ENTRY}\n"),
        ("# a\r\nflags:\r\n# b\r\n", f"# a\r\nflags:\r\n  {ENTRY}\r\n# b\r\n"),
        ("\ufeffflags: {}\r\n", f"\ufeffflags: {{{ENTRY}}}\r\n"),
        ("flags: !!map\n  SPECKIT_A: {state: off}\n", f"flags: !!map\n  SPECKIT_A: {{state: off}}\n  {ENTRY}\n"),
        (f"flags:\n  {NAME}:\n    state: off", f"flags:\n  {NAME}:\n    state: shadow\n    was: dark_run"),
        (f"flags: {{{NAME}: {{percent: 5, since: a, state: off}}}}",
         f"flags: {{{NAME}: {{percent: 5, since: a, state: shadow, was: dark_run}}}}"),
    ],
)  # fmt: skip
def test_every_way_to_say_nothing_takes_a_flag_or_tells_what_to_write(text: str, after: str | None) -> None:
    if after is not None:
        assert write_decision(text, NAME, DECISION, "f") == after
        return
    with pytest.raises(SpeckitError) as refused:
        write_decision(text, NAME, DECISION, "f")
    assert refused.value.problems[0].code == "E014"
    assert f"Write it by hand: {ENTRY}" in refused.value.problems[0].hint


BREAKS = st.sampled_from(["\n", "\r\n", "\r"])
words = st.text(st.sampled_from(["a", "b", " ", "é", "漢", "'", '"', "{", ":", "\u2028", "\u2029", "\x85"]), max_size=6)
remarks = st.one_of(st.just(""), words.map(lambda word: f"  # c {_one_line(word)}."))


def _one_line(word: str) -> str:
    """A remark in which further ends of lines, as YAML knows them, are followed by a remark again."""
    return re.sub("([\u2028\u2029\x85])", r"\1# c ", word)


def _flow(name: str, values: dict[str, str]) -> str:
    return f"{name}: {{{', '.join(f'{key}: {value}' for key, value in values.items())}}}"


@st.composite
def entries(draw: st.DrawFn, name: str, pad: str) -> list[str]:
    """One flag of a block, in flow or block style, with remarks."""
    keys = draw(st.permutations(["state", "was", "since", "evidence", "percent", "owner"]))
    values = {"state": '"off"', "was": "dark_run", "since": "2026-01-01", "evidence": "'a, b'", "percent": "20",
              "owner": '"u\\u2028s, # {"'}  # fmt: skip
    chosen = {key: values[key] for key in keys if key == "state" or draw(st.booleans())}
    if draw(st.booleans()):
        return [f"{pad}{_flow(name, chosen)}{draw(remarks)}"]
    anchor = draw(st.sampled_from(["", "", " &a", " !!map"]))
    lines = [f"{pad}{name}:{anchor}{draw(remarks)}"]
    for key, value in chosen.items():
        if draw(st.integers(0, 3)) == 0:
            lines.append(f"{pad}  # c above {key}")
        lines.append(f"{pad}  {key}: {value}{draw(remarks)}")
    return lines


@st.composite
def files(draw: st.DrawFn) -> str:
    """A flags file that can be read, in any of the layouts that people and editors write."""
    end = draw(BREAKS)
    top = [f"# c {_one_line(draw(words))}" for _ in range(draw(st.integers(0, 2)))]
    marked = draw(st.booleans())
    kind = draw(st.sampled_from(["nothing", "null", "empty", "flow", "block", "whole flow", "no flags"]))
    lines: list[str] = []
    remark = draw(remarks)
    names = draw(st.lists(st.sampled_from(["SPECKIT_A", NAME, "SPECKIT_B"]), unique=True, min_size=1))
    if kind == "null":
        lines = [f"flags:{draw(st.sampled_from(['', ' ', ' ~', ' null', '  NULL']))}{remark}"]
    elif kind == "empty":
        lines = [draw(st.sampled_from(["{}", "{flags: }", "{flags: ~}", "flags: {}", "flags: { }", "~"])) + remark]
    elif kind == "flow":
        lines = [f"flags: {{{', '.join(_flow(name, {'state': 'shadow', 'was': 'off'}) for name in names)}}}{remark}"]
    elif kind == "whole flow":
        inside = [_flow(name, {"evidence": "e1", "state": '"off"'}) for name in names]
        lines = ["{flags: {" + f"{remark}{end}  , ".join(inside) + "}}" + remark]
    elif kind == "no flags":
        lines = [draw(st.sampled_from(["other: 1", "{other: [1]}", "other: |\n  text\n\n"])) + remark]
    elif kind == "block":
        pad = draw(st.sampled_from(["  ", "    ", " "]))
        lines = [f"flags:{remark}"]
        for name in names:
            lines += [*([f"{pad}# c over"] if draw(st.booleans()) else []), *draw(entries(name, pad))]
            lines += [""] if draw(st.integers(0, 4)) == 0 else []
    close = ["...", "# c after"] if marked and draw(st.booleans()) else []
    start = [draw(st.sampled_from(["---", "--- # c"]))] if marked else []
    text = end.join([*top, *start, *lines, *close]).replace("\n", end) if end != "\r\n" else "\r\n".join(
        one.replace("\r\n", "\n").replace("\n", "\r\n") for one in [*top, *start, *lines, *close]
    )  # fmt: skip
    return draw(st.sampled_from(["", "\ufeff"])) + text + draw(st.sampled_from(["", end, end * 2]))


@settings(max_examples=examples(2))
@given(files(), st.sampled_from([(), ("evidence", "percent")]))
def test_a_decision_changes_what_it_says_and_nothing_else(text: str, over: tuple[str, ...]) -> None:
    node, problems = read(text.removeprefix("\ufeff"), "f")
    if any(one.code != "E113" for one in problems):
        with pytest.raises(SpeckitError):
            write_decision(text, NAME, DECISION, "f", over)
        return
    before = plain(node) if node else None
    whole = dict(before) if isinstance(before, dict) else {}
    flags = dict(whole.get("flags") or {})
    old = {key: value for key, value in flags.get(NAME, {}).items() if key not in over}
    try:
        after = write_decision(text, NAME, DECISION, "f", over)
    except SpeckitError as error:
        refused = error.problems[0]
        assert (refused.code, f"Write it by hand: {NAME}: {{" in refused.hint) == ("E014", True)
        assert any(rare in text for rare in ("{other", "other:", "\n\n...")), repr(text)
        return
    assert said(after) == {**whole, "flags": {**flags, NAME: {**old, **DECISION}}}
    assert after.startswith("\ufeff") is text.startswith("\ufeff")
    assert re.findall("\r\n|\n|\r", after)[:1] in (re.findall("\r\n|\n|\r", text)[:1], ["\n"])
    if not over:  # what is taken out takes the remark on its own line along
        left = iter(re.split("(\r\n|[\n\r\x85\u2028\u2029])", after))
        for line in re.findall("# c[^\n\r\x85\u2028\u2029]*(?:\r\n|[\n\r\x85\u2028\u2029])?", text):
            remark = line.rstrip("\n\r\x85\u2028\u2029")
            assert any(piece.endswith(remark) for piece in left), (remark, after)
            if line != remark:
                assert next(left) == line[len(remark) :], (remark, after)


DECIDING = """
import sys
from pathlib import Path
from speckit_memory.engine.pipelines.flag_edits import decide
for number in range(10):
    decide(Path(sys.argv[1]), f"SPECKIT_P{sys.argv[2]}_{number}", {"state": "shadow"})
"""


@pytest.mark.usefixtures("processes")
def test_what_several_processes_decide_at_once_is_all_kept(tmp_path: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", DECIDING, tmp_path, str(place)]) for place in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    flags = said((tmp_path / FLAGS_FILE).read_text())
    assert isinstance(flags, dict)
    assert len(flags["flags"]) == 40
    assert [file.name for file in (tmp_path / FLAGS_FILE).parent.iterdir()] == ["flags.yaml"]


def test_a_decision_keeps_the_mode_of_the_file_and_the_link_to_it(tmp_path: Path) -> None:
    real, file = tmp_path / "ours.yaml", tmp_path / FLAGS_FILE
    real.write_bytes(b"# ours\r\nflags:\r\n")
    real.chmod(0o600)
    file.parent.mkdir()
    file.symlink_to(real)
    decide(tmp_path, NAME, DECISION)
    assert file.is_symlink()
    assert real.read_bytes() == f"# ours\r\nflags:\r\n  {ENTRY}\r\n".encode()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_where_nothing_may_be_written_the_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SpeckitError) as refused:
        decide(tmp_path, NAME, DECISION)
    assert str(refused.value.problems[0].message) == f"'{tmp_path / FLAGS_FILE}' cannot be written: permission denied"


def test_a_check_that_fails_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    def changed() -> None:
        raise SpeckitError("E127", "another process was faster")

    with pytest.raises(SpeckitError, match="another process was faster"):
        decide(tmp_path, NAME, DECISION, check=changed)
    assert not (tmp_path / FLAGS_FILE).exists()
