"""Matches regular expressions in a child process that `path_patterns` kills if it takes too long.

Runs as a script and imports only the standard library. Reads one JSON document from standard input, `{"patterns":
[...], "texts": [...]}`. Writes one line per pattern once its result is known: the indices of matching texts, or an
error message.
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
