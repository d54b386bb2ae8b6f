from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import FLAGS_FILE, ROOT_VARIABLE, workspace_root
from speckit_memory.server.commands import cli
from speckit_memory.server.flags import flag_audit
from speckit_memory.server.flags.flag_audit import Audit, audit
from tests.server.doors import Run

TODAY = date(2026, 11, 22)
MET = "criterion: {metric: nDCG@10, direction: not_worse, margin: 0.005}"
GOOD = f"group: A, owner: search, since: 2026-11-01, expires: 2027-01-15, was: shadow, evidence: run 12, {MET}"


def audited(root: Path, text: str, day: date = TODAY) -> Audit:
    """The audit of a workspace that declares these flags."""
    file = root / FLAGS_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"flags:\n{text}")
    return audit({ROOT_VARIABLE: str(root)}, day)


def broken(root: Path, text: str) -> list[str]:
    return [problem.message for problem in audited(root, text).problems]


def test_the_shipped_flags_keep_their_rules(run: Run) -> None:
    ran = run("flags", "audit", "--json")
    assert (ran.status, ran.json["problems"]) == (0, [])
    assert run("flags", "audit").out.startswith(f"{ran.json['flags']} flags, no rule is broken\n")


def test_list_shows_the_shipped_flags(run: Run) -> None:
    assert run("flags", "list").status == 0
    assert len(run("flags", "list", "--json").json["flags"]) == run("flags", "audit", "--json").json["flags"]


def test_a_flag_in_order_breaks_no_rule(tmp_path: Path) -> None:
    found = audited(tmp_path, f"  SPECKIT_X: {{state: enabled, {GOOD}}}\n")
    assert (found.problems, found.remarks) == ([], [])
    assert found.flags[-1].as_json() == {
        "name": "SPECKIT_X",
        "state": "enabled",
        "percent": 100,
        "origin": f"{tmp_path / FLAGS_FILE}:2",
        "group": "A",
        "owner": "search",
        "since": "2026-11-01",
        "expires": "2027-01-15",
        "evidence": "run 12",
        "criterion": "nDCG@10 not worse by 0.005 over 200 queries",
        "age_days": 21,
    }


@pytest.mark.parametrize(
    ("facts", "messages"),
    [
        ("group: A, owner: o, since: 2026-11-01, evidence: e, was: shadow, " + MET,
         ["has no date (YYYY-MM-DD) in 'expires'"]),
        ("group: Z, since: 2026-11-01, expires: 2026-12-01, evidence: e, was: shadow, " + MET,
         ["names no owner", "belongs to group 'Z', accepted: A, B, C, D"]),
        ("group: A, owner: o, since: 2026-08-01, expires: 2026-10-01, evidence: e, was: shadow, " + MET,
         ["expired on 2026-10-01"]),
        ("group: A, owner: o, since: 2026-11-01, expires: 2027-03-01, evidence: e, was: shadow, " + MET,
         ["may live 120 days, accepted: at most 90"]),
    ],
)  # fmt: skip
def test_every_broken_rule_is_named(facts: str, messages: list[str], tmp_path: Path) -> None:
    told = broken(tmp_path, f"  SPECKIT_X: {{state: enabled, {facts}}}\n")
    assert told == [f"SPECKIT_X {message}" for message in messages]


def test_a_permanent_flag_does_not_expire(tmp_path: Path) -> None:
    facts = "group: A, owner: o, since: 2025-01-01, expires: 2025-03-01, evidence: e, was: enabled, " + MET
    assert broken(tmp_path, f"  SPECKIT_X: {{state: permanent, {facts}}}\n") == []


def test_a_seventh_active_flag_is_one_too_many(tmp_path: Path) -> None:
    six = "".join(f"  SPECKIT_{n}: {{state: enabled, {GOOD}}}\n" for n in range(6))
    assert broken(tmp_path, six + f"  SPECKIT_OFF: {{state: off, {GOOD}}}\n".replace("was: shadow", "was: off")) == []
    [message] = broken(tmp_path, six + f"  SPECKIT_7: {{state: enabled, {GOOD}}}\n")
    assert message.startswith(
        f"7 flags are active, accepted: at most 6; active: SPECKIT_0 enabled ({tmp_path / FLAGS_FILE}:2)"
    )


LATER = date(2028, 1, 1)


def test_expired_shipped_flags_are_told_to_a_user_and_fail_the_project_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flag_audit, "today", lambda: LATER)
    temporary = [flag for flag in audit({}, LATER).flags if flag.state != "permanent"]
    assert cli.run(["flags", "audit"]) == 0
    told = capsys.readouterr().out
    assert f"remark: {len(temporary)} shipped flags expired on 2027-02-20; they work as before, " in told
    assert cli.run(["flags", "list"]) == 0
    assert "shipped flags expired on 2027-02-20" in capsys.readouterr().err
    assert cli.run(["flags", "audit", "--strict", "--json"]) == 1
    assert capsys.readouterr().out.count(" expired on 2027-02-20") >= len(temporary)


def test_the_projects_own_checks_are_strict() -> None:
    checks = (workspace_root(Path(__file__).parent) / ".ci" / "run").read_text()
    assert "\n$bin/speckit-memory flags audit --strict\n" in checks


def test_flags_of_a_file_of_ones_own_expire(tmp_path: Path) -> None:
    found = audited(tmp_path, f"  SPECKIT_X: {{state: enabled, {GOOD}}}\n", LATER)
    assert [problem.message for problem in found.problems] == ["SPECKIT_X expired on 2027-01-15"]
    assert all(" shipped flags " in remark for remark in found.remarks)
