from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from isolated.distributions import installed

from speckit_memory.errors import SpeckitError
from speckit_memory.server.commands.cli import GROUPS
from speckit_memory.server.console.failures import by_interrupt
from speckit_memory.server.operations.catalogue import COMMANDS
from tests.server.doors import COMMAND, Run, call, environment


def test_help_names_every_command_under_a_heading_with_a_whole_sentence(run: Run) -> None:
    sections = re.findall(r"^([A-Z][\w -]+):\n((?:  .+\n?)+)", run("--help").ok().out, re.MULTILINE)
    listed = {heading: re.findall(r"^  (\S+)", rows, re.MULTILINE) for heading, rows in sections}

    assert list(listed) == ["Options", "Daily work", "Set-up", "Tuning", "Administration"]
    assert listed["Daily work"][:2] == ["search", "index"]
    named = [name for heading, names in listed.items() if heading != "Options" for name in names]
    assert sorted(named) == sorted({command.split()[0] for command in COMMANDS})
    sentences = [*GROUPS.values(), *(sentence for _, _, sentence in COMMANDS.values())]
    assert [told for told in sentences if not re.fullmatch(r"[A-Z].*[^.]\.", told) or len(told) > 120] == []


def test_version_is_the_installed_one(run: Run) -> None:
    from importlib.metadata import version

    assert run("--version").out == f"speckit-memory {version('speckit-memory')}\n"


@pytest.mark.parametrize("group", [[], ["flags"], ["eval"], ["pipeline"]])
def test_a_group_without_a_command_shows_its_help(run: Run, group: list[str]) -> None:
    ran = run(*group)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == run(*group, "--help").out


@pytest.mark.requirement("T26")
def test_an_unknown_command_offers_the_nearest_one(run: Run) -> None:
    ran = run("serch", "x")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error E200: no command 'serch'; did you mean 'search'?\n  hint: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "--json"], "Missing argument 'QUERY'."),
        (["search", "x", "--json", "--colour"], "No such option"),
        (["search", "x", "--json", "--set", "k=3"], "Invalid value for '--set': 'k=3' is not of the form"),
        (["search", "x", "--json", "--set", "bm25.b="], "Invalid value for '--set': 'bm25.b=' gives no value"),
        (["pipeline", "--json", "chekc"], "No such option"),
        (["eval", "run", "--json"], "give --dataset DIR, or --own"),
        (["index", "--json"], "Missing argument 'PATH...'"),
    ],
)
def test_wrong_usage_is_one_json_document_with_code_e200(run: Run, arguments: list[str], message: str) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    error = ran.json["error"]
    assert error["code"] == "E200"
    assert message in error["message"]
    assert error["hint"]
    assert error["actions"]


@pytest.mark.parametrize("arguments", [["doctor", "--quick", "deep"], ["search", "x", "--mode", "slow"]])
def test_a_name_that_is_like_no_other_is_not_taken_for_one(run: Run, arguments: list[str]) -> None:
    assert "did you mean" not in run(*arguments).ended(2).err.lower()


@pytest.mark.parametrize(
    ("typed", "meant"), [("--verbsoe", "--verbose"), ("--details", "--verbose"), ("--pipline", "--pipeline")]
)
def test_a_misspelt_option_and_another_programs_word_for_it_are_resolved(run: Run, typed: str, meant: str) -> None:
    assert f"No such option '{typed}'; did you mean '{meant}'?" in run("search", "x", typed).ended(2).err


def test_a_json_flag_behind_the_separator_is_no_option(run: Run) -> None:
    ran = run("pipeline", "check", "--", "--json")
    assert (ran.status, ran.out) == (2, "")
    assert "E121" in ran.err


@pytest.mark.usefixtures("processes")
def test_a_reader_that_goes_away_ends_the_command_quietly(indexed: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "pipeline", "schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(indexed),
        cwd=indexed,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.usefixtures("processes")
def test_an_interrupt_ends_with_130_and_the_store_stays_whole(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(4000):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\n" + f"word{number} and more text. " * 40)
    store = tmp_path / "memory.db"
    with subprocess.Popen(
        [COMMAND, "index", "docs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
        # A shell lets what it runs in the background ignore interrupts, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        while not store.exists() or not store.stat().st_size:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, err) == (130, b"interrupted\n")
    doctor = call(tmp_path, ["doctor", "--json"])
    [check] = [check for check in doctor.json["checks"] if check["name"] == "store"]
    assert check["verdict"] == "ok"


@pytest.mark.parametrize("by", [KeyboardInterrupt, ValueError])
def test_an_error_of_clearing_up_after_an_interrupt_counts_as_the_interrupt(by: type[BaseException]) -> None:
    def clear_up() -> None:
        try:
            raise by
        finally:
            raise SpeckitError("E021", "no such savepoint")

    with pytest.raises(SpeckitError) as raised:
        clear_up()
    assert by_interrupt(raised.value) is (by is KeyboardInterrupt)


@pytest.mark.usefixtures("processes")
def test_an_internal_error_is_e199_and_its_traceback_is_for_debugging_only(indexed: Path, tmp_path: Path) -> None:
    # an extension that replaces a function of the product while it is registered is a defect nobody foresaw
    source = (
        "import speckit_memory.config.pipelines.document\n\n\ndef read(text, name):\n    raise KeyError('secret')\n\n\n"
        "def register(registry):\n    speckit_memory.config.pipelines.document.read_yaml = read\n"
    )
    installed(tmp_path, "broken", source)
    trusted = {"PYTHONPATH": str(tmp_path), "SPECKIT_EXTENSIONS": "trusted"}
    ran = call(indexed, ["pipeline", "check", "default", "--json"], trusted)
    assert ran.status == 1
    assert ran.json["error"]["code"] == "E199"
    assert "secret" not in ran.out + ran.err
    with_debug = subprocess.run(
        [COMMAND, "pipeline", "check", "default", "--json"],
        capture_output=True,
        check=False,
        env=environment(indexed, **trusted, SPECKIT_DEBUG="1"),
    )
    assert json.loads(with_debug.stdout)["error"]["code"] == "E199"
    assert b"Traceback" in with_debug.stderr


def test_help_is_a_command_too_and_the_version_has_a_short_option(run: Run) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "search").out == run("search", "--help").out
    assert run("help", "links", "add").out == run("links", "add", "--help").out
    unknown = run("help", "links", "ad")
    assert unknown.status == 2
    assert "no command 'ad'; did you mean 'add'?" in unknown.err
    assert "no command 'more'; nothing is accepted here" in run("help", "search", "more").err
    assert run("-V").out == run("--version").out
