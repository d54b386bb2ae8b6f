"""The page of a shadow report: the same figures as its JSON, drawn and put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from speckit_memory.errors.names import sendable
from speckit_memory.evaluation.course import course
from speckit_memory.evaluation.experiment_report import Contrast, Estimate, ExperimentReport
from speckit_memory.evaluation.tables import in_line
from speckit_memory.server.page.plots.distributions import (
    latency_distribution,
    overhead_distribution,
    overlap_distribution,
)
from speckit_memory.server.page.plots.over_time import over_time
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.plots.rank_moves import rank_moves
from speckit_memory.server.page.plots.segments import segments
from speckit_memory.server.page.plots.step_costs import step_costs
from speckit_memory.server.page.template import rendered
from speckit_memory.server.shadows.report import SHOWN_ROWS, Compared, Named, ShadowReport, question
from speckit_memory.server.shadows.text import ORDER
from speckit_memory.server.wording import figure, in_common, milliseconds, moment, percent, period

MARK = "speckit-memory shadow report"
"""How a page of ours is known when it is to be overwritten."""
SIGNS = {"better": "▲", "worse": "▼", "same": "=", "undecided": "◐", "failed": "✕"}
_FEW = 5


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure. `of` is where it stands in the JSON of its comparison, and `value` what stands there."""

    name: str
    of: str
    value: float | None
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A memory at a rank of one answer; `moved` says where the other answer has it, `kind` how that differs."""

    rank: int
    title: str
    key: str
    score: str
    moved: str
    kind: str


def page(report: ShadowReport) -> str:
    """The whole page as HTML."""
    comparisons = [_comparison(one, place, report.memories) for place, one in enumerate(report.comparisons)]
    texts = {
        "mark": MARK,
        "order": ORDER,
        "sentence": report.sentence(),
        "headline": _headline(report.sentence()),
        "made": moment(report.made),
        "since": moment(report.since) if report.since is not None else "",
        "nothing": [(line.startswith("    "), line.strip()) for line in report.nothing.split("\n") if line.strip()],
        "comparisons": comparisons,
    }
    return str(sendable(rendered("shadow_report.html", **texts)))


def _headline(sentence: str) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
    """A sentence as what is said first and what follows it; each in pieces that are, or are not, to be copied."""
    first, _, rest = sentence.partition("; ")
    parts = (first, rest)
    head, tail = ([(bool(place % 2), text) for place, text in enumerate(part.split("`")) if text] for part in parts)
    return head, tail


def _comparison(compared: Compared, place: int, memories: Mapping[int, Named]) -> dict[str, Any]:
    report = compared.judged.report
    control, variant = compared.control, compared.variant
    return {
        "id": report.id,
        "anchor": f"c{place + 1}",
        "control": control,
        "variant": variant,
        "hashes": (report.control.hash, report.variant.hash),
        "flag": report.flag,
        "mode": report.mode.replace("_", " "),
        "verdict": report.verdict,
        "sign": SIGNS[report.verdict],
        "headline": _headline(report.sentence),
        "period": period(report.first, report.last, hours=not report.queries),
        "tiles": list(_tiles(report)),
        "quality": report.quality,
        "evidence": {"judgements": "judged", "uses": "used"},
        "plots": list(_plots(compared, f"c{place + 1}", control, variant)),
        "parted": report.parted_at,
        "differing": [_differing(one, memories) for one in report.differing],
        "noise": report.noise,
        "dropped": report.dropped,
        "failures": report.failures,
        "cost": report.cost,
        "retreats": [(moment(one.at), one.placement, one.reason) for one in compared.retreats],
        "next": compared.next_steps,
    }


def _tiles(report: ExperimentReport) -> Iterator[Tile]:
    lost = sum(report.dropped.values())
    yield Tile(
        "Queries", "queries", report.queries, f"{report.queries:,}", f"{lost:,} dropped, {report.failed:,} failed"
    )
    if agreement := report.agreement:
        differing = agreement.ordering_differences
        share = percent(differing, agreement.queries)
        yield Tile(
            "Other rows or order", "ordering_differences", differing, f"{differing:,}", f"{share} of the queries"
        )
        estimates = {
            "overlap@10": ("Overlap of the first 10", agreement.overlap_10),
            "kendall_tau_b": ("Kendall tau-b", agreement.kendall_tau_b),
            "rbo": ("Rank-biased overlap", agreement.rbo),
        }
        for of, (name, estimate) in estimates.items():
            if estimate:
                yield Tile(name, of, round(estimate.mean, 6), figure(estimate.mean), _interval(estimate))
    times = {
        "overhead_ms.p50": ("Overhead, median", report.cost.overhead),
        "spent_ms.p50": ("Spent beside it", report.cost.spent),
        "served_overhead_ms.p50": ("The caller waited", report.cost.served_overhead),
    }
    for of, (name, latency) in times.items():
        if latency:
            text = milliseconds(latency.p50, signed=of.startswith("overhead"))
            yield Tile(
                name, of, latency.p50, text, f"p95 {milliseconds(latency.p95, signed=of.startswith('overhead'))}"
            )


def _interval(estimate: Estimate) -> str:
    return f"95 %: {figure(estimate.ci95[0])} to {figure(estimate.ci95[1])}" if estimate.ci95 else ""


def _plots(compared: Compared, prefix: str, control: str, variant: str) -> Iterator[Plot]:
    judged, report = compared.judged, compared.judged.report
    contrasts, answered = judged.contrasts(), judged.answered()
    if looks := course(contrasts, judged.judgements):
        yield over_time(f"{prefix}-course", looks, control, variant)
    if contrasts:
        yield rank_moves(f"{prefix}-moves", [one.agreement.moves for one in contrasts], control, variant)
        yield overlap_distribution(f"{prefix}-overlap", [one.agreement.overlap_10 for one in contrasts])
    if report.segments and report.agreement:
        yield segments(f"{prefix}-segments", report.segments, report.agreement.overlap_10)
    if answered:
        times = np.array([(pair.control.total_ms, pair.variant.answer.total_ms) for pair in answered])
        yield latency_distribution(f"{prefix}-latency", times[:, 0], times[:, 1], (control, variant))
        yield overhead_distribution(f"{prefix}-overhead", times[:, 1] - times[:, 0], (control, variant))
    if report.steps:
        yield step_costs(f"{prefix}-steps", report.steps, (control, variant))


def _differing(contrast: Contrast, memories: Mapping[int, Named]) -> dict[str, Any]:
    pair, agreement = contrast.pair, contrast.agreement
    before = {move.id: move.before for move in agreement.moves}
    after = {move.id: move.after for move in agreement.moves}
    old, new = pair.control, pair.variant.answer
    left = _rows(old.memories, old.scores, after, memories, "→ {}", "not returned")
    right = _rows(new.memories, new.scores, before, memories, "was {}", "new")
    return {
        "query": pair.query.id,
        "text": in_line(question(pair)),
        "features": [pair.query.intent, pair.query.complexity, *filter(None, [pair.query.folder])],
        "shared": in_common(agreement),
        "rbo": figure(agreement.rbo),
        "first": agreement.first_difference,
        "parted": pair.variant.parted_at,
        "lists": (left[:SHOWN_ROWS], right[:SHOWN_ROWS]),
        "more": max(len(left), len(right)) - SHOWN_ROWS,
    }


def _rows(
    ids: Sequence[int],
    scores: Sequence[float],
    elsewhere: Mapping[int, int | None],
    memories: Mapping[int, Named],
    moved: str,
    absent: str,
) -> list[Row]:
    rows = []
    for rank, (memory, score) in enumerate(zip_longest(ids, scores), start=1):
        other = elsewhere[memory]
        named = memories.get(memory)
        title = named.title or named.key if named else f"memory {memory}"
        key = named.key if named else "no longer in the store"
        kind = "alone" if other is None else "level" if other == rank else "shifted"
        text = absent if other is None else "" if other == rank else moved.format(other)
        rows.append(Row(rank, title, key, f"{score:.4f}", text, kind))
    return rows
