"""The encoder used if the named model does not exist."""

from __future__ import annotations

from typing import NoReturn

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.model_folder import Prompts


class MissingEncoder:
    """Raises the error of the missing model at every use, and not before, since word search works without it."""

    name = "missing"

    def __init__(self, reason: SpeckitError) -> None:
        self._reason = reason

    def fingerprint(self) -> str:
        """Raises E001."""
        self._fail()

    def prompts(self) -> Prompts:
        """Raises E001."""
        self._fail()

    def pooling(self) -> NoReturn:
        """Raises E001."""
        self._fail()

    def load(self) -> NoReturn:
        """Raises E001."""
        self._fail()

    def encode(self, text: str) -> NoReturn:  # noqa: ARG002
        """Raises E001."""
        self._fail()

    def _fail(self) -> NoReturn:
        raise SpeckitError.of(self._reason.problems)
