"""Records how long tests and fixtures take: the last run of each tier, in the cache folder of pytest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

NOTED_SECONDS = 0.005
"""Fixtures that are quicker are of no interest."""


class Durations:
    """The pytest plugin. Workers send the times of fixtures along with the reports of the tests that set them up."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.time()
        self._tests: dict[str, float] = {}
        self._fixtures: list[tuple[str, str, float]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        """Times a fixture, fixtures that it requests not counted: those are set up before."""
        began = time.perf_counter()
        result = yield
        took = time.perf_counter() - began
        if took >= NOTED_SECONDS:
            item = request._pyfuncitem
            place = f"{fixturedef.baseid}::{fixturedef.argname}"
            item.user_properties.append(("fixture", [place, fixturedef.scope, took]))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds up the phases of each test."""
        self._tests[report.nodeid] = self._tests.get(report.nodeid, 0.0) + report.duration
        if report.when == "teardown":
            self._fixtures += [tuple(value) for name, value in report.user_properties if name == "fixture"]  # type: ignore[misc,arg-type]  # three values each

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the file, unless this is a worker, or a few tests by name."""
        if hasattr(self._config, "workerinput") or session.config.args_source != pytest.Config.ArgsSource.TESTPATHS:
            return
        assert self._config.cache is not None
        tier = self._config.option.markexpr.replace("not proof", "fast") or "all"
        document = {"seconds": time.time() - self._began, "tests": self._tests, "fixtures": self._fixtures}
        folder = self._config.cache.mkdir("durations")
        (folder / f"{tier}.json").write_text(json.dumps(document), encoding="utf-8")


def register(config: pytest.Config) -> None:
    """Adds the plugin."""
    config.pluginmanager.register(Durations(config), "durations_by_fixture")
