"""An extension with a signal that talks while it works; the question says how, and the limit tells who asked."""

from __future__ import annotations

import logging
import os
from threading import Barrier
from typing import ClassVar

import numpy as np

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store
from speckit_memory.pipeline.roles.contracts import About, Combine, Role, SignalParams
from speckit_memory.pipeline.roles.registry import Registry

MEETING = Barrier(2, timeout=60)
LOGGER = logging.getLogger("talking")


class Talking:
    """Adds nothing."""

    Params = SignalParams
    about = About(features=("C2",))
    combine: ClassVar[Combine] = "multiply"

    def __init__(self, params: SignalParams) -> None:
        self.params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column:
        if "zz-print" in query.text:
            print(f"asked for {query.limit}")
        if "zz-leave" in query.text:
            os.write(2, f"asked for {query.limit}, and gone".encode())
            os._exit(7)
        if "zz-fail" in query.text:
            raise ValueError(query.text)
        if "zz-meet" in query.text:
            LOGGER.warning("asked for %d, waiting", query.limit)
            MEETING.wait()
            LOGGER.warning("asked for %d, going on", query.limit)
        return np.ones(len(pool))


def register(registry: Registry) -> None:
    registry.add(Role.SIGNAL, Talking, "talking")
