"""Whether signals without labels keep mixed answers fair, and what they add: by simulation.

    python -m bench.implicit_feedback [--runs 300]

Readers are shown the drafts that are served, and what they do is judged as in a shadow report: by uses alone, with the
signals, and strictly, where every opening without a citation loses its credit.
The figures stand in docs/decisions/0106-signals-without-labels.md.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from speckit_memory.evaluation.experiments.implicit_feedback import NO_FEEDBACK, ImplicitFeedback, implicit_feedback
from speckit_memory.evaluation.experiments.interleaving import Duels, Team, judge_duels
from speckit_memory.memory.store.evaluation.records import QueryRecord, UseRecord
from speckit_memory.pipeline.comparing.interleaving import draft_ranking

SHOWN, POOL, RELEVANT = 10, 30, 3
QUERIES = 400
RULES = ("uses", "signals", "strict")
LOOKS = (50, 100, 150, 200, 250, 300, 350, 400)
GAP_SECONDS = 150.0
"""Between two questions of a session: what is cited of the next answers passes over what was opened before."""


@dataclass(frozen=True)
class Reader:
    """How likely somebody is to open a memory that is shown, relevant or not; to cite an opened one, relevant or not;
    and to rephrase when nothing relevant was opened, or something was. `reads` is the share of answers that tell enough
    without being opened."""

    opens: tuple[float, float]
    cites: tuple[float, float] = (0.0, 0.0)
    rephrases: tuple[float, float] = (0.0, 0.0)
    reads: float = 0.2


READERS = {
    "opens only": Reader((0.6, 0.2)),
    "opens and rephrases": Reader((0.6, 0.2), rephrases=(0.6, 0.05)),
    "opens, rephrases at random": Reader((0.6, 0.2), rephrases=(0.3, 0.3)),
    "cites": Reader((0.6, 0.2), cites=(0.6, 0.0)),
    "cites and rephrases": Reader((0.6, 0.2), cites=(0.6, 0.05), rephrases=(0.6, 0.05)),
    "opens much, cites and rephrases": Reader((0.7, 0.5), cites=(0.4, 0.02), rephrases=(0.5, 0.1)),
    "cites and rephrases at random": Reader((0.4, 0.4), cites=(0.3, 0.3), rephrases=(0.3, 0.3)),
}


@dataclass(frozen=True)
class Log:
    """What one experiment left behind, query by query."""

    teams: dict[str, dict[int, Team]]
    uses: tuple[UseRecord, ...]
    feedback: ImplicitFeedback

    def judged(self, seen: int, rule: str) -> Duels:
        """The duels of the first `seen` queries."""
        feedback = {
            "uses": NO_FEEDBACK,
            "signals": self.feedback,
            "strict": replace(self.feedback, passed_over=self.feedback.opened_not_cited),
        }[rule]
        duels = judge_duels(dict(list(self.teams.items())[:seen]), self.uses, variants=1, feedback=feedback)
        assert duels is not None
        return duels


def ranked(rng: np.random.Generator, relevant: np.ndarray, quality: float) -> list[int]:
    """The ids of the first rows of a ranker: relevant ones score higher by `quality` standard deviations."""
    return [int(row) for row in np.argsort(-(rng.normal(size=POOL) + quality * relevant), kind="stable")[:SHOWN]]


def simulated_log(rng: np.random.Generator, reader: Reader, control: float, variant: float) -> Log:
    """One experiment: two rankers of these qualities, one reader, a session for every ten questions."""
    teams: dict[str, dict[int, Team]] = {}
    queries: list[QueryRecord] = []
    uses: list[UseRecord] = []
    for number in range(QUERIES):
        relevant = np.zeros(POOL)
        relevant[rng.choice(POOL, RELEVANT, replace=False)] = 1.0
        name, at, session = f"{rng.integers(2**62):016x}", number * GAP_SECONDS, f"s{number // 10}"
        draft = draft_ranking(ranked(rng, relevant, control), ranked(rng, relevant, variant), name)
        shown = draft.ids[:SHOWN]
        teams[name] = dict(zip(shown, draft.teams, strict=False))
        rephrased = ""
        if rng.random() >= reader.reads:
            opened = [row for row in shown if rng.random() < reader.opens[0 if relevant[row] else 1]]
            cited = [row for row in opened if rng.random() < reader.cites[0 if relevant[row] else 1]]
            for rows, use, after in ((opened, "opened", 10.0), (cited, "cited", 60.0)):
                uses += [
                    UseRecord(name, row, use, shown.index(row) + 1, at + after, session)  # type: ignore[arg-type]
                    for row in rows
                ]
            if rng.random() < reader.rephrases[1 if any(relevant[row] for row in opened) else 0]:
                rephrased = "later"
        queries.append(QueryRecord(name, at, "", "", "", "", SHOWN, 1, session, "", 0, rephrased_by=rephrased))
    return Log(teams, tuple(uses), implicit_feedback(queries, uses, now=1e9))


def report(runs: int) -> Iterator[str]:
    """The tables, line by line; every figure by uses → with signals → strictly."""
    yield "| reader, equal pipelines | mean lead | a false verdict at 400 | at any of eight looks |"
    yield "|---|---|---|---|"
    for number, (name, reader) in enumerate(READERS.items()):
        rng = np.random.default_rng([20, number])
        logs = [simulated_log(rng, reader, 1.5, 1.5) for _ in range(runs)]
        cells: list[tuple[str, ...]] = []
        for rule in RULES:
            looks = [[log.judged(seen, rule) for seen in LOOKS] for log in logs]
            leads = [look[-1].lead for look in looks]
            cells.append(
                (
                    f"{np.mean(leads):+.4f} ± {np.std(leads) / np.sqrt(runs):.4f}",
                    f"{np.mean([look[-1].verdict != 'undecided' for look in looks]):.1%}",
                    f"{np.mean([any(duels.verdict != 'undecided' for duels in look) for look in looks]):.1%}",
                )
            )
        yield f"| {name} | {' | '.join(' → '.join(both) for both in zip(*cells, strict=True))} |"

    yield ""
    yield "| reader, a better variant | lead | shown at 100 | at 200 | at 400 | wrong direction |"
    yield "|---|---|---|---|---|---|"
    for number, (name, reader) in enumerate(READERS.items()):
        rng = np.random.default_rng([20, number])
        logs = [simulated_log(rng, reader, 1.2, 1.8) for _ in range(runs)]
        cells = []
        for rule in RULES:
            found = {seen: [log.judged(seen, rule) for log in logs] for seen in (100, 200, 400)}
            cells.append(
                (
                    f"{np.mean([duels.lead for duels in found[400]]):+.3f}",
                    *(f"{np.mean([duels.verdict == 'better' for duels in found[seen]]):.1%}" for seen in found),
                    f"{np.mean([duels.verdict == 'worse' for duels in found[400]]):.1%}",
                )
            )
        yield f"| {name} | {' | '.join(' → '.join(both) for both in zip(*cells, strict=True))} |"


def main() -> None:
    """Prints the tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    for line in report(parser.parse_args().runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
