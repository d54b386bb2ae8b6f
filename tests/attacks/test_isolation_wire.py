"""What a hostile process may send: nothing of it runs, and reading it fails in one way only."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import suppress
from random import Random
from threading import Thread

import numpy as np
import pytest
from tally import Tally

from speckit_memory.pipeline.guards.sealing import seal
from speckit_memory.pipeline.isolation.codec import UnreadableError, UnsendableError, pack, unpack
from speckit_memory.pipeline.isolation.wire import ArrayWire, EndedError, GarbledError
from speckit_memory.pipeline.model.columns import Fused, Grouped, Hits, Notes, Plan, Rescored, Respelling, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, pool_of

STORE = FakeStore(Memory(1, "one"), Memory(2, "two"))
POOL = pool_of(STORE, {1: 0.5, 2: 0.25})
VALUES: tuple[object, ...] = (
    None, True, 2**70, -0.0, float("inf"), "ü\ud800\0", (), [1, (2.5, "x")], {1: {"a": None}, "b": [False]},
    frozenset({"a", "b"}), Scale.BM25, np.arange(6.0).reshape(2, 3), np.array([True, False]),
    np.empty((0, 4), np.int32),
    np.array(["a", None], np.object_), Hits(np.array([3, 1]), np.array([2.0, 1.0]), Scale.BM25), ask("fusion"),
    Plan(respelt=(Respelling("a", "b", {"c": 0.5}, "c"),)), Fused(("a",), np.ones((2, 1))), Rescored(np.ones(2)),
    Selected(np.array([True, False])), Grouped(np.array([1, 2]), np.ones(2)), Notes({1: {"a": [1]}}, {"b": 2}, ("c",)),
    POOL, seal(POOL),
)  # fmt: skip

WRONG = (
    b"", b"{", b"[]", b"[1]", b'{"a": 1}', b'["x"]', b'["o"]', b'["o", "Plan"]', b'["o", "SpeckitError", "E010", "m"]',
    b'["o", "os.system", "true"]', b'["o", "Hits", 1, 2, 3, 4, 5, 6]', b'["e"]', b'["e", "metres"]', b'["e", []]',
    b'["d", 1]', b'["d", [1]]', b'["d", [["l"], 1]]', b'["s", ["l"]]', b'["a"]', b'["a", "|O", 0, 1]',
    b'["a", "<f8", 0, 1000000000000]', b'["a", "<f8", -8, 1]', b'["a", "<f8", 0, -1]', b'["a", "<f8", 0, true]',
    b'["a", "<f8", 1e3, 1]', b'["a", "<f8", 0, 4294967296, 4294967296]', b'["a", "<f8", 9, 8]', b'["a", "<U99", 0, 1]',
    b'["a", "<f8", 0, 0, 1267650600228229401496703205376]', b'["a", ["l"], 0]', b'["r", 1, 2]', b"[" * 100_000,
    b'["l", ' * 5_000 + b"1" + b"]" * 5_000, b"1" * 5_000, b"\xff\xfe", b'"\xff"', b'["n", ["q"]]', b'[null]', b"[[]]",
)  # fmt: skip


def same(one: object, other: object) -> bool:
    return pack(one) == pack(other) and type(one) is type(other)


def test_what_is_packed_is_unpacked_as_it_was(tally: Tally) -> None:
    for value in VALUES:
        for writable in (True, False):
            assert same(unpack(*pack(value), writable=writable), value)
            tally.tried()


def test_what_is_no_document_is_unreadable(tally: Tally) -> None:
    for document in WRONG:
        with pytest.raises(UnreadableError):
            unpack(document, bytes(64), writable=False)
        tally.tried()


def test_damaged_documents_are_values_or_unreadable(tally: Tally) -> None:
    random = Random(28)
    parts = [b"", b"[", b"]", b",", b'"', b"0", b"-", b"9", b'"o"', b'"a"', b"null", b"\xff", b"\\"]
    for value in VALUES:
        whole, arrays = pack(value)
        for _ in range(150):
            document = bytearray(whole)
            for _ in range(random.randint(1, 4)):
                place = random.randrange(len(document) + 1)
                document[place : place + random.randint(0, 2)] = random.choice(parts)
            rest = arrays[: random.randrange(len(arrays) + 1)]
            with suppress(UnreadableError):
                unpack(bytes(document), rest, writable=random.random() < 0.5)
            tally.tried()


def test_a_switch_is_true_or_false_whatever_byte_it_was(tally: Tally) -> None:
    document = json.dumps(["a", "|b1", 0, 4]).encode()
    found = unpack(document, b"\x00\x01\x02\xff", writable=False)
    assert found.tobytes() == b"\x00\x01\x01\x01"
    assert not found.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        found.setflags(write=True)
    tally.tried()


@pytest.mark.parametrize("value", [object(), b"bytes", 1j, np.array([1j]), [open], lambda: 1, np.array([object()])])
def test_what_is_no_value_stays_where_it_is(value: object, tally: Tally) -> None:
    with pytest.raises(UnsendableError):
        pack(value)
    tally.tried()


def test_what_holds_itself_stays_where_it_is(tally: Tally) -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UnsendableError, match="contains itself"):
        pack(endless)
    tally.tried()


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", EndedError),
        (b"smx1", EndedError),
        (b"garbage" * 100, GarbledError),
        (struct.pack("<4sIQ", b"smx1", 101, 0), GarbledError),
        (struct.pack("<4sIQ", b"smx1", 0, 1001), GarbledError),
        (struct.pack("<4sIQ", b"smx1", 2**32 - 1, 2**64 - 1), GarbledError),
        (struct.pack("<4sIQ", b"smx1", 100, 0) + b"short", EndedError),
        (struct.pack("<4sIQ", b"sm\x80\x04", 1, 1), GarbledError),
    ],
)
def test_what_is_no_message_is_told_apart(sent: bytes, error: type[Exception], tally: Tally) -> None:
    here, there = socket.socketpair()
    with there:
        there.sendall(sent)
        there.shutdown(socket.SHUT_WR)
        wire = ArrayWire(here, 100, 1000)
        with pytest.raises(error):
            wire.receive(lambda: 30.0)
        wire.close()
    tally.tried()


def test_messages_come_whole_and_one_after_the_other_however_they_are_cut(tally: Tally) -> None:
    here, there = socket.socketpair()
    head = struct.Struct("<4sIQ")
    messages = [(b"a" * size, b"b" * (3 * size)) for size in (0, 1, 7, 300, 0, 70_000)]
    stream = b"".join(head.pack(b"smx1", len(d), len(a)) + d + a for d, a in messages)

    def send() -> None:
        for at in range(0, len(stream), 1009):
            there.sendall(stream[at : at + 1009])

    sender = Thread(target=send)
    sender.start()
    wire = ArrayWire(here, 100_000, 1_000_000)
    for expected in messages:
        assert wire.receive(lambda: 30.0) == expected
        tally.tried()
    sender.join()
    there.close()
    wire.close()


def test_who_sends_drop_by_drop_gains_no_time(tally: Tally) -> None:
    here, there = socket.socketpair()
    left = iter([3.0, 2.0, 1.0, 0.0])

    def remaining() -> float:
        there.send(b"s")
        return next(left)

    wire = ArrayWire(here, 100, 1000)
    with there, pytest.raises(TimeoutError):
        wire.receive(remaining)
    wire.close()
    tally.tried()
