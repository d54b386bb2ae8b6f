"""The pipelines that single searches want otherwise than the one in force, and who answers them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from speckit_memory.engine.adjusting import NOTHING, Adjustment, adjusted
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.builder import Checked, examined

if TYPE_CHECKING:
    from speckit_memory.engine.searching import Searching

MOST_ADJUSTED = 16
"""Pipelines that single searches wanted and that are kept."""


@dataclass(frozen=True, slots=True)
class Wished:
    """What answers a search that wants `wanted`: `searching`, by the pipeline `checked`, which was derived of `base`.

    Both are None for a pipeline that was put together of objects. `unmet` is what the pipeline has no step for, a
    sentence each.
    """

    searching: Searching
    base: Checked | None
    checked: Checked | None
    wanted: Adjustment = NOTHING
    unmet: tuple[str, ...] = ()


class Wishes:
    """What was derived of one pipeline and of those of its shares. Safe for several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Adjustment], Wished] = OrderedDict()
        self._guard = Lock()

    def of(self, searching: Searching, base: Checked | None, wanted: Adjustment) -> Wished:
        """Who answers a search of a session that `base` answers otherwise.

        A pipeline that does just what the one in force does is that one, with all that runs beside it. Raises E030 for
        a pipeline that was put together of objects, and for values that are not accepted.
        """
        if not wanted:
            return Wished(searching, base, base)
        wanted = replace(wanted)  # what is kept is nobody else's
        wanted.check()
        if base is None:
            raise SpeckitError("E030", "a pipeline that was put together of objects answers as it is")
        key = base.hash, wanted
        with self._guard:
            found = self._kept.pop(key, None) or _derived(searching, base, wanted)
            self._kept[key] = found
            if len(self._kept) > MOST_ADJUSTED:
                self._kept.popitem(last=False)
        return found


def _derived(searching: Searching, base: Checked, wanted: Adjustment) -> Wished:
    whole, unmet = adjusted(base.effective, wanted)
    checked = examined(whole, searching.registry)
    if checked.hash == base.hash and not checked.problems:
        return Wished(searching, base, base, wanted, unmet)
    return Wished(searching.through_checked(checked), base, checked, wanted, unmet)
