from __future__ import annotations

from datetime import date

import pytest

from server.flag_audit import audit
from tests.server.doors import Run

TODAY = date(2026, 11, 22)
GOOD = "group: A, owner: search, since: 2026-11-01, expires: 2027-01-15, evidence: run 12"


def broken(text: str) -> list[str]:
    _, problems = audit({}, TODAY, "flags:\n" + text)
    return [problem.message for problem in problems]


def test_the_shipped_flags_keep_their_rules(run: Run) -> None:
    ran = run("flags", "audit", "--json")
    assert (ran.status, ran.json["problems"]) == (0, [])


def test_list_shows_the_shipped_flags(run: Run) -> None:
    assert run("flags", "list").status == 0
    assert len(run("flags", "list", "--json").json["flags"]) == run("flags", "audit", "--json").json["flags"]


def test_a_flag_in_order_breaks_no_rule() -> None:
    flags, problems = audit({}, TODAY, f"flags:\n  SPECKIT_X: {{state: shadow, {GOOD}}}\n")
    assert problems == []
    assert flags[0].as_json() == {
        "name": "SPECKIT_X",
        "state": "shadow",
        "origin": "config/flags.yaml:2",
        "group": "A",
        "owner": "search",
        "since": "2026-11-01",
        "expires": "2027-01-15",
        "evidence": "run 12",
        "age_days": 21,
    }


@pytest.mark.parametrize(
    ("facts", "messages"),
    [
        ("group: A, owner: o, since: 2026-11-01, evidence: e", ["has no date (YYYY-MM-DD) in 'expires'"]),
        ("group: Z, since: 2026-11-01, expires: 2026-12-01, evidence: e",
         ["names no owner", "belongs to group 'Z', accepted: A, B, C, D"]),
        ("group: A, owner: o, since: 2026-08-01, expires: 2026-10-01, evidence: e", ["expired on 2026-10-01"]),
        ("group: A, owner: o, since: 2026-11-01, expires: 2027-03-01, evidence: e",
         ["may live 120 days, accepted: at most 90"]),
    ],
)  # fmt: skip
def test_every_broken_rule_is_named(facts: str, messages: list[str]) -> None:
    assert broken(f"  SPECKIT_X: {{state: enabled, {facts}}}\n") == [f"SPECKIT_X {message}" for message in messages]


def test_a_permanent_flag_does_not_expire() -> None:
    facts = "group: A, owner: o, since: 2025-01-01, expires: 2025-03-01, evidence: e"
    assert broken(f"  SPECKIT_X: {{state: permanent, {facts}}}\n") == []


def test_a_seventh_active_flag_is_one_too_many() -> None:
    six = "".join(f"  SPECKIT_{n}: {{state: enabled, {GOOD}}}\n" for n in range(6))
    assert broken(six + f"  SPECKIT_OFF: {{state: off, {GOOD}}}\n".replace("off", '"off"')) == []
    [message] = broken(six + f"  SPECKIT_7: {{state: dark_run, {GOOD}}}\n")
    assert message.startswith("7 flags are active, accepted: at most 6; active: SPECKIT_0, ")
