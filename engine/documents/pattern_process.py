"""Tries regular expressions on texts, in a process of its own that `path_patterns` ends when it takes too long.

It is run as a file, by the interpreter alone: it imports nothing of ours. From standard input comes one JSON document,
`{"patterns": [...], "texts": [...]}`. For each pattern a line goes to standard output as soon as it is known: the
places of the texts in which it is found, or what is wrong with it.
"""

from __future__ import annotations

import json
import re
import sys
import warnings


def main() -> None:
    """Answers one request."""
    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    for pattern in asked["patterns"]:
        told: list[int] | str
        try:
            search = re.compile(pattern).search
            told = [place for place, text in enumerate(asked["texts"]) if search(text)]
        except (re.error, OverflowError, RecursionError, MemoryError) as error:
            told = str(error) or type(error).__name__
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
