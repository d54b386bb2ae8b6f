"""Reports the progress of a sentence encoder's vectors, and its absence if a pipeline requires one."""

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
    f"the weights of this pipeline are for a sentence encoder, but {ENCODER_VARIABLE} names none: name one "
    "(docs/embedders.md), or use the pipeline 'default'"
)


class EncoderNoticeParams(Params):
    """When a notice is due."""

    required: bool = Field(False, description="Warn if no sentence encoder is configured.")


class EncoderNotice:
    """Warns if some of the best rows have no vector of the sentence encoder yet.

    With `required` it also warns if no encoder is configured: for pipelines whose weights were measured with one.
    Feature I6.
    """

    about = About(features=("I6",))
    Params = EncoderNoticeParams

    def __init__(self, params: EncoderNoticeParams) -> None:
        self._required = params.required

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The warning, if one is due. A failing encoder is reported by the step that uses it."""
        if not store.encoder.named:
            return Notes(warnings=(MESSAGE,)) if self._required else Notes()
        rows = ranking.matched[: query.limit]
        found = store.encoder.closeness(query.reading, rows)
        # found[0]: (rows,) float64, NaN for a row without a vector of the encoder.
        if isinstance(found, Unavailable) or not np.isnan(found[0]).any():
            return Notes()
        made = np.count_nonzero(~np.isnan(found[0]))
        return Notes(warnings=(f"the encoder has vectors for {made} of these {len(rows)} memories so far; {REST}",))
