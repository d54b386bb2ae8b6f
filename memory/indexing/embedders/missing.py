"""A sentence encoder that was named and is not there."""

from __future__ import annotations

from typing import NoReturn

from speckit_memory.config.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders.model_folder import Prompts


class MissingEncoder:
    """Says with every use what is wrong. Words still find everything, so nothing fails before."""

    name = "missing"

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def fingerprint(self) -> str:
        """Raises E001."""
        self._fail()

    def prompts(self) -> Prompts:
        """Raises E001."""
        self._fail()

    def load(self) -> NoReturn:
        """Raises E001."""
        self._fail()

    def encode(self, text: str) -> NoReturn:  # noqa: ARG002
        """Raises E001."""
        self._fail()

    def _fail(self) -> NoReturn:
        raise SpeckitError(
            "E001",
            self._reason,
            hint="Words find everything meanwhile.",
            actions=(
                f"name a model that is there in {EMBEDDER_VARIABLE}",
                f"unset {EMBEDDER_VARIABLE} for the bundled model",
            ),
        )
