from __future__ import annotations

import random
import string
from base64 import b64encode

import pytest

from speckit_memory.memory.intake import secrets
from speckit_memory.memory.intake.secrets import ALLOW, KINDS, Secret, examine, identifier, redact, secret_kind_of_name

# Made up here and put together at run time, so that no scanner takes this file for a leak.
_CHARACTERS = random.Random(7).choices(string.ascii_letters + string.digits, k=4000)


def _random(count: int, start: int = 0) -> str:
    return "".join(_CHARACTERS[start : start + count])


def _hex(count: int) -> str:
    return "".join(random.Random(count).choices("0123456789abcdef", k=count))


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
        "pypi-AgE" + _random(80), "SG." + _random(22) + "." + _random(43), "dop_v1_" + _hex(64), "doo_v1_" + _hex(64),
        "AC" + _hex(32), "SK" + _hex(32), "shpat_" + _hex(32), "dckr_pat_" + _random(27), "GOCSPX-" + _random(28),
        "glsa_" + _random(32) + "_" + _hex(8), "rubygems_" + _hex(48), "xapp-1-" + _random(30), "gldt-" + _random(20),
    ),
    "webhook": ("T0" + _random(8) + "/B0" + _random(8) + "/" + _random(24),),
    "bot token": ("123456789:AA" + _random(33), "9876543210:AAH" + _random(32)),
    "basic authorization": (b64encode(b"deploy:hunter-two").decode(), b64encode(b"a:b").decode()),
    "password in netrc": ("sesame-open",),
    "github token": ("ghp_" + _random(36), "github_pat_" + _random(82)),
    "aws key": ("AKIA" + "IOSFODNN7ABCDEFG",),
    "aws secret": (_random(40),),
    "jwt": (JWT,),
    "bearer token": (_random(24),),
    "password in address": ("s3cr3t-pw",),
    "password": ("hunter2hunter", "winter24", "0pen-Sesame"),
    "e-mail address": ("jane.doe@firm.io",),
    "random characters": (_random(44),),
}  # fmt: skip
FRAMES = {
    "aws secret": "aws_secret_access_key = {}",
    "bearer token": "Authorization: Bearer {}",
    "password in address": "postgres://app:{}@db.internal:5432/app",
    "password": "DB_PASSWORD={}",
    "random characters": "signing token is `{}` here",
    "webhook": "curl -d hi https://hooks.slack.com/services/{}",
    "basic authorization": "curl -H 'Authorization: Basic {}' https://x.io",
    "password in netrc": "machine api.firm.io login deploy password {}",
}
NEAR_MISS = {
    "private key": "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n<out>",
    "api key": "task-list sk-learn sk-estimator-with-a-long-name-2 risk-" + "a" * 30 + " npm_config xoxo-hugs"
        " ACCESS SKIP AC" + "0" * 31 + " dop_v1_short",
    "webhook": "https://hooks.slack.com/services and discord.com/api/webhooks/ID/TOKEN",
    "bot token": "12:30:45 127.0.0.1:8080 2024112612:" + "a" * 35 + " 12345678:9",
    "basic authorization": "Basic authentication, BASIC features, basic Abcdefgh, Authorization: Basic <credentials>",
    "password in netrc": "a machine learning password, the default password is long, machine x login"
        " <you> password <p>",
    "github token": "ghp_short github_pattern ghs_" + "a" * 20,
    "aws key": "AKIAshort AKIA" + "lowercaselowerca",
    "aws secret": "aws_secret_access_key = $AWS_SECRET aws region eu-west-1",
    "jwt": "eyJust a word. eyJ.eyJ.x",
    "bearer token": "the bearer of this letter; bearer token; Bearer <token>; bearer authentication-is-required",
    "password in address": "https://host:8080/path ssh://git@host/x http://[::1]:80/ https://user:${PASSWORD}@host",
    "password": "password: required; token = next(tokens); secret: changeme123; api_key: <your-key-1>"
        "\ntoken: process.env.API_KEY_2\npassword=self.password2\nSECRET=/run/secrets/db1\nAPI_KEY=GITHUB_TOKEN_2"
        "\nprivateKey: Uint8Array\nPrivateKey = hpke.X25519PrivateKey\ntoken = __pyx_t_2;"
        "\nf(user=a, password=other, x)\nsecret: my-db-credentials-v1\ntoken: sha256:0a1b2c3d4e5f\ncd x; PWD=/home/u1/x"
        "\nDB_PASSWORD=$DB_PASSWORD1\nServer=db;Uid=app;Pwd=password;\ncd a; pwd=$(pwd); pwd",
    "e-mail address": "someone@example.com git@github.com:o/r.git @decorator a@b noreply@firm.io",
    "random characters": " ".join((
        "d" * 40, "3f2504e0-4f89-11d3-9a0c-0305e82c3301" * 2, "0123456789abcdef" * 4,
        "docs/decisions/0052-How-Many-Documents-Are-Indexed-At-Once-In-2026", "https://x.io/d/" + _random(44),
        "sha256=" + _random(44), "test_that_a_very_long_name_of_a_Test_is_left_alone_123",
        "_ZN4node9inspector5Agent5StartERKSsRKNS_12Debug",
        "_RNvXs5_NtCsfoZvY4X7LwA_4core3fmtRINtNtB5_6option6OptionhENtB5_5Debug3fmt",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + _random(43), "public_key: " + _random(60), "h1:" + _random(43) + "=",
        "cacheKey: " + _random(44), "the value " + _random(44) + " here", "data:image/png;base64," + _random(80),
        "integrity: sha512-" + _random(86) + "==",
    )) + "\n-----BEGIN CERTIFICATE-----\n" + _random(64) + "\n" + _random(64, 64) + "\n" + _random(44, 9)
    + "\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\n" + _random(64, 7) + "\n-----END PUBLIC KEY-----",
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
    assert secret_kind_of_name(f"cache/{_random(44)}.md") == ""
    assert secret_kind_of_name(f"notes/{'ghp_' + _random(36)}.md") == "github token"
    assert _random(36) not in secrets.in_name(f"notes/{'ghp_' + _random(36)}.md", "github token").message


@pytest.mark.requirement("I9.secrets")
@pytest.mark.parametrize(
    "text",
    [
        "Server=db.firm.io;Database=shop;Uid=app;Pwd={};Encrypt=yes",
        "Pwd={};Server=db.firm.io",
        'ConnectionString="Data Source=db;User ID=app;Password={}"',
        "jdbc:mysql://db.firm.io/shop?user=app&password={}&ssl=true",
        "host=db.firm.io port=5432 dbname=shop user=app password={}",
        "machine api.firm.io\n  login deploy\n  password {}",
        "machine api.firm.io password {}",
        "default login anonymous password {}",
        "SECRET_KEY = '{}1'",
        '"clientSecret": "{}1"',
        "x-api-key: {}1",
        "passphrase => {}1",
    ],
)
def test_passwords_are_found_where_configurations_have_them(text: str) -> None:
    kept, found = redact(text.format("opensesame"))

    assert "opensesame" not in kept
    assert len(found) == 1


@pytest.mark.requirement("I9.suspicions")
def test_what_is_random_and_nothing_more_is_told_and_stays() -> None:
    text = f"# Title\n\nthe value {_random(44)} here\nsigning token is `{_random(44, 50)}`\n"

    kept, found, suspicions = examine(text)

    assert kept == f"# Title\n\nthe value {_random(44)} here\nsigning token is `(redacted random characters)`\n"
    assert found == (Secret("random characters", 4),)
    assert suspicions == (Secret("random characters", 3),)


@pytest.mark.requirement("I9.suspicions")
@pytest.mark.parametrize(
    "text",
    [
        f"-----BEGIN CERTIFICATE-----\n{_random(64)}\n{_random(64, 64)}\n{_random(44, 9)}\n-----END CERTIFICATE-----",
        f"> {_random(76)}\n> {_random(50, 76)}=",
        f'  "{_random(64)}" +\n  "{_random(48, 7)}",',
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_random(43)} me@host",
        "_ZN4node9inspector5Agent5StartERKSsRKNS_12Debug",
        "_RNvXs5_NtCsfoZvY4X7LwA_4core3fmtRINtNtB5_6option6OptionhENtB5_5Debug3fmt",
        f"integrity sha512-{_random(86)}==",
        f"golang.org/x/net v0.1.0 h1:{_random(43)}=",
        f"https://host/file/{_random(44)}",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    ],
)
def test_certificates_symbols_and_digests_are_not_even_suspicious(text: str) -> None:
    assert examine(text) == (text, (), ())


def test_a_name_that_holds_a_secret_is_another_one_and_the_same_each_time() -> None:
    token = "ghp_" + _random(36)

    assert identifier("session 7") == "session 7"
    assert identifier(token) == identifier(token) != identifier("ghp_" + _random(36, 40))
    assert token not in identifier(token)
    assert identifier(f"password=1{_random(12)}") == "password=(redacted password)"


@pytest.mark.requirement("I9.suspicions")
@pytest.mark.timeout(60)  # the whole line was copied for each of them
def test_suspicions_are_found_in_linear_time_in_a_text_of_one_line() -> None:
    assert len(examine(f"{_random(44)} " * 15_000)[2]) == 15_000
