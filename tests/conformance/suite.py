"""The conformance suite of the protocol, in its last release and in the one to come, over both transports."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.bridge import bridged
from tests.conformance.fetching import COMING, RELEASED, node_environment
from tests.conformance.outcome import Outcome

LIST = Path(__file__).with_name("scenarios.toml")
RUNS = ((RELEASED, "2025-11-25"), (COMING, "2025-11-25"), (COMING, "2026-07-28"))
"""The suites, and the version of the protocol that each is asked for."""
PATIENCE = 300
Checks = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Which scenarios apply, and which do not, with the reason."""

    direct: frozenset[str]
    http: frozenset[str]
    renamed: frozenset[str]
    excused: Mapping[str, str]
    others: Mapping[str, str]

    @classmethod
    def load(cls) -> Scenarios:
        """As `scenarios.toml` has them."""
        read = tomllib.loads(LIST.read_text(encoding="utf-8"))
        kinds = {kind: frozenset(names) for kind, names in read["applies"].items()}
        return cls(**kinds, excused=read["excused"], others=read["does-not-apply"])

    @property
    def known(self) -> frozenset[str]:
        """All scenarios that are judged of."""
        return self.direct | self.http | self.renamed | frozenset(self.others)


def run(modules: Path, url: str, root: Path, scratch: Path) -> Iterator[Outcome]:
    """What became of the scenarios that apply, at the server of an address and at servers over stdio."""
    listed = Scenarios.load()
    for suite, version in RUNS:
        name = f"{suite} {version}"

        def found(address: str, place: str, suite: str = suite, version: str = version) -> Checks:
            out = scratch / f"{suite}-{version}-{place}"
            return _checks(modules, suite, version, address, out)

        direct = found(url, "direct")
        with bridged(url) as address:
            over_http = found(address, "http")
        with bridged(root) as address:
            over_stdio = found(address, "stdio")
        if unknown := sorted(set(direct) - listed.known):
            yield Outcome(name, "", "scenarios", 0, (f"scenarios.toml knows nothing of {', '.join(unknown)}",))
        for transport, checks, names in (
            ("http", direct, listed.direct | listed.http),
            ("http", over_http, listed.renamed),
            ("stdio", over_stdio, listed.direct | listed.renamed),
        ):
            yield from (_outcome(name, transport, each, checks[each], listed) for each in sorted(names & checks.keys()))


def _outcome(suite: str, transport: str, name: str, checks: list[dict[str, Any]], listed: Scenarios) -> Outcome:
    def told(status: str) -> tuple[str, ...]:
        return tuple(
            f"{check['id']}: {check.get('errorMessage') or check['description']}"
            for check in checks
            if check["status"] == status and check["id"] not in listed.excused
        )

    passed = sum(check["status"] == "SUCCESS" for check in checks)
    problems = told("FAILURE") or (() if passed else ("no check of it has passed",))
    return Outcome(suite, transport, name, passed, problems, told("WARNING"))


def _checks(modules: Path, suite: str, version: str, url: str, out: Path) -> Checks:
    """The checks of each scenario that the suite has for a version of the protocol."""
    script = json.loads((modules / suite / "package.json").read_text())["bin"]["conformance"]
    command = ("node", modules / suite / script, "server", "--url", url, "--suite", "all", "--spec-version", version)
    done = subprocess.run(
        [*command, "-o", out], env=node_environment(modules, out.parent), capture_output=True, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    found = {}
    for file in sorted(out.glob("server-*/checks.json")):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        found[name] = json.loads(file.read_text())
    if not found:
        raise SystemExit(f"{suite} has told nothing:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return found
