"""Takes from this thread what lets root read and write whatever the modes of files say."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522
_OVERRIDING = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, of capabilities(7)."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("thread", ctypes.c_int))


class _Set(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def modes_respected() -> Iterator[None]:
    """In this block the modes of files hold for root too. Skips the test where the system knows no capabilities."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root reads and writes everything, and only Linux lets it renounce that")
    libc, header, sets = ctypes.CDLL(None, use_errno=True), _Header(_VERSION, 0), (_Set * 2)()
    assert libc.capget(ctypes.byref(header), sets) == 0
    held = sets[0].effective
    sets[0].effective = held & ~_OVERRIDING
    assert libc.capset(ctypes.byref(header), sets) == 0
    try:
        if not os.access(sys.prefix, os.R_OK | os.X_OK, effective_ids=True):
            pytest.skip("the environment belongs to another user, who lets nobody read it")
        yield
    finally:
        sets[0].effective = held
        libc.capset(ctypes.byref(header), sets)
