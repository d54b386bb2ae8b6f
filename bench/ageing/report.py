"""The figures of several years put together: what each signal does to quality, to stale answers and to their size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.ageing.measure import QUALITY, STALE, TOKENS, Figures
from bench.ageing.variants import CONTROL
from speckit_memory.evaluation.statistics.comparison import Comparison, Verdict, compare
from speckit_memory.pipeline.ports import Column

SEED = 20
Report = dict[str, Any]


def together(moments: Sequence[dict[str, Figures]]) -> dict[str, Figures]:
    """The figures of all moments behind one another."""
    return {
        name: {metric: np.concatenate([moment[name][metric] for moment in moments]) for metric in figures}
        for name, figures in moments[0].items()
    }


def compared(years: Mapping[int, Sequence[dict[str, Figures]]], against: Mapping[str, str]) -> Report:
    """Each variant against another one, on the queries of all years (by seed) of one regime; `against` says which.

    nDCG@10 and MRR@5 are compared as `eval compare` does, as one family; stale answers and tokens by the same bets,
    each as a family of its own.
    """
    whole = together([moment for moments in years.values() for moment in moments])
    names = [name for name in whole if name != CONTROL]
    family = compare({name: {metric: whole[name][metric] for metric in QUALITY} for name in whole},
                     [(against[name], name) for name in names])  # fmt: skip
    rows: dict[str, Report] = {name: {} for name in whole}
    for one in family:
        rows[one.b][one.metric] = _difference(one, one.verdict)
    fewer: dict[Verdict, Verdict] = {"better": "worse", "worse": "better", "same": "same", "undecided": "undecided"}
    for metric in (*STALE, TOKENS):
        known = np.isfinite(whole[CONTROL][metric])
        values = {name: {metric: figures[metric][known]} for name, figures in whole.items()}
        most = max(1.0, *(float(figures[metric].max()) for figures in values.values()))
        for one in compare(values, [(against[name], name) for name in names], metrics=[metric], largest=most):
            rows[one.b][metric] = _difference(one, fewer[one.verdict])  # fewer stale rows and tokens are better
    for name, row in rows.items():
        row["means"] = {metric: float(np.nanmean(column)) for metric, column in whole[name].items()}
        row["by_seed"] = {
            seed: float(np.mean(_gain(together(moments), name, against.get(name, CONTROL))))
            for seed, moments in years.items()
        }
    return {
        "queries": len(whole[CONTROL]["nDCG@10"]),
        "with_stale": int(np.isfinite(whole[CONTROL]["stale@1"]).sum()),
        "variants": rows,
    }


def _gain(figures: dict[str, Figures], name: str, control: str) -> Column:
    gain: Column = figures[name]["nDCG@10"] - figures[control]["nDCG@10"]
    return gain


def _difference(one: Comparison, verdict: Verdict) -> Report:
    return {
        "delta": one.delta, "ci95": list(one.ci95), "p": one.p, "p_adjusted": one.p_adjusted, "verdict": verdict,
    }  # fmt: skip


def lines(report: Mapping[str, Report]) -> list[str]:
    """The report of each regime as a table in Markdown."""
    told: list[str] = []
    for regime, found in report.items():
        told += [
            "",
            f"## {regime}: {found['queries']} queries, {found['with_stale']} of which something stale could answer",
            "",
            "| variant | nDCG@10 | difference | 95 % | p adj. | by seed | MRR@5 | stale@1 | stale@5 | untold@1 "
            "| tokens |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for name, row in found["variants"].items():
            told.append(f"| {name} | {' | '.join(_cells(row))} |")
    return told


def _cells(row: Report) -> list[str]:
    means = row["means"]
    quality = row.get("nDCG@10")
    shown = [f"{means['nDCG@10']:.4f}"]
    shown += (
        [
            f"{quality['delta']:+.4f}",
            f"{quality['ci95'][0]:+.4f} to {quality['ci95'][1]:+.4f}",
            f"{quality['p_adjusted']:.4f}",
            " ".join(f"{delta:+.3f}" for delta in row["by_seed"].values()),
        ]
        if quality
        else ["", "", "", ""]
    )
    for metric in ("MRR@5", "stale@1", "stale@5", "untold@1", TOKENS):
        digits = 0 if metric == TOKENS else 3
        mark = {"better": " ↑", "worse": " ↓"}.get(row.get(metric, {}).get("verdict", ""), "")
        shown.append(f"{means[metric]:.{digits}f}{mark}")
    return shown
