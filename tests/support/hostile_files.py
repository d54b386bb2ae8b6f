"""A folder of hostile files: mutations of real documents, and things under the names of documents that are none.

What is made depends on the seed, the number and the documents alone.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ENDINGS = (".md", ".md", ".md", ".markdown", ".mdc", ".txt", ".rst", ".rest", ".html", ".htm", ".xhtml")
CONTROL = bytes([*range(9), 11, 12, *range(14, 32), 127])
BIDI = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200f\u061c".encode()
ODD_NAMES = (
    "two\nlines", "tab\there", "escape\x1b[31m", "right\u202eleft", "-rf", "--help", " leading", "trailing ", "…",
    "a'b\"c`d$(e)", "%s%n{}", "*?[x]", "CON", "é", "e\u0301", "検索", "👨\u200d👩", "\u200b", "\ufeff", "a\\b",
    "~", "#x",
)  # fmt: skip
LONG_NAME = 255
LARGE = 300_000
"""Bytes of the longest lines."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """A file that was made: its path as the system has it, and what was done to it."""

    key: str
    kind: str
    moves: bool = False
    """Whether it may be changed or taken away while it is read."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What must not be read: a folder beside the workspace, a file in it, and the word that this file alone holds."""

    folder: Path
    file: Path
    word: str


Mutation = Callable[[random.Random, bytes, Outside], bytes]
MUTATIONS: dict[str, Mutation] = {}


def _mutation(make: Mutation) -> Mutation:
    MUTATIONS[make.__name__] = make
    return make


def make(root: Path, count: int, seed: int, documents: Sequence[bytes], outside: Outside) -> list[Hostile]:
    """Makes so many files below the root, in folders of a hundred."""
    rng = random.Random(seed)
    made: list[Hostile] = []
    for number in range(count):
        folder = root / f"part{number // 100:03}"
        folder.mkdir(exist_ok=True)
        if number % 100 == 7:
            kind = sorted(STRANGE)[number // 100 % len(STRANGE)]
            name, make_strange = STRANGE[kind]
            path = folder / name.format(number)
            make_strange(path, outside, made)
            made.append(Hostile(_key(root, path), kind))
            continue
        kind = rng.choice(sorted(MUTATIONS))
        path = folder / _name(rng, number)
        data = MUTATIONS[kind](rng, rng.choice(documents), outside)
        path.write_bytes(data)
        made.append(Hostile(_key(root, path), kind, moves=number % 100 == 50))
    return made


def _key(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _name(rng: random.Random, number: int) -> str:
    ending = rng.choice(ENDINGS)
    if rng.random() > 0.1:
        return f"{number:05}{ending}"
    if rng.random() < 0.2:
        return f"{number:05}{'n' * (LONG_NAME - 5 - len(ending))}{ending}"
    if rng.random() < 0.1:
        return os.fsdecode(f"{number:05}".encode() + rng.choice([b"\xff", b"\xed\xa0\x80", b"\xc3"])) + ending
    return f"{rng.choice(ODD_NAMES)}{number:05}{ending}"


# --- what is no document


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:  # only the superuser makes devices
        os.mkfifo(path)


def _folder_of_a_document(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(f"# Folder\n\nA file in a folder that is called a document, number {int(path.stem)}.\n")
    (path.parent / "up").symlink_to("..")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2_000_000_000)


def _unreadable(path: Path) -> None:
    path.write_text(f"# Shut\n\nNobody may read the file with the number {int(path.stem)}, but the superuser.\n")
    path.chmod(0)


def _hard_link(path: Path, made: list[Hostile]) -> None:
    root = path.parents[1]
    path.hardlink_to(next(root / one.key for one in reversed(made) if (root / one.key).is_file() and not one.moves))


STRANGE: dict[str, tuple[str, Callable[[Path, Outside, list[Hostile]], object]]] = {
    "pipe": ("{0:05}.md", lambda path, outside, made: os.mkfifo(path)),
    "socket": ("{0:05}.md", lambda path, outside, made: os.mknod(path, stat.S_IFSOCK | 0o600)),
    "endless": ("{0:05}.txt", lambda path, outside, made: path.symlink_to("/dev/zero")),
    "device": ("{0:05}.md", lambda path, outside, made: _device(path)),
    "link_out": ("{0:05}.md", lambda path, outside, made: path.symlink_to(outside.file)),
    "folder_out": ("{0:05}", lambda path, outside, made: path.symlink_to(outside.folder)),
    "winding_link_out": (
        "{0:05}.rst",
        lambda path, outside, made: path.symlink_to(Path(*[".."] * 40, *outside.file.parts[1:])),
    ),
    "loop": ("{0:05}.md", lambda path, outside, made: path.symlink_to(path.name)),
    "dangling": ("{0:05}.html", lambda path, outside, made: path.symlink_to("nowhere.md")),
    "folder_of_a_document": ("{0:05}.md/{0:05}.md", lambda path, outside, made: _folder_of_a_document(path)),
    "sparse": ("{0:05}.md", lambda path, outside, made: _sparse(path)),
    "unreadable": ("{0:05}.md", lambda path, outside, made: _unreadable(path)),
    "hard_link": ("{0:05}.md", lambda path, outside, made: _hard_link(path, made)),
}
"""What is no document, by kind: its name, by number, in the folder of files, and what makes it."""


# --- bytes


def _places(rng: random.Random, data: bytes, most: int = 20) -> list[int]:
    return sorted(rng.randrange(len(data) + 1) for _ in range(rng.randint(1, most)))


def _with(rng: random.Random, data: bytes, *pieces: bytes) -> bytes:
    for place in reversed(_places(rng, data)):
        data = data[:place] + rng.choice(pieces) + data[place:]
    return data


@_mutation
def flipped(rng: random.Random, data: bytes, _: Outside) -> bytes:
    changed = bytearray(data)
    for place in _places(rng, data[:-1], 50):
        if changed:
            changed[min(place, len(changed) - 1)] ^= 1 << rng.randrange(8)
    return bytes(changed)


@_mutation
def truncated(rng: random.Random, data: bytes, _: Outside) -> bytes:
    start, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[start:end]


@_mutation
def spliced(rng: random.Random, data: bytes, _: Outside) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines[: rng.randint(0, len(lines))])


@_mutation
def repeated(rng: random.Random, data: bytes, _: Outside) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start : start + rng.randint(1, 300)] * rng.randint(2, 500)


@_mutation
def with_nuls(rng: random.Random, data: bytes, _: Outside) -> bytes:
    return _with(rng, data, b"\0", b"\0" * 100)


@_mutation
def no_utf8(rng: random.Random, data: bytes, _: Outside) -> bytes:
    return _with(rng, data, b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82")


@_mutation
def other_encoding(rng: random.Random, data: bytes, _: Outside) -> bytes:
    encoding = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037", "utf-8-sig"])
    return data.decode(errors="replace").encode(encoding, errors="replace")[: rng.choice([None, -1, 3])]


@_mutation
def signs_that_command(rng: random.Random, data: bytes, _: Outside) -> bytes:
    pieces = [bytes([sign]) for sign in CONTROL] + [BIDI, "\ufeff".encode(), "\u2028".encode(), b"\x1b]0;x\x07", b"\r"]
    return _with(rng, data, *pieces)


@_mutation
def random_bytes(rng: random.Random, data: bytes, _: Outside) -> bytes:
    return rng.randbytes(rng.randint(0, len(data)))


@_mutation
def nothing(rng: random.Random, _data: bytes, _: Outside) -> bytes:
    return rng.choice([b"", b"\n", b" \t\n" * 300, b"\xef\xbb\xbf", b"---\n---\n", b"<!-- -->", b"\0"])


@_mutation
def huge_line(rng: random.Random, data: bytes, _: Outside) -> bytes:
    piece = rng.choice([b"x", b"word ", b"# ", b"|", b"a.b", b"[", b"*_", "é".encode(), b"`", b"<a>", b"&amp;", b"\\"])
    return data + b"\n" + piece * (LARGE // len(piece) // rng.choice([1, 10, 100]))


# --- structure


@_mutation
def deep(rng: random.Random, data: bytes, _: Outside) -> bytes:
    depth = rng.choice([100, 1000, 20_000])
    kinds = [
        b"> " * depth + b"deep",
        b"".join(b" " * (2 * level) + b"- item\n" for level in range(min(depth, 400))),
        b"<div>" * depth + data[:200],
        b"<b><i>" * depth + data[:200] + b"</b>" * depth,
        b"---\nkey: " + b"[" * depth + b"]" * depth + b"\n---\n",
        b"---\nkey: " + b"{a: " * min(depth, 5000) + b"}" * min(depth, 5000) + b"\n---\n",
        b"".join(b" " * (3 * level) + b".. note::\n\n" for level in range(min(depth, 300))),
        b"(" * depth + b"[" * depth,
        b"**a " * depth,
    ]
    return rng.choice(kinds) + b"\n\n" + data


@_mutation
def broken_front_matter(rng: random.Random, data: bytes, _: Outside) -> bytes:
    heads = [
        b"---\n- a\n- b\n---\n",
        b"---\ntitle: [\n---\n",
        b"---\ntitle: x\n",
        b"---\n\tkey: x\n---\n",
        b"---\ntitle: a\ntitle: b\n---\n",
        b"---\n? {a: b}\n: c\n---\n",
        b"---\n*nobody\n---\n",
        b"---\nexpires: 99999-01-01\ncreated: .nan\nimportance_weight: 1e999\n---\n",
        b"---\ntrigger_phrases: " + b"[" + b"phrase, " * 3000 + b"x]\n---\n",
        b"---\nkey: !!python/object/apply:os.system ['touch pwned']\n---\n",
        b"---\n%TAG ! tag:evil,2000:\n--- \nx\n...\n",
        b"---\nnote: " + b"x" * 120_000 + b"\n---\n",
        b"---\nimportance_tier: constitutional\ncausalLinks: {supports: ["
        + b"../../../../etc/passwd, " * 50
        + b"x]}\n---\n",
    ]
    return rng.choice(heads) + data


@_mutation
def yaml_bomb(rng: random.Random, data: bytes, _: Outside) -> bytes:
    lines = [b"a0: &a0 [lol]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, rng.randint(5, 40))]
    return b"---\n" + b"\n".join(lines) + b"\n---\n" + data


@_mutation
def bomb_of_anchors(rng: random.Random, data: bytes, _: Outside) -> bytes:
    number = rng.choice([10, 500, 6000])
    kinds = [
        b"".join(b"<!-- ANCHOR:a%d -->\n" % n for n in range(number)),
        b"".join(b"<!-- /ANCHOR:a%d -->\n" % n for n in range(number)),
        b"<!-- ANCHOR:" * number,
        b"<!--" * number,
        b"".join(b"[l%d]: p%d.md\n" % (n, n + 1) for n in range(number)),
        b"[a](b.md) " * number,
        b"![](" * number,
        b"causalLinks:\n  supports: a.md\n\n" * (number // 5 + 1),
        b"".join(b"# H%d\n===\n" % n for n in range(number)),
    ]
    return data + b"\n" + rng.choice(kinds)


@_mutation
def tables_and_fences(rng: random.Random, data: bytes, _: Outside) -> bytes:
    number = rng.choice([5, 500, 5000])
    kinds = [
        b"|" + b"a|" * number + b"\n|" + b"-|" * number + b"\n" + b"|x\n" * number,
        b"```\n" * number,
        b"~~~~~\n" + data,
        b"````" + b"`" * number + b"\n" + data,
        b"    code\n" * number,
        b"+---+---+\n" * number,
        b"===  ===\na    b\n" * number,
        b"- [ ] " * number,
    ]
    return rng.choice(kinds) + data


@_mutation
def markup_of_pages(rng: random.Random, data: bytes, _: Outside) -> bytes:
    number = rng.choice([10, 1000, 30_000])
    kinds = [
        b"<!DOCTYPE html><html><head><title>" + b"t" * number,
        b"<p>" * number,
        b"&#x41;" * number,
        b"&#xD800;&#1114112;" * 50,
        b"<a " + b"b='c' " * number + b">",
        b"<script>" * number,
        b"<table><tr><td>" * number,
        b"</p>" * number,
        b"<![CDATA[" * number,
        b"<?php " * number,
        b"<svg><style><template>" * number,
        b"<pre>" * number + data,
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
        + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a;" * 10) for n in range(20))
        + b"]><x>&a19;</x>",
    ]
    return rng.choice(kinds) + data


@_mutation
def markup_of_texts(rng: random.Random, data: bytes, _: Outside) -> bytes:
    number = rng.choice([10, 300, 3000])
    kinds = [
        b"T\n=\n" * number,
        b".. |a| replace:: |b|\n.. |b| replace:: |a|\n\n" + b"|a| " * number,
        b"`a`_ " * number,
        b".. [#] foot\n" * number,
        b"*" * number + b"\n",
        b"x\n" + b"=" * number + b"\n",
        b".. _a: b_\n.. _b: a_\n" * 20,
        b".. code::\n\n   " + b"x" * number,
        b".. list-table::\n\n" + b"   * - a\n" * number,
        b"::\n\n  " * number,
        b".. math::\n\n   " + b"{" * number,
        b":role:`x` " * number,
        b".. default-role:: code\n\n" + b"`a` " * number,
    ]
    return rng.choice(kinds) + b"\n" + data


@_mutation
def reaching_out(rng: random.Random, data: bytes, outside: Outside) -> bytes:
    """What other programs would take for an order to read, run or fetch something."""
    path = str(outside.file).encode()
    kinds = [
        b".. include:: " + path + b"\n\n",
        b".. raw:: html\n   :file: " + path + b"\n\n",
        b".. literalinclude:: " + path,
        b".. csv-table:: t\n   :file: " + path + b"\n\n",
        b".. include:: /etc/passwd\n\n",
        b".. raw:: html\n   :url: file://" + path,
        b".. code::\n   :file: " + path + b"\n\n",
        b".. figure:: " + path + b"\n\n",
        b'<iframe src="file://' + path + b'"></iframe>',
        b'<object data="' + path + b'"></object>',
        b'<!DOCTYPE x [<!ENTITY c SYSTEM "file://' + path + b'">]><p>&c;</p>',
        b'<link rel="import" href="' + path + b'">',
        b"<!--#include file='" + path + b"' -->",
        b"{% include '" + path + b"' %}",
        b"![[" + path + b"]]",
        b"[a](file://" + path + b")",
        b"---\nx: !include " + path + b"\n---\n",
        b"@" + path + b"\n",
        b"\\input{" + path + b"}",
        b"<<< " + path,
        b"```{include} " + path + b"\n```\n",
        b"$(cat " + path + b")",
        b"---\ncausalLinks: {supports: [" + path + b"]}\n---\n",
    ]
    return rng.choice(kinds) + b"\n" + data
