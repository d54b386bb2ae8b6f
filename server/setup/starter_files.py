"""The files of a workspace that people edit, as `init --write` first writes them: nothing in them changes anything."""

from __future__ import annotations

CONFIG = """\
# What holds for everybody who works in this workspace. Commit this file. docs/workspace.md explains it,
# `speckit-memory doctor` checks it. Beside it may lie pipeline.yaml, how searches go, and flags.yaml.

# Which files `speckit-memory index` takes below the folders it is given. Patterns are those of .gitignore files,
# relative to this workspace. What .gitignore files leave out is left out already.
# sources:
#   include:            # hidden folders to enter; with other patterns too, only what matches is taken
#     - .notes/
#   exclude:            # left out; "!" takes back what a .gitignore leaves out
#     - drafts/
#     - "!private/decisions/"
#   formats: [rst, html]  # taken besides Markdown and plain text

# Milliseconds after which a search skips optional steps.
# deadline_ms: 2000

# Where components of installed extensions run: "trusted" in the server's process, "isolated" in one of their own that
# may have so many megabytes, "none" nowhere. docs/extending.md says what each is for.
# extensions: trusted
# extensions_memory_mb: 2048

# How documents are taken in; docs/saving.md says what each means.
# saving:
#   secrets: credentials      # "all" with addresses of e-mail, "keep" for nothing
#   quality: mend             # "require" or "report"
#   prediction_error: act     # "report"
#   passages: all             # "thinned"

# Which tools agents are offered: "core", the six of daily work, or "full", all.
# profile: core

# Whether background work links documents that name the same: "link" or "off". docs/lifecycle.md says by which rules.
# entities: link

# What is noted beside answers, to compare pipelines later: "all" queries that were served, only those that are
# replayed for "shadows", or "off". The words of queries are kept for some days; the rest is ids and figures.
# evaluation:
#   record: all
#   keep_texts: 7       # days, or never
#   keep_days: 90
#   max_mb: 50
#   observe: 0.05       # share of the queries whose scores are kept part by part
#   sample: 1.0         # share of the queries that are noted when one pipeline answered alone

# From how many passages on the nearest vectors are found by an index that is approximate, if the extra "ann" is
# installed; "exact" answers without it, "off" has none written. docs/large-stores.md says what it costs.
# vector_index: 200000

# How many checkpoints of the store are kept, and for how many days; the oldest goes for a new one.
# checkpoints:
#   keep: 10
#   days: null

# How many days a memory is kept, with all that was learned of it, while its file is not there.
# absent_days: 90
"""

SCHEMA_FILE = "pipeline.schema.json"
"""Beside the pipeline file, which names it to editors; made from the installed components, and committed with it."""
PIPELINE = f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# How searches of this workspace go. As it stands it is the shipped one. docs/pipeline.md explains what can be said,
# `speckit-memory pipeline show` prints every step, `pipeline check` tells what is wrong here, and `eval run --own
# --pipeline default --pipeline .speckit/pipeline.yaml` whether a change helps on your own documents. A server notices
# what you change.
pipeline: workspace
extends: default

# What differs, part by part; every part may say what to add, change and remove:
# candidates:
#   channels:
#     change: [{{id: vector, limit: 100}}]

# Pipelines that answer beside this one after each reply, to be compared by `speckit-memory shadow report`:
# shadows: [catalogue]
"""
