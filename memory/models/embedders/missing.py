"""A model that was named and is not there."""

from __future__ import annotations

from typing import NoReturn

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.model_folder import Prompts


class MissingEncoder:
    """Says with every use what is wrong. Words still find everything, so nothing fails before."""

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
