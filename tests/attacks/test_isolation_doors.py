"""Isolation as users meet it: the console script and the MCP server, with a distribution that is really installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from files import write_file
from isolated.distributions import installed
from tally import Tally

from tests.attacks.isolated import isolated, lost, served, workspace
from tests.server.doors import Ran, call

pytestmark = pytest.mark.usefixtures("processes")

QUESTION = "why are ranks fused"
BROKEN = "import os\n\n\ndef register(registry):\n    {deed}\n"
NAMED = "hostile_understander, hostile_channel, hostile_recoverer, hostile_signal, hostile_reranker, hostile_annotator"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workspace(tmp_path_factory.mktemp("doors"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("path"), "hostile_extension")


def search(root: Path, path: Path, question: str, pipeline: str = "hostile.yaml", **more: str) -> Ran:
    return call(root, ["search", question, "--pipeline", root / pipeline, "--json"], isolated(path, **more))


@pytest.mark.parametrize(
    ("role", "deed", "reason"),
    [("channel", "exit", "its process ended with status 7"), ("annotator", "loop", "it did not answer within ")],
)
def test_the_console_script_answers_without_the_lost_step(
    root: Path, path: Path, role: str, deed: str, reason: str, tally: Tally
) -> None:
    question = f"{QUESTION} zz-{role}-{deed}"
    ran = search(root, path, question, SPECKIT_DEADLINE_MS="3000").ok()
    assert lost(ran.json)[f"hostile_{role}"].startswith(reason)
    assert served(ran.json) == served(search(root, path, question, "plain.yaml").json)
    tally.survived()


def test_what_an_extension_prints_stands_in_the_log_and_not_in_the_answer(root: Path, path: Path, tally: Tally) -> None:
    ran = search(root, path, f"{QUESTION} zz-signal-chatter")
    assert lost(ran.json) == {}
    told = [line for line in ran.err.splitlines() if line.startswith("an extension (process ")]
    assert len(told) == len(ran.err.splitlines()) == 101
    assert told[-1].endswith("wrote more than 100 lines")
    tally.tried()


@pytest.mark.parametrize(
    ("deed", "reason"),
    [("os._exit(7)", "its process ended with status 7"), ("raise KeyError('secret')", "KeyError: 'secret'")],
)
def test_an_extension_that_cannot_be_loaded_stops_no_other(
    root: Path, path: Path, tmp_path: Path, deed: str, reason: str, tally: Tally
) -> None:
    both = installed(tmp_path, "broken_extension", BROKEN.format(deed=deed))
    env = isolated(path, PYTHONPATH=f"{both}{os.pathsep}{path}")
    other = call(root, ["search", QUESTION, "--pipeline", root / "hostile.yaml", "--json"], env)
    assert other.json["notes"]["degraded"] == []
    doctor = {check["name"]: check for check in call(root, ["doctor", "--json"], env).json["checks"]}
    assert doctor["extensions"]["verdict"] == "fail"
    assert doctor["search"]["verdict"] == "ok"
    assert f"broken_extension: {reason}" in doctor["extensions"]["detail"]
    file = write_file(tmp_path / "wanting.yaml", "annotate: [broken_step]\n")
    problem = call(root, ["pipeline", "check", file, "--json"], env).json["error"]
    assert problem["code"] == "E116"
    assert f"; the extension 'broken_extension' could not be loaded: {reason}" in problem["message"]
    tally.survived()


def test_the_workspace_says_where_extensions_run(root: Path, path: Path, tally: Tally) -> None:
    env = {"PYTHONPATH": str(path), "SPECKIT_PIPELINE": str(root / "hostile.yaml")}
    config = root / ".speckit" / "config.yaml"
    config.parent.mkdir(exist_ok=True)
    try:
        assert (
            f"# from the extension hostile_extension (isolated): {NAMED}" in call(root, ["pipeline", "show"], env).out
        )
        config.write_text("extensions: trusted\n", encoding="utf-8")
        assert f"# from the extension hostile_extension (trusted): {NAMED}" in call(root, ["pipeline", "show"], env).out
        config.write_text("extensions: none\n", encoding="utf-8")
        refused = call(root, ["pipeline", "show"], env).ended(2)
        assert "not loaded: the components of hostile_extension" in refused.err
    finally:
        config.unlink(missing_ok=True)
    tally.tried(3)


def test_isolated_components_are_checked_and_described_like_others(root: Path, path: Path, tally: Tally) -> None:
    file = write_file(root / "wrong.yaml", "annotate: [{use: hostile_annotator, pipe: 3}, {use: hostile_signal}]\n")
    ran = call(root, ["pipeline", "check", file, "--json"], isolated(path))
    messages = [problem["message"] for problem in ran.json["errors"]]
    assert messages[0] == "'pipe' of the step 'hostile_annotator': must be a text; found 3"
    assert "it belongs to 'fusion'" in messages[1]
    schema = call(root, ["pipeline", "schema"], isolated(path)).json
    assert schema["$defs"]["hostile_annotator"]["properties"]["pipe"]["description"] == "A named pipe to hold open."
    tally.tried(2)


@pytest.mark.parametrize("mode", ["isolatd"])
def test_another_word_is_refused_with_the_accepted_ones(root: Path, path: Path, mode: str, tally: Tally) -> None:
    error = call(root, ["search", QUESTION, "--json"], isolated(path, SPECKIT_EXTENSIONS=mode)).refused("E030")
    assert f"SPECKIT_EXTENSIONS is '{mode}'; " in error["message"]
    tally.tried()


def test_secrets_of_the_environment_stay_with_the_server(root: Path, tmp_path: Path, tally: Tally) -> None:
    keys = "repr(sorted(n for n in os.environ if 'KEY' in n))"
    source = f"import os\n\n\ndef register(registry):\n    raise LookupError({keys})\n"
    path = installed(tmp_path, "curious_extension", source)
    env = isolated(path, OPENAI_API_KEY="secret", AWS_SECRET_ACCESS_KEY="secret", PYTHON_KEY="kept")
    doctor = call(root, ["doctor", "--json"], env).json
    [check] = [check for check in doctor["checks"] if check["name"] == "extensions"]
    assert "LookupError: ['PYTHON_KEY']" in check["detail"]
    tally.tried()
