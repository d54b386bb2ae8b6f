"""One verdict on each variant over several datasets; the tests on all datasets and metrics form one family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.statistics.comparison import Verdict, compare


@dataclass(frozen=True, slots=True)
class DatasetVerdict:
    """The verdict on one dataset."""

    dataset: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Overall:
    """A variant against the control: the verdict on each dataset, corrected for the tests on all of them."""

    control: str
    variant: str
    sets: tuple[DatasetVerdict, ...]
    ENTRIES: ClassVar = {
        "control": "a",
        "variant": "b",
        "sets": "datasets",
        "verdict": "verdict",
        "sentence": "sentence",
    }

    @property
    def verdict(self) -> Verdict:
        """Better if better on some dataset and worse on none, and vice versa; the same if the same on all; else
        undecided."""
        return _together([one.verdict for one in self.sets])

    @property
    def sentence(self) -> str:
        """The verdict in words, followed by the verdicts on each dataset."""
        each = ", ".join(f"{one.verdict} on {one.dataset}" for one in self.sets)
        if self.verdict == "undecided":
            return f"over {len(self.sets)} datasets it is undecided whether {self.variant} beats {self.control}: {each}"
        than = f"the same as {self.control}" if self.verdict == "same" else f"{self.verdict} than {self.control}"
        return f"over {len(self.sets)} datasets {self.variant} is {than}: {each}"


def overall(reports: Sequence[CompareReport]) -> list[Overall]:
    """The overall verdict on each variant; each report compares the same pipelines on a different dataset."""
    # Bonferroni over the comparisons of all datasets
    family = sum(len(report.comparisons) for report in reports)
    # (control, variant) to place of the dataset to its verdicts, one per metric.
    told: dict[tuple[str, str], dict[int, list[Verdict]]] = {}
    for place, report in enumerate(reports):
        pairs = list(dict.fromkeys((one.a, one.b) for one in report.comparisons))
        for one in compare(report.values, pairs, family=family):
            told.setdefault((one.a, one.b), {}).setdefault(place, []).append(one.verdict)
    return [
        Overall(
            *named, tuple(DatasetVerdict(reports[place].dataset, _together(found)) for place, found in by_place.items())
        )
        for named, by_place in told.items()
    ]


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for several: the only direction found, as long as none contradicts it; the same only if all are."""
    decided = {one for one in verdicts if one in ("better", "worse")}
    if len(decided) == 1:
        return decided.pop()
    return "same" if set(verdicts) == {"same"} else "undecided"
