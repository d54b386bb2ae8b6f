"""Contract of understanders, channels and recoverers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from speckit_memory.pipeline.guards.checks import check_hits, check_plan
from speckit_memory.pipeline.model.columns import Hits, Plan, Query
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.testing.sample import EMPTY, LACKING
from speckit_memory.pipeline.testing.store import FakeStore
from speckit_memory.pipeline.testing.trial import Trial

MOST_TRIES = 10
"""A recoverer must give up within this number of attempts."""


def _understood(trial: Trial, asked: Query, store: FakeStore) -> tuple[Plan, object]:
    """The plan before the step, and its answer."""
    before = Plan(variants=(asked.text,), complexity="moderate", reasons=("first",))
    return before, trial.component().understand(asked, before, store)


def understanding_refines_some_plan_and_repeats_itself(trial: Trial) -> None:
    """The plan changes for some query, the fields of other steps are kept, and the same query gives the same plan."""
    changed = False
    for asked in trial.sample.questions:
        before, answer = _understood(trial, asked, trial.sample.store)
        plan = trial.whole(answer, Plan, f"{asked.text!r}")
        again = _understood(trial, asked, trial.sample.store)[1]
        trial.must(
            trial.checked(check_plan, plan, asked) == again, f"gave another answer to {asked.text!r} the second time"
        )
        trial.must(plan.reasons[:1] == before.reasons, "dropped the reasons of the steps before it")
        changed |= plan != before
    trial.must(changed, "changed the plan of no query")


def recovery_offers_new_plans_until_it_gives_up(trial: Trial) -> None:
    """Each attempt differs from all before, and the plan is returned unchanged when there is nothing left to try."""
    for asked in trial.sample.questions:
        plan, offered = asked.plan, list[Plan]()
        for attempt in range(MOST_TRIES):
            plan = replace(plan, attempt=attempt)
            answer = trial.component().recover(asked, plan, trial.sample.store)
            after = trial.whole(answer, Plan, f"{asked.text!r}")
            trial.must(
                trial.checked(check_plan, after, replace(asked, plan=plan)) == after,
                "offered a plan that the frame would change",
            )
            if after == plan:
                break
            offered.append(after)
            plan = after
        trial.must(0 < len(offered) < MOST_TRIES, f"offered {len(offered)} plans for {asked.text!r}; accepted: 1 to 9")
        distinct = all(one != other for place, one in enumerate(offered) for other in offered[:place])
        trial.must(distinct, f"offered the same plan twice for {asked.text!r}")


def channel_finds_something_and_only_what_the_filter_admits(trial: Trial) -> None:
    """Hits are admitted, on the declared scale and level, and their passages belong to their memories."""
    entry, store, best = trial.entry, trial.sample.store, 0.0
    component, parents = trial.component(), store.attributes.parents
    for asked in trial.sample.questions:
        hits = trial.whole(component.search(asked, 50, store), Hits, f"{asked.text!r}")
        wanted = asked.wanted.of_the_tier if entry.about.unconditional else asked.wanted
        outside = hits.ids[~store.attributes.scope(wanted, asked.now).admits(hits.ids)]
        trial.must(not len(outside), f"returned {outside.tolist()}, which {wanted} does not admit")
        trial.must(hits.scale is trial.scale, f"returned the scale {hits.scale}; it declares {trial.scale}")
        level = getattr(trial.params, "level", "memory")
        trial.must(hits.level == level, f"returned hits of the level '{hits.level}'; accepted here: '{level}'")
        if hits.level == "memory":
            trial.must(np.array_equal(parents(hits.ids), hits.ids), "returned ids of passages at the level 'memory'")
        if hits.passages is not None:
            told = hits.passages >= 0
            own = np.array_equal(parents(hits.passages[told]), parents(hits.ids[told]))
            trial.must(own, "names passages of memories that are not its hits")
        best = max(best, float(hits.scores.max(initial=0.0)))
    trial.must(best > 0.0, "returned no memory with a score above 0 for any query")


def fewer_hits_are_the_first_of_more_hits(trial: Trial) -> None:
    """The limit only cuts off the end."""
    component = trial.component()
    for asked in trial.sample.questions:
        more = trial.whole(component.search(asked, 50, trial.sample.store), Hits, f"{asked.text!r}")
        for limit in (1, 2, 3):
            answer = component.search(asked, limit, trial.sample.store)
            hits = trial.whole(answer, Hits, f"{asked.text!r} with the limit {limit}")
            trial.must(
                _plain(trial.checked(check_hits, hits, limit)) == _plain(hits),
                "returned hits that the frame would change",
            )
            trial.must(
                len(hits) == min(limit, len(more))
                and np.array_equal(hits.ids, more.ids[:limit])
                and np.array_equal(hits.scores, more.scores[:limit]),
                f"returned other hits for {asked.text!r} with the limit {limit} than the first ones of 50",
            )


def _plain(hits: Hits) -> tuple[object, ...]:
    passages = None if hits.passages is None else hits.passages.tolist()
    return hits.ids.tolist(), hits.scores.tolist(), hits.scale, hits.level, passages, repr(hits.rest)


def holes_in_the_indexes_change_no_hit(trial: Trial) -> None:
    """Rows of removed entries, which any index has after a while, make no difference."""
    for asked in trial.sample.questions:
        whole, holed = (
            trial.whole(trial.component().search(asked, 50, store), Hits, f"{asked.text!r}")
            for store in (trial.sample.store, trial.sample.holed)
        )
        same = np.array_equal(whole.ids, holed.ids) and np.array_equal(whole.scores, holed.scores)
        trial.must(same, f"gave another answer to {asked.text!r} when the indexes had rows of removed entries")


def what_a_store_lacks_is_said_and_never_guessed(trial: Trial) -> None:
    """A store without memories, texts, vectors or models is answered too."""
    component = trial.component()
    for store in (EMPTY, LACKING):
        for asked in trial.sample.questions:
            match trial.entry.role:
                case Role.CHANNEL:
                    trial.lacking(component.search(asked, 50, store), Hits)
                case Role.UNDERSTANDER:
                    trial.lacking(_understood(trial, asked, store)[1], Plan)
                case _:
                    trial.lacking(component.recover(asked, asked.plan, store), Plan)
