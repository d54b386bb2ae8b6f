"""Renders a lineage as lines of plain text or Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def link_text(link: Mapping[str, Any]) -> str:
    """One link of a lineage (a dict from `engine.graph.lineage.link_json`) as a line."""
    hops = f"{link['hop']} hop" + ("s" if link["hop"] > 1 else "")
    facts = f"strength {link['strength']:g}, {hops}, link {link['edge']} by {link['created_by']}"
    said = f": {link['evidence']}" if link["evidence"] else ""
    return f"{link['source']} {link['relation'].replace('_', ' ')} {link['target']} ({facts}){said}"
