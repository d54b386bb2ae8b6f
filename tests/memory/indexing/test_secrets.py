from __future__ import annotations

import random
import string

import pytest

from speckit_memory.memory.indexing import secrets
from speckit_memory.memory.indexing.secrets import ALLOW, KINDS, Secret, named, redact

# Made up here and put together at run time, so that no scanner takes this file for a leak.
_CHARACTERS = random.Random(7).choices(string.ascii_letters + string.digits, k=4000)


def _random(count: int, start: int = 0) -> str:
    return "".join(_CHARACTERS[start : start + count])


KEY_BLOCK = (
    "-----BEGIN RSA PRIVATE"
    + " KEY-----\n"
    + "\n".join(_random(64, 64 * at) for at in range(4))
    + "\n-----END RSA PRIVATE KEY-----"
)
JWT = "eyJ" + _random(30) + ".eyJ" + _random(50) + "." + _random(43)
POSITIVE = {
    "private key": (KEY_BLOCK,),
    "api key": (
        "sk-" + _random(48), "sk-proj-" + _random(60), "sk-ant-" + _random(40),
        "sk_live_" + _random(24), "AIza" + _random(35),
        "xoxb-" + "1234567890-" + _random(24), "glpat-" + _random(20), "npm_" + _random(36), "hf_" + _random(34),
        "pypi-AgE" + _random(80), "SG." + _random(22) + "." + _random(43),
    ),
    "github token": ("ghp_" + _random(36), "github_pat_" + _random(82)),
    "aws key": ("AKIA" + "IOSFODNN7ABCDEFG",),
    "aws secret": (_random(40),),
    "jwt": (JWT,),
    "bearer token": (_random(24),),
    "password in address": ("s3cr3t-pw",),
    "password": ("hunter2hunter",),
    "e-mail address": ("jane.doe@firm.io",),
    "random characters": (_random(44),),
}  # fmt: skip
FRAMES = {
    "aws secret": "aws_secret_access_key = {}",
    "bearer token": "Authorization: Bearer {}",
    "password in address": "postgres://app:{}@db.internal:5432/app",
    "password": "DB_PASSWORD={}",
    "random characters": "the value {} here",
}
NEAR_MISS = {
    "private key": "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n<out>",
    "api key": "task-list sk-learn sk-estimator-with-a-long-name risk-" + "a" * 30 + " npm_config xoxo-hugs",
    "github token": "ghp_short github_pattern ghs_" + "a" * 20,
    "aws key": "AKIAshort AKIA" + "lowercaselowerca",
    "aws secret": "aws_secret_access_key = $AWS_SECRET aws region eu-west-1",
    "jwt": "eyJust a word. eyJ.eyJ.x",
    "bearer token": "the bearer of this letter; bearer token; Bearer <token>; bearer authentication-is-required",
    "password in address": "https://host:8080/path ssh://git@host/x http://[::1]:80/ https://user:${PASSWORD}@host",
    "password": "password: required; token = next(tokens); secret: changeme123; api_key: <your-key-1>",
    "e-mail address": "someone@example.com git@github.com:o/r.git @decorator a@b noreply@firm.io",
    "random characters": " ".join((
        "d" * 40, "3f2504e0-4f89-11d3-9a0c-0305e82c3301" * 2, "0123456789abcdef" * 4,
        "docs/decisions/0052-How-Many-Documents-Are-Indexed-At-Once-In-2026", "https://x.io/d/" + _random(44),
        "sha256=" + _random(44), "test_that_a_very_long_name_of_a_Test_is_left_alone_123",
        "_ZN4node9inspector5Agent5StartERKSsRKNS_12Debug",
    )),
}  # fmt: skip


@pytest.mark.requirement("I9.secrets")
@pytest.mark.parametrize(("kind", "secret"), [(kind, secret) for kind in KINDS for secret in POSITIVE[kind]])
def test_each_kind_of_secret_is_taken_out(kind: str, secret: str) -> None:
    line = FRAMES.get(kind, "{}").format(secret)

    text, found = redact(f"# Title\n\n{line}\nmore", addresses=True)

    assert found == (Secret(kind, 3),)
    assert all(part not in text for part in secret.split("\n"))
    assert f"(redacted {kind})" in text
    assert text.count("\n") == line.count("\n") + 3
    assert text.startswith("# Title\n\n")
    assert text.endswith("\nmore")


@pytest.mark.requirement("I9.secrets")
@pytest.mark.parametrize("kind", KINDS)
def test_what_only_looks_like_a_secret_stays(kind: str) -> None:
    assert redact(NEAR_MISS[kind], addresses=True) == (NEAR_MISS[kind], ())


@pytest.mark.requirement("I9.secrets")
def test_addresses_of_e_mail_go_only_where_that_is_wanted() -> None:
    assert redact("ask jane.doe@firm.io") == ("ask jane.doe@firm.io", ())


@pytest.mark.requirement("I9.secrets")
@pytest.mark.parametrize("mark", ALLOW)
def test_a_line_with_the_mark_is_left_alone_and_no_other(mark: str) -> None:
    secret = "ghp_" + _random(36)

    text, found = redact(f"{secret} <!-- {mark} -->\n{secret}\n")

    assert text == f"{secret} <!-- {mark} -->\n(redacted github token)\n"
    assert found == (Secret("github token", 2),)


@pytest.mark.requirement("I9.secrets")
def test_a_secret_within_another_is_told_once() -> None:
    text, found = redact(f"API_TOKEN={'ghp_' + _random(36)}; Authorization: Bearer {JWT}")

    assert [kind for kind, _ in found] == ["github token", "jwt"]
    assert text == "API_TOKEN=(redacted github token); Authorization: Bearer (redacted jwt)"


@pytest.mark.requirement("I9.secrets")
def test_a_name_that_is_random_alone_holds_no_secret() -> None:
    assert named(f"cache/{_random(44)}.md") == ""
    assert named(f"notes/{'ghp_' + _random(36)}.md") == "github token"
    assert _random(36) not in secrets.in_name(f"notes/{'ghp_' + _random(36)}.md", "github token").message
