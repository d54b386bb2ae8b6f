"""Every setting of `.speckit/config.yaml`: its default, what it accepts, what is refused where, and who decides."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.config.workspace.options import (
    KEYS,
    RecordingOptions,
    SavingRules,
    VectorIndexing,
    WorkspaceConfig,
)
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.config.workspace.workspace_file import (
    VARIABLES,
    load_workspace_config,
    profile_in_force,
    read_workspace_config,
)
from speckit_memory.errors import SpeckitError

MS = "a number of milliseconds, 0 for no deadline"
MB = "a whole number of megabytes from 256 up, or 0 for no limit"
DAYS = "a whole number of days from 1 to 3650"
SHARE = "a share of the queries from 0 to 1"
PASSAGES = 'a whole number of passages from 0 to 1000000000, "exact" or "off"'

SETTINGS: dict[str, tuple[object, str, dict[str, object], list[str]]] = {
    "store": (
        "", "the address of a store in PostgreSQL, postgresql://USER@HOST/DATABASE?workspace=NAME",
        {"postgresql://speckit@localhost/speckit": "postgresql://speckit@localhost/speckit"}, ["3", "memory.db", "[a]"],
    ),
    "read_from": (
        (), "a list of addresses",
        {"[postgresql://speckit@replica/speckit]": ("postgresql://speckit@replica/speckit",)}, ["3", "replica"],
    ),
    "read_lag_seconds": (30.0, "a number of seconds from 0 to 1,000,000", {"0": 0.0, "2.5": 2.5}, ["-1", "soon"]),
    "sources.include": (
        (), "a list of patterns, such as ['drafts/', '*.tmp.md']", {}, ["docs", "{a: 1}", "1"],
    ),
    "sources.exclude": (
        (), "a list of patterns, such as ['drafts/', '*.tmp.md']", {}, ["docs"],
    ),
    "sources.formats": ((), "a list of rst and html", {"[rst, html]": ("rst", "html")}, ["rst", "1"]),
    "deadline_ms": (
        2000.0, MS, {"250": 250.0, "1.5e3": 1500.0, "0": None, "1e300": 1e9}, ["true", "soon", "-1", "[1]"],
    ),
    "extensions": (
        "isolated", "one of trusted, isolated, none", {"trusted": "trusted", "none": "none"},
        ["apart", "[isolated]", "false"],
    ),
    "extensions_memory_mb": (2048, MB, {"0": 0, "4096": 4096}, ["255", "true", "1e3", "9999999999999", "2 GB"]),
    "evaluation.record": ("all", 'one of all, shadows, "off"', {"shadows": "shadows", '"off"': "off"}, ["some", "1"]),
    "evaluation.keep_texts": (
        7, "never, or a whole number of days up to 3650", {"never": 0, "0": 0, "30": 30}, ["always", "-1", "true"],
    ),
    "evaluation.keep_days": (90, DAYS, {"7": 7}, ["0", "true", "'7'", "3651"]),
    "evaluation.max_mb": (50, "a whole number of megabytes from 1 to 10000", {"5": 5}, ["0.5", "0", "[5]"]),
    "evaluation.observe": (0.05, SHARE, {"1": 1.0, "0": 0.0}, ["5", "-0.1", "true"]),
    "evaluation.sample": (1.0, SHARE, {"0.25": 0.25}, ["{a: 1}", "1.5"]),
    "vector_index": (
        VectorIndexing(200_000),
        PASSAGES,
        {"5000": VectorIndexing(5000), "exact": VectorIndexing(200_000, used=False),
         '"off"': VectorIndexing(None, used=False)},
        ["true", "-1", "1.5", "1000000001", "some", "[1]"],
    ),
    "saving.secrets": ("credentials", "one of credentials, all, keep", {"all": "all", "keep": "keep"}, ["none"]),
    "saving.quality": ("report", "one of report, mend, require", {"mend": "mend", "require": "require"}, ["[mend]"]),
    "saving.prediction_error": ("act", "one of act, report", {"report": "report"}, ["true"]),
    "saving.passages": ("all", "one of all, thinned", {"thinned": "thinned"}, ["some"]),
    "checkpoints.keep": (10, "a whole number from 1 to 1,000", {"1": 1, "1000": 1000}, ["0", "1001", "true", "1.5"]),
    "checkpoints.days": (None, "a number of days above 0, or null", {"0.5": 0.5, "null": None}, ["0", "x", "true"]),
    "absent_days": (
        90.0, "a number of days above 0 and below 1,000,000", {"0.5": 0.5}, ["0", "1000000", "'3'", "true"],
    ),
    "entities": ("off", 'one of "off", link', {"link": "link", '"off"': "off"}, ["1", "both"]),
    "profile": ("full", "one of core, full", {"core": "core"}, ["small", "[core]", "1"]),
}  # fmt: skip
"""By path: the default, what is accepted, YAML texts with their values, and YAML texts that are refused."""


def write(root: Path, text: str | bytes) -> Path:
    file = root / CONFIG_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def value(config: WorkspaceConfig, path: str) -> Any:
    found: Any = config
    for key in path.split("."):
        found = getattr(found, key)
    return found


def line_of(path: str, written: str) -> tuple[str, int]:
    """A file with one setting, and the column of its value."""
    *above, key = path.split(".")
    text = f"{key}: {written}"
    for outer in above:
        text = f"{outer}: {{{text}}}"
    return f"{text}\n", text.rindex(f"{key}: {written}") + len(key) + 3


def test_the_table_holds_every_setting() -> None:
    paths = []
    for key in KEYS:
        default = getattr(WorkspaceConfig(), key)
        mapping = is_dataclass(default) and not isinstance(default, VectorIndexing)
        paths += [f"{key}.{one.name}" for one in fields(default)] if mapping else [key]
    assert list(SETTINGS) == paths


@pytest.mark.requirement("I9.secrets", "I10.required", "M6.override")
@pytest.mark.parametrize("path", SETTINGS)
def test_a_setting_has_its_default_and_takes_what_it_accepts(tmp_path: Path, path: str) -> None:
    default, _, accepted, _ = SETTINGS[path]
    assert value(load_workspace_config(tmp_path), path) == default
    for written, meant in {"": default, "null": default, **accepted}.items():
        file = write(tmp_path, line_of(path, written)[0])
        config = load_workspace_config(tmp_path)
        assert value(config, path) == meant, written
        assert {key: str(where) for key, where in config.origins.items()} == {path.split(".")[0]: f"{file}:1:1"}


@pytest.mark.requirement("T26")
@pytest.mark.parametrize(("path", "written"), [(path, each) for path in SETTINGS for each in SETTINGS[path][3]])
def test_a_refused_value_is_told_at_its_place_and_counts_as_absent(tmp_path: Path, path: str, written: str) -> None:
    default, accepted, _, _ = SETTINGS[path]
    text, column = line_of(path, written)
    write(tmp_path, text)
    config, [problem] = read_workspace_config(tmp_path)
    key = path.rpartition(".")[2]
    assert problem.message.startswith(f"'{key}' must be {accepted}; found ")
    assert (problem.code, problem.where and (problem.where.line, problem.where.column)) == ("E114", (1, column))
    assert problem.actions == ("correct the value at the position shown", "see docs/workspace.md")
    assert value(config, path) == default


@pytest.mark.requirement("T26")
@pytest.mark.parametrize("path", SETTINGS)
def test_an_unknown_key_is_told_with_the_nearest_one(tmp_path: Path, path: str) -> None:
    *above, key = path.split(".")
    swapped = f"{key[:-2]}{key[-1]}{key[-2]}"
    write(tmp_path, line_of(".".join((*above, swapped)), "1")[0])
    config, [problem] = read_workspace_config(tmp_path)
    owner = f"'{above[0]}'" if above else "the file"
    assert (problem.code, problem.message) == ("E115", f"{owner} has no key '{swapped}'; did you mean '{key}'?")
    assert problem.where is not None
    assert problem.where.column == (len(above[0]) + 4 if above else 1)
    assert value(config, path) == SETTINGS[path][0]


@pytest.mark.parametrize("key", sorted({path.partition(".")[0] for path in SETTINGS if "." in path}))
def test_another_form_than_a_mapping_is_refused(tmp_path: Path, key: str) -> None:
    keys = ", ".join(path.partition(".")[2] for path in SETTINGS if path.startswith(f"{key}."))
    for written, found in (("3", "3"), ("[all]", "a list")):
        write(tmp_path, f"{key}: {written}\n")
        config, [problem] = read_workspace_config(tmp_path)
        assert problem.message == f"'{key}' must be a mapping with {keys}; found {found}"
        assert getattr(config, key) == getattr(WorkspaceConfig(), key)


IN_ENVIRONMENT: dict[str, tuple[str, dict[str, object], dict[str, str]]] = {
    "SPECKIT_DEADLINE_MS": (
        "deadline_ms: 750",
        {"1.5e3": 1500.0, " 0 ": None},
        dict.fromkeys(("soon", "-1", "nan", "inf", ".inf", "2s", "null", "true"), f"accepted: {MS}"),
    ),
    "SPECKIT_EXTENSIONS": (
        "extensions: trusted",
        {" None ": "none", "isolated": "isolated"},
        {"isolatd": "did you mean 'isolated'?", "1": "accepted: isolated, none, trusted"},
    ),
    "SPECKIT_EXTENSIONS_MEMORY_MB": (
        "extensions_memory_mb: 4096",
        {"0": 0, "512": 512},
        dict.fromkeys(("64", "-1", "2 gb", "1e3", "²", "9999999999999"), f"accepted: {MB}"),
    ),
    "SPECKIT_EVALUATION": (
        "evaluation: {record: shadows}",
        {" OFF ": "off", "all": "all"},
        {"shadow": "did you mean 'shadows'?"},
    ),
    "SPECKIT_VECTOR_INDEX": (
        "vector_index: 5000",
        {
            " 7 ": VectorIndexing(7),
            "Exact": VectorIndexing(200_000, used=False),
            "off": VectorIndexing(None, used=False),
        },
        dict.fromkeys(("yes", "-1", "1e5", "1000000001", "12345678901", "²"), f"accepted: {PASSAGES}"),
    ),
}  # fmt: skip
"""By variable: a line of the file, texts with their values, and refused texts with what the message offers."""


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("variable", VARIABLES)
def test_the_environment_goes_before_the_file_and_the_file_before_the_default(tmp_path: Path, variable: str) -> None:
    path = ".".join(VARIABLES[variable])
    text, accepted, refused = IN_ENVIRONMENT[variable]
    file = write(tmp_path, f"{text}\n")
    in_file = value(load_workspace_config(tmp_path), path)
    assert in_file != SETTINGS[path][0]
    for empty in ("", " "):
        config = load_workspace_config(tmp_path, {variable: empty})
        assert (value(config, path), {key: str(each) for key, each in config.origins.items()}) == (
            in_file, {text.partition(":")[0]: f"{file}:1:1"},
        )  # fmt: skip
    for written, meant in accepted.items():
        config = load_workspace_config(tmp_path, {variable: written})
        assert (value(config, path), config.origins) == (meant, {path.split(".")[0]: variable})
    for written, offered in refused.items():
        with pytest.raises(SpeckitError) as raised:
            load_workspace_config(tmp_path, {variable: written})
        assert str(raised.value) == f"E030 {variable} is '{written}'; {offered}"
        assert raised.value.problems[0].actions[0].startswith(f"set {variable} to ")


@pytest.mark.requirement("P9")
def test_the_variable_of_the_profile_matters_to_servers_alone(tmp_path: Path) -> None:
    write(tmp_path, "profile: core\n")
    assert load_workspace_config(tmp_path, {"SPECKIT_PROFILE": "cor"}).profile == "core"
    assert [profile_in_force(tmp_path, {"SPECKIT_PROFILE": text}) for text in ("", " FULL ")] == ["core", "full"]
    with pytest.raises(SpeckitError, match=r"E030 SPECKIT_PROFILE is 'cor'; did you mean 'core'\?"):
        profile_in_force(tmp_path, {"SPECKIT_PROFILE": "cor"})


@pytest.mark.parametrize(
    ("written", "days"),
    [("texts: false", 0), ("texts: true", 90), ("texts: true, keep_days: 20", 20), ("texts: true, keep_texts: 3", 3)],
)
def test_words_are_kept_as_earlier_versions_wrote_it(tmp_path: Path, written: str, days: int) -> None:
    write(tmp_path, f"evaluation: {{{written}}}\n")
    assert load_workspace_config(tmp_path).evaluation.keep_texts == days


def test_off_without_quotes_is_what_yaml_readers_disagree_on(tmp_path: Path) -> None:
    write(tmp_path, "evaluation: {record: off}\n")
    assert [problem.code for problem in read_workspace_config(tmp_path)[1]] == ["E113"]


def test_what_is_valid_beside_mistakes_holds(tmp_path: Path) -> None:
    write(tmp_path, "saving:\n  secrets: none\n  qualty: mend\n  quality: [mend]\n  prediction_error: report\n")
    config, problems = read_workspace_config(tmp_path)
    assert config.saving == SavingRules(prediction_error="report")
    assert [(problem.code, problem.where and problem.where.line) for problem in problems] == [
        ("E114", 2), ("E115", 3), ("E114", 4),
    ]  # fmt: skip
    assert config.evaluation == RecordingOptions()
