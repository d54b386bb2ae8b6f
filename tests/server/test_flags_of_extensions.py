"""Flags that a distribution declares: in steps, in the environment and the workspace, and in commands; both modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from isolated.distributions import installed, step_source

from tests.server.doors import DOCUMENTS, Ran, call

pytestmark = pytest.mark.usefixtures("processes")

WORK = """\
titles = store.attributes.label("title", pool.candidates.parents)
return np.array([float(len(title)) for title in titles], np.float64)
"""
"""A signal that prefers long titles."""
FLAG = """\
    registry.add_flag("NAME", owner="the lengthy", since="SINCE", expires="EXPIRES", evidence="nDCG@10 better")
"""
PIPELINE = """\
pipeline: lengthy
fusion:
  - {use: rrf, id: fuse, normalise: min_max}
  - {use: length, flag: SPECKIT_LENGTHY_TITLES}
rerank: []
"""
MODES = ("trusted", "isolated")


def source(name: str = "SPECKIT_LENGTHY_TITLES", since: str = "2026-11-01", expires: str = "2027-01-15") -> str:
    text = step_source("length", "SIGNAL", WORK) + FLAG
    return text.replace("NAME", name).replace("SINCE", since).replace("EXPIRES", expires)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in DOCUMENTS.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text, encoding="utf-8")
    (tmp_path / "work" / "lengthy.yaml").write_text(PIPELINE, encoding="utf-8")
    (tmp_path / "work" / ".speckit").mkdir()
    installed(tmp_path / "path", "lengthy", source())
    return tmp_path / "work"


def told(root: Path, mode: str, *words: str, **more: str) -> Ran:
    paths = {"PYTHONPATH": str(root.parent / "path"), "SPECKIT_EXTENSIONS": mode}
    return call(root, words, {**paths, **more}, root)


@pytest.mark.parametrize("mode", MODES)
def test_a_step_waits_for_the_flag_of_its_extension_which_environment_and_workspace_switch(
    root: Path, mode: str
) -> None:
    def active(**more: str) -> bool:
        shown = told(root, mode, "pipeline", "show", "--pipeline", "lengthy.yaml", "--effective", **more)
        assert shown.status == 0, shown.err
        return "\n  - {use: length" in shown.out

    assert not active()
    assert active(SPECKIT_LENGTHY_TITLES="true")
    (root / ".speckit" / "flags.yaml").write_text("flags: {SPECKIT_LENGTHY_TITLES: {state: enabled}}\n")
    assert active()
    assert not active(SPECKIT_LENGTHY_TITLES="false")
    doctor = told(root, mode, "doctor", "--json")
    assert doctor.json["ok"], doctor.out
    assert "SPECKIT_LENGTHY_TITLES enabled" in doctor.out


@pytest.mark.parametrize("mode", MODES)
def test_the_commands_know_the_flag_and_where_it_is_declared(root: Path, mode: str) -> None:
    listed = told(root, mode, "flags", "list", "--json", SPECKIT_LENGTHY_TITLES="true")
    [flag] = [one for one in listed.json["flags"] if one["name"] == "SPECKIT_LENGTHY_TITLES"]
    assert (flag["state"], flag["origin"], flag["owner"]) == ("enabled", "environment", "the lengthy")
    assert "has no effect" not in listed.err
    [flag] = [one for one in told(root, mode, "flags", "list", "--json").json["flags"] if "LENGTHY" in one["name"]]
    assert flag["origin"] == "lengthy.py:24"

    installed(
        root.parent / "aged", "aged", source("SPECKIT_AGED", "2025-01-01", "2025-03-01").replace("length", "aged")
    )
    path = f"{root.parent / 'path'}:{root.parent / 'aged'}"
    audited = told(root, mode, "flags", "audit", PYTHONPATH=path)
    assert audited.status == 0
    assert "remark: 1 aged flag expired on 2025-03-01; they work as before" in audited.out
    strict = told(root, mode, "flags", "audit", "--strict", PYTHONPATH=path)
    assert strict.status == 1
    assert "aged.py:24:1: E124 SPECKIT_AGED expired on 2025-03-01" in strict.out + strict.err


@pytest.mark.parametrize("mode", MODES)
def test_a_flag_of_a_name_that_is_taken_is_refused_with_both_places(root: Path, mode: str) -> None:
    paths = [root.parent / "path"]
    for module, name in (("mmr_again", "SPECKIT_MMR"), ("second", "SPECKIT_LENGTHY_TITLES")):
        paths.append(installed(root.parent / module, module, source(name).replace('"length"', f'"{module}"')))
    said = told(root, mode, "doctor", PYTHONPATH=":".join(map(str, paths))).out
    words = " ".join(said.split())

    assert "two flags are called 'SPECKIT_MMR': config/flags.yaml:" in words
    assert "declares one, and mmr_again.py:24:1 another" in words
    assert "two flags are called 'SPECKIT_LENGTHY_TITLES': lengthy.py:24:1 declares one, and second.py:24:1" in words


def test_without_extensions_their_flags_are_unknown(root: Path) -> None:
    checked = told(root, "none", "pipeline", "check", "lengthy.yaml")

    assert checked.status != 0
    assert "the flag 'SPECKIT_LENGTHY_TITLES' is not declared" in checked.out + checked.err
