"""Does ageing help? A seeded year of a project, lived through the doors of the product, and its signals compared.

`python -m bench.ageing --out figures.json` simulates the years and compares the default with and without every
signal that learns or ages. docs/decisions/0068-does-ageing-help.md has the figures and what was made of them.
"""
