"""Says how far the vectors of a sentence encoder are, and that a pipeline made for one runs without."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.config.workspace.settings import ENCODER_VARIABLE
from speckit_memory.memory.store.tables.vectors.encoder_vectors import REST
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params

MESSAGE = (
    f"this pipeline is weighted for a sentence encoder, and {ENCODER_VARIABLE} names none: name one "
    "(docs/embedders.md), or use the pipeline 'default'"
)


class EncoderNoticeParams(Params):
    """What is worth a notice."""

    required: bool = Field(False, description="Warn when no sentence encoder is named.")


class EncoderNotice:
    """Warns when some of the best rows have no vector of the sentence encoder yet, which is named for the second look.

    With `required` it warns as well when no encoder is named: for pipelines whose weights were measured with one.
    Feature I6.
    """

    about = About(features=("I6",))
    Params = EncoderNoticeParams

    def __init__(self, params: EncoderNoticeParams) -> None:
        self._required = params.required

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The warning, if it is due. An encoder that fails is told by the step that asks it."""
        if not store.encoder.named:
            return Notes(warnings=(MESSAGE,)) if self._required else Notes()
        rows = ranking.matched[: query.limit]
        found = store.encoder.closeness(query.reading, rows)
        if isinstance(found, Unavailable) or not np.isnan(found[0]).any():
            return Notes()
        made = np.count_nonzero(~np.isnan(found[0]))
        return Notes(warnings=(f"the encoder has vectors for {made} of these {len(rows)} memories so far; {REST}",))
