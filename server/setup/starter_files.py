"""The initial content of the files that users edit, as `init --write` writes them; it changes no default."""

from __future__ import annotations

CONFIG = """\
# Settings for everyone who works in this workspace. Commit this file. docs/workspace.md explains it,
# `speckit-memory doctor` checks it. The same folder may contain pipeline.yaml, the steps of a search, and flags.yaml.

# Which files `speckit-memory index` takes below the folders it is given. Patterns are those of .gitignore files,
# relative to this workspace. Files ignored by .gitignore are excluded by default.
# sources:
#   include:            # hidden folders to enter; with other patterns, only matching files are taken
#     - .notes/
#   exclude:            # excluded files; "!" includes files that a .gitignore excludes
#     - drafts/
#     - "!private/decisions/"
#   formats: [rst, html]  # taken in addition to Markdown and plain text

# Milliseconds after which a search skips optional steps.
# deadline_ms: 2000

# Where components of installed extensions run: "trusted" in the server's process, "isolated" in a separate process
# with the memory limit below, "none" not at all. docs/extending.md explains the choice.
# extensions: trusted
# extensions_memory_mb: 2048

# How documents are saved; docs/saving.md explains each setting.
# saving:
#   secrets: credentials      # "all" removes e-mail addresses, too; "keep" removes nothing
#   quality: mend             # "require" or "report"
#   prediction_error: act     # "report"
#   passages: all             # "thinned"

# Which tools agents are offered: "core" (the six of daily work) or "full" (all).
# profile: core

# Whether background work links documents that mention the same names: "link" or "off". docs/lifecycle.md has the rules.
# entities: link

# Which queries are recorded to compare pipelines later: "all" that were served, only those replayed for "shadows", or
# "off". The text of queries is kept for some days; the rest is ids and figures.
# evaluation:
#   record: all
#   keep_texts: 7       # days, or never
#   keep_days: 90
#   max_mb: 50
#   observe: 0.05       # share of the queries whose partial scores are recorded
#   sample: 1.0         # share of the queries recorded when only one pipeline answered

# Number of passages from which vector search uses an approximate index, if the extra "ann" is installed; "exact" never
# uses the index, "off" does not build one. docs/large-stores.md has its cost.
# vector_index: 200000

# How many checkpoints of the store are kept, and for how many days; a new one replaces the oldest.
# checkpoints:
#   keep: 10
#   days: null

# How many days a memory, with all that was learned about it, is kept while its file is missing.
# absent_days: 90
"""

SCHEMA_FILE = "pipeline.schema.json"
"""The schema next to the pipeline file, for editors; generated from the installed components, to be committed."""
PIPELINE = f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# The search pipeline of this workspace, initially the shipped one. docs/pipeline.md explains the format,
# `speckit-memory pipeline show` prints every step, `pipeline check` reports problems, and `eval run --own
# --pipeline default --pipeline .speckit/pipeline.yaml` measures a change on your own documents. A running server
# notices your changes.
pipeline: workspace
extends: default

# Differences from it, by part; each part may have `add`, `change` and `remove`:
# candidates:
#   channels:
#     change: [{{id: vector, limit: 100}}]

# Shadow pipelines, which answer each query after the reply; `speckit-memory shadow report` compares them:
# shadows: [catalogue]
"""
