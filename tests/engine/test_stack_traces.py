from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.engine.answers.query_syntax import asked_by

PYTHON = """I get this when logging in:
Traceback (most recent call last):
  File "/srv/app/auth/token_store.py", line 12, in refresh_token
    return self._cache[
        key]
           ~~~^^^
KeyError: 'sid'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in handle_login
    refresh()
acme.errors.ConnectionError: session backend not reachable"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: pool exhausted after 30 s
\tat com.acme.db.PoolManager.acquire(PoolManager.java:88)
\tat java.base/java.lang.Thread.run(Thread.java:833)
\t... 12 more
Caused by: com.acme.RetryException: reset by peer
\tat sun.nio.ch.FileDispatcherImpl.read0(Native Method)"""
NODE = """TypeError: Cannot read properties of undefined (reading 'sessionId')
    at SessionStore.get (/srv/app/src/session.js:10:15)
    at async /srv/app/src/index.js:3:1
    at node:internal/process/task_queues:95:5"""
BROWSER = """Uncaught (in promise) Error: quota exceeded for workspace
    at http://localhost:3000/static/js/main.chunk.js:120:11"""
GO = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.(*Server).handle(0xc000010000, {0x1, 0x2})
\t/srv/app/cmd/main.go:12 +0x1d
exit status 2"""
RUST = """thread 'main' panicked at src/main.rs:4:5:
lease of the worker was lost
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90c5418/library/std/src/panicking.rs:645:5
note: run with `RUST_BACKTRACE=full` for a verbose backtrace."""
CSHARP = """Unhandled exception. System.InvalidOperationException: Sequence contains no elements
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Acme.Orders.OrderService.Latest(Int32 id) in C:\\src\\OrderService.cs:line 42"""
RUBY = """app/models/order.rb:12:in `total': undefined method `price' for nil (NoMethodError)
\tfrom app/controllers/orders_controller.rb:8:in `show'
\tfrom bin/rails:4:in `<main>'"""


@pytest.mark.parametrize(
    ("trace", "asked"),
    [
        (
            PYTHON,
            "I get this when logging in: KeyError: 'sid' acme.errors.ConnectionError: session backend not reachable",
        ),
        (JAVA, "pool exhausted after 30 s com.acme.RetryException: reset by peer"),
        (NODE, "Cannot read properties of undefined (reading 'sessionId')"),
        (BROWSER, "quota exceeded for workspace"),
        (GO, "index out of range [5] with length 3"),
        (RUST, "lease of the worker was lost"),
        (CSHARP, "Sequence contains no elements"),
        (RUBY, "undefined method `price' for nil (NoMethodError)"),
    ],
    ids=["python", "java", "node", "browser", "go", "rust", "csharp", "ruby"],
)
def test_of_a_trace_its_exceptions_are_left(trace: str, asked: str) -> None:
    assert asked_by(trace) == asked


def test_the_names_in_frames_of_the_project_are_left_where_the_exception_says_next_to_nothing() -> None:
    trace = """Traceback (most recent call last):
  File "/srv/app/auth/token_store.py", line 12, in refresh_token
    load(key)
  File "/usr/lib/python3.12/site-packages/redis/lock_client.py", line 7, in lock_key
    return cache[key]
KeyError: 'sid'"""

    assert asked_by(trace) == "KeyError: 'sid' token_store refresh_token"


@pytest.mark.parametrize(
    "frames",
    [
        "#0 /srv/a.php(7): total()\n#1 [internal function]: run()\n#2 {main}",
        "#0  0x00007f5a in total (k=0x0) at cart.c:10\n#1  main (argc=1) at main.c:4\n#2  start () from /lib/libc.so.6",
        "    #0 0x4a5b in total /srv/cart.c:10\n    #1 0x4a6c in main /srv/main.c:4",
    ],
    ids=["php", "gdb", "sanitizer"],
)
def test_numbered_frames_are_none_of_what_is_asked(frames: str) -> None:
    assert asked_by(f"Error: the cart of nobody was summed\n{frames}") == "the cart of nobody was summed"


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'sid'",
        "how does it look\nat the office (room 3:12)",
        "first\n- at noon\n- at night",
        "a list:\n1: one\n2: two",
        "stack backtrace:\n   0: one",
        "Fixed errors\n#12 Login fails\n#13 Cache (old) at capacity",
        "  at a (b.js:1:2)\n  at c (d.js:3:4)",
    ],
)
def test_what_is_no_trace_or_says_nothing_else_stays_as_it_is(text: str) -> None:
    assert asked_by(text) == text


@given(st.text() | st.lists(st.sampled_from([*PYTHON.splitlines(), *GO.splitlines(), "x"])).map("\n".join))
def test_any_text_asks_for_something_of_itself(text: str) -> None:
    asked = asked_by(text)

    assert asked == text or any(map(str.isalnum, asked))
    assert asked_by(asked) == asked
