"""Fixtures for tests of the frame."""

from __future__ import annotations

from typing import cast

import pytest
from frame.doubles import SmallStore

from pipeline.ports import Store


@pytest.fixture
def store() -> Store:
    return cast("Store", SmallStore())
