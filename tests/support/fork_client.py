"""Asks `fork_server.py` for a copy, and stands for it as the process that a caller has started.

Runs as a script of its own as well, in an interpreter without libraries: `fork_client.py SOCKET SCRIPT ARGUMENT...`
hands its own streams, environment and folder to the copy, passes signals on, and ends as the copy does.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys

WORD = 8
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ask(
    place: str, streams: list[int], script: list[bytes], environ: dict[bytes, bytes], folder: bytes
) -> socket.socket:
    """Has a script run: the socket tells the id of its process, then its exit status. To close it kills the process."""
    mask = os.umask(0o077)  # cannot be read without being set
    os.umask(mask)
    leads = os.getsid(0) == os.getpid()
    given = marshal.dumps((script, environ, folder, mask, leads))
    asked = socket.socket(socket.AF_UNIX)
    try:
        asked.connect(place)
        socket.send_fds(asked, [b"."], streams)
        asked.sendall(len(given).to_bytes(WORD, sys.byteorder) + given)
    except BaseException:
        asked.close()
        raise
    return asked


def told(asked: socket.socket) -> int | None:
    """The next number that the socket tells, None at the end."""
    word = asked.recv(WORD, socket.MSG_WAITALL)
    return int.from_bytes(word, sys.byteorder, signed=True) if word else None


def main() -> None:
    """Stands for a copy."""
    script = [os.fsencode(part) for part in sys.argv[2:]]
    asked = ask(sys.argv[1], [0, 1, 2], script, dict(os.environb), os.getcwdb())  # noqa: PTH109 -- pathlib takes longer than all the rest
    process = told(asked)
    if process is None:
        sys.exit("the process to copy has ended")
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: os.kill(process, number))
    for stream in (0, 1, 2):
        os.close(stream)
    status = told(asked)
    if status is None:
        os._exit(1)
    if status < 0:
        if -status != signal.SIGKILL:  # which nobody is asked how to take
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main()
