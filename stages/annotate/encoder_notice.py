"""Says that a pipeline made for a sentence encoder runs without one."""

from __future__ import annotations

from speckit_memory.config.settings import EMBEDDER_VARIABLE
from speckit_memory.pipeline.contracts import About, NoParams
from speckit_memory.pipeline.model import Notes, Query
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.ranking import Ranking

MESSAGE = (
    "the bundled static vectors are in use, although this pipeline is weighted for a sentence encoder: name one in "
    f"{EMBEDDER_VARIABLE} and index again, or use the pipeline 'default'"
)


class EncoderNotice:
    """Warns when vectors are means of the bundled static token vectors.

    For pipelines whose weights were measured with a sentence encoder: with the bundled vectors they still answer, but
    less well than the default. Feature I6.
    """

    about = About(features=("I6",))
    Params = NoParams

    def __init__(self, _: NoParams) -> None:
        """Takes no parameters."""

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:  # noqa: ARG002
        """The warning, if it is due."""
        return Notes(warnings=(MESSAGE,)) if store.vectors.static else Notes()
