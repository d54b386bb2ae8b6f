"""Advice that fits what was typed or written, through the installed command."""

from __future__ import annotations

from pathlib import Path

import judged_sets

from tests.server.doors import call

NAME = "SPECKIT_RSF_FUSION"
OWN = "group: A, owner: us, since: 2099-01-01, expires: 2099-02-01, criterion: {metric: nDCG@10, direction: better}"


def flags(root: Path, *entries: str) -> Path:
    file = root / ".speckit" / "flags.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(["flags:", *(f"  {entry}" for entry in entries), ""]), encoding="utf-8")
    return file


def test_a_flag_that_begins_in_future_breaks_a_rule(tmp_path: Path) -> None:
    file = flags(tmp_path, f"SPECKIT_OWN: {{state: off, {OWN}}}".replace("off", '"off"'))
    audited = call(tmp_path, ["flags", "audit"]).ended(1)
    assert f"{file}:2:3: E124 SPECKIT_OWN begins on 2099-01-01, which is still to come" in audited.out
    (listed,) = [
        one for one in call(tmp_path, ["flags", "list", "--json"]).json["flags"] if one["name"] == "SPECKIT_OWN"
    ]
    assert listed["age_days"] is None


def test_what_is_wrong_with_an_entry_points_to_flags(tmp_path: Path) -> None:
    for entry in (f"{NAME}: {{state: shaddow}}", f"{NAME}: {{state: enabled, percent: 200}}", f"{NAME}: shadow"):
        flags(tmp_path, entry)
        told = call(tmp_path, ["flags", "audit"]).out
        assert "E114" in told
        assert "see `speckit-memory flags list`, and docs/flags.md" in " ".join(told.split())
        assert "pipeline schema" not in told


def test_a_broken_rule_comes_with_advice_that_fits(tmp_path: Path) -> None:
    flags(tmp_path, f"{NAME}: {{state: enabled}}", "SPECKIT_OWN: {state: shadow, was: dark_run, owner: us}")
    told = " ".join(call(tmp_path, ["flags", "audit"]).out.split())
    assert f"set it back to off, then `speckit-memory flags promote {NAME}`" in told
    assert f"`speckit-memory flags demote {NAME}`, and promote it by a comparison that meets its criterion" in told
    assert "SPECKIT_OWN belongs to no group, accepted: A, B, C, D" in told
    assert "make the flag permanent" not in told


def test_an_empty_variable_decides_nothing(tmp_path: Path) -> None:
    listed = call(tmp_path, ["flags", "list", "--json"], env={NAME: ""}).ok()
    assert {one["state"] for one in listed.json["flags"] if one["name"] == NAME} == {"off"}


def test_the_dataset_that_ships_is_offered_for_a_misspelt_name(tmp_path: Path) -> None:
    for command in (["eval", "run"], ["eval", "gate", "--against", "bm25"]):
        refused = call(tmp_path, [*command, "--dataset", "bundeld"]).ended(2)
        assert refused.err.count("E123") == 1
        assert "did you mean 'bundled', the dataset that ships?" in " ".join(refused.err.split())


def test_a_file_without_judgements_is_told_as_none_in_few_lines(tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    run.write_text("q Q0 d 1 2.0 one\nq Q0 d 1 2.0 two\n", encoding="utf-8")
    wrong = tmp_path / "r.json"
    wrong.write_text("{\n" + '  "a": 1,\n' * 200 + "}\n", encoding="utf-8")
    for named in (wrong, tmp_path / "nosuch.qrels"):
        told = call(tmp_path, ["eval", "compare", "--run-file", run, "--qrels", named, "--no-keep"]).err
        assert 0 < told.count("E123") <= 6
        assert "This is not a qrels file: " in " ".join(told.split())
        assert "BEIR layout" not in told


def test_too_few_queries_for_a_criterion_are_told(tmp_path: Path) -> None:
    few = judged_sets.titles(tmp_path / "few", by_title=3, by_text=3, by_mention=3)
    compared = call(tmp_path, ["eval", "compare", "--dataset", few, "--flag", NAME, "--no-keep", "--json"]).ok()
    assert f"9 queries are too few as evidence for {NAME}, whose criterion needs 200" in compared.json["warnings"]
