from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from side_by_side import CONTROL, VARIANT, observed, record

from speckit_memory import Memory
from speckit_memory.memory.store.evaluation.records import PipelineRecord
from speckit_memory.server.reports.svg import PALETTE
from tests.server.doors import call

pytestmark = pytest.mark.usefixtures("processes")

ORDER, OTHER = (1, 2, 3, 4), (3, 2, 1, 99)
JUDGED = {1: 3, 2: 1, 3: 0, 4: 0, 99: 0}
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)> $\\frac{1}$ `x` {{ 7*7 }} \u202e\x1b[31m"
VOID = {"meta", "br", "link", "img", "hr", "input"}


@dataclass
class Element:
    """An element of a page with what it holds."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element | str] = field(default_factory=list)

    def all(self) -> Iterator[Element]:
        yield self
        for part in self.inside:
            if isinstance(part, Element):
                yield from part.all()

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.inside)

    def find(self, tag: str, **attributes: str) -> list[Element]:
        return [
            part
            for part in self.all()
            if part.tag == tag and all(part.attributes.get(name) == value for name, value in attributes.items())
        ]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


class Page(HTMLParser):
    """A page as a tree; fails where an element is not closed, or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("page", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root], self._open[-1].tag

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute of <{tag}> twice"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].inside.append(data)


def written(root: Path, *arguments: str) -> tuple[str, Element, dict[str, Any]]:
    """The text of the page, its tree, and the JSON of the same report."""
    ran = call(root, ["shadow", "report", "--json", "--html", "report.html", *arguments]).ok()
    text = (root / "report.html").read_text(encoding="utf-8")
    return text, Page(text).root, ran.json


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, indexed: Path) -> tuple[str, Element, dict[str, Any]]:
    """The page of two experiments, one of them of a pipeline beside itself."""
    from shutil import copytree

    root = Path(copytree(indexed, tmp_path_factory.mktemp("page") / "workspace"))
    again = [observed(n, ORDER, ORDER, variant=CONTROL) for n in range(60)]
    others = [
        observed(100 + n, ORDER, OTHER if n % 3 else (1, 2, 4), intent="fix_bug" if n % 2 else "understand",
                 failure="RuntimeError in rsf" if n == 50 else "", flag="SPECKIT_RSF_FUSION")
        for n in range(60)
    ]  # fmt: skip
    record(root / "memory.db", [*again, *others], judged=JUDGED)
    return written(root)


@pytest.mark.requirement("P5.page")
def test_nothing_is_loaded_and_nothing_runs(shown: tuple[str, Element, dict[str, Any]]) -> None:
    text, root, _ = shown
    assert not root.find("script") + root.find("link") + root.find("img") + root.find("iframe")
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"@import|url\((?!#)", text)
    assert not [name for part in root.all() for name in part.attributes if name.startswith("on")]
    (policy,) = root.find("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].startswith("default-src 'none'")
    used = {value for part in root.all() for name, value in part.attributes.items() if name == "href"}
    assert used
    assert all(value.startswith("#") for value in used)


def test_headings_are_in_order_and_names_are_unique(shown: tuple[str, Element, dict[str, Any]]) -> None:
    _, root, _ = shown
    levels = [int(part.tag[1]) for part in root.all() if re.fullmatch(r"h[1-6]", part.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [part.attributes["id"] for part in root.all() if "id" in part.attributes]
    assert len(set(ids)) == len(ids)
    named = {value[1:] for part in root.all() if (value := part.attributes.get("href", ""))}
    assert named <= set(ids)


@pytest.mark.requirement("P5.page")
def test_every_plot_has_words_and_a_table(shown: tuple[str, Element, dict[str, Any]]) -> None:
    _, root, _ = shown
    titles = [figure.find("h3")[0].words for figure in root.find("figure")]
    assert titles == ["What is known, query by query", "Paired overhead", "Paired overhead"]
    for figure in root.find("figure"):
        (image,) = figure.find("div", role="img")
        (caption,) = figure.find("figcaption")
        assert image.attributes["aria-label"] == caption.words
        assert "quer" in caption.words or "step" in caption.words
        rows = figure.find("tbody")[0].find("tr")
        columns = {len(row.find("th") + row.find("td")) for row in rows} | {len(figure.find("thead")[0].find("th"))}
        assert len(rows) >= 2
        assert len(columns) == 1
        wide, narrow = figure.find("svg")
        assert (wide.attributes["class"], narrow.attributes["class"]) == ("plot wide", "plot narrow")


def test_a_drawing_has_the_colours_of_the_page_alone(shown: tuple[str, Element, dict[str, Any]]) -> None:
    text, root, _ = shown
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    style = root.find("style")[0].text
    assert len(drawings) == 6
    for drawing in drawings:
        ElementTree.fromstring(drawing)
        colours = re.findall(r"(?:fill|stroke):([^;\"]+)", drawing)
        assert {colour.removeprefix("var(--").removesuffix(")") for colour in colours} <= {*PALETTE, "none"}
    for variable in PALETTE:
        assert style.count(f"--{variable}:") == 3, "for light, dark and paper"


@pytest.mark.requirement("P5.page")
def test_every_figure_of_the_page_is_that_of_the_json(shown: tuple[str, Element, dict[str, Any]]) -> None:
    _, root, document = shown
    sections = root.find("section", **{"class": "report"})
    assert len(sections) == len(document["comparisons"]) == 2
    for section, found in zip(sections, document["comparisons"], strict=True):
        _, agreement, time = (tile.find("dd")[0].words for tile in section.find("dl")[0].find("div"))
        assert float(agreement) == pytest.approx(found["overlap@10"], abs=0.0005)
        assert float(time.removesuffix(" ms")) == pytest.approx(found["overhead_ms"]["p50"], abs=0.005)
        assert found["id"] in section.words
        assert re.sub(r"[`\s]", "", found["sentence"]) in re.sub(r"\s", "", section.words)
        rows = {row.find("th")[0].words: row.words for row in section.find("tr")}
        for one in found["quality"]:
            assert f"{one['delta']:+.3f}" in rows[one["metric"]]


def test_the_verdict_stands_first_and_is_more_than_a_colour(shown: tuple[str, Element, dict[str, Any]]) -> None:
    _, root, _ = shown
    assert (
        root.find("h1")[0].words
        == "2 variants compared with the served pipeline: 1 worse (rsf), 1 undecided (default again)."
    )
    badges = [badge.words for badge in root.all() if badge.attributes.get("class", "").startswith("badge")]
    assert badges == ["▼ worse", "? undecided"]
    worse, undecided = (part.words for part in root.find("p", **{"class": "lead"}))
    assert worse == "▼ worse rsf is worse than default."
    assert re.fullmatch(r"\? undecided Not decided yet: 60 of about [\d,]+ queries, all answered alike\.", undecided)


@pytest.mark.requirement("P5.first_sight")
def test_a_page_of_one_variant_says_what_differs_then_the_verdict_and_folds_the_rest(workspace: Path) -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text("extends: default\nshadows: [rsf]\n")
    call(workspace, ["search", "rank fusion"]).ok()
    _, root, document = written(workspace)
    (found,) = document["comparisons"]
    (section,) = root.find("section")
    unfolded = [part for part in section.inside if isinstance(part, Element) and part.tag != "details"]
    shown = root.find("pre")[0]
    assert root.find("h1")[0].words == "rsf compared with pipeline.yaml"
    assert found["difference"][0] in shown.text
    assert unfolded.index(shown) < next(place for place, part in enumerate(unfolded) if found["headline"] in part.words)
    assert [name.words for part in unfolded for name in part.find("dt")][:3] == ["Quality", "Agreement", "Time"]
    assert not [part for part in unfolded if part.find("table") or part.find("figure")]


@pytest.mark.requirement("P5.first_sight")
def test_the_page_of_eight_variants_is_small_and_begins_with_the_worst(workspace: Path) -> None:
    variants = [PipelineRecord(f"{number:012x}", f"v{number}") for number in range(1, 9)]
    grades = {memory: 3 * (memory == 1) for memory in range(105)}
    before, after = tuple(range(1, 21)), (*range(15, 0, -1), *range(100, 105))
    for place, variant in enumerate(variants):
        seen = [observed(100 * place + n, before, after, variant=variant, question=f"question {n}") for n in range(40)]
        record(workspace / "memory.db", seen, variants=[variant], judged=grades if variant.name == "v3" else None)
    text, root, document = written(workspace)
    assert len(text.encode()) <= 150_000
    assert root.find("section")[0].find("h2")[0].words == "v3 compared with default"
    assert document["comparisons"][0]["verdict"] == "worse"
    shown = call(workspace, ["shadow", "report"]).out.splitlines()
    assert len(shown) <= 40
    assert shown[3].startswith("▼ v3 compared with default: v3 is worse than default.")


def test_failures_noise_and_commands_stand_on_the_page(shown: tuple[str, Element, dict[str, Any]]) -> None:
    _, root, _ = shown
    words = root.find("section", id="c1")[0].words
    assert "1 failed (RuntimeError in rsf 1)" in words
    assert "Noise floor: default against itself differs on 0 of 60 queries" in words
    assert "eval compare --own --flag SPECKIT_RSF_FUSION" in words  # the criterion is not met: no promotion is offered
    assert words.index("Stop it") < words.index("Measure it")


@pytest.mark.requirement("P5.page")
def test_whatever_a_name_or_a_query_says_is_text(workspace: Path) -> None:
    with Memory.open(workspace / "memory.db", root=workspace) as memory:
        (workspace / "docs" / "hostile.md").write_text(
            f"---\ntitle: '{HOSTILE[:60]}'\n---\n# {HOSTILE}\n\nSome text.\n"
        )
        memory.index(workspace / "docs")
        hostile = next(one.id for one in memory.list()[0] if one.key.endswith("hostile.md"))
        others = [one.id for one in memory.list()[0] if one.id != hostile][:3]
    evil = replace(VARIANT, name=f"_{HOSTILE}")
    seen = [
        observed(n, others, [hostile, *others[:2]], variant=evil, question=HOSTILE, intent=f"<b>{HOSTILE}",
                 failure=HOSTILE if n == 3 else "")
        for n in range(24)
    ]  # fmt: skip
    record(workspace / "memory.db", seen, variants=[evil])
    text, root, _ = written(workspace)
    assert not root.find("script") + root.find("img")
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "49" not in root.find("h1")[0].words
    assert "<script>alert(1)</script>" in root.find("h1")[0].words
    assert any("<script>alert(1)</script>" in cell.words for cell in root.find("th", scope="row"))
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(drawing)


@pytest.mark.parametrize("mode", ["one pair", "dark_run", "all failed", "nothing"])
def test_there_is_a_page_of_little_too(workspace: Path, mode: str) -> None:
    if mode == "one pair":
        record(workspace / "memory.db", [observed(1, ORDER, ())])
    elif mode == "dark_run":
        record(workspace / "memory.db", [observed(n, ORDER, OTHER, mode="dark_run") for n in range(12)])
    elif mode == "all failed":
        record(workspace / "memory.db", [observed(n, ORDER, OTHER, failure="ValueError in rsf") for n in range(12)])
    _, root, document = written(workspace)
    assert root.find("h1")[0].words
    assert len(root.find("section", **{"class": "report"})) == max(1, len(document["comparisons"]))
    assert bool(root.find("figure")) == (mode in ("one pair", "dark_run"))


def test_only_a_page_of_ours_is_overwritten(workspace: Path) -> None:
    record(workspace / "memory.db", [observed(1, ORDER, OTHER)])
    for _ in range(2):
        assert call(workspace, ["shadow", "report", "--html", "page.html"]).status == 0
    (workspace / "mine.html").write_text("<!DOCTYPE html>\n<title>mine</title>\n")
    refused = call(workspace, ["shadow", "report", "--html", "mine.html"])
    nowhere = call(workspace, ["shadow", "report", "--html", "nowhere/page.html"])
    assert refused.status == nowhere.status == 2
    assert "has other contents" in refused.err
    assert (workspace / "mine.html").read_text() == "<!DOCTYPE html>\n<title>mine</title>\n"
    assert "written as a page: page.html" in call(workspace, ["shadow", "report", "--html", "page.html"]).out
