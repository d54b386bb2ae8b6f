"""The sentence on who makes missing vectors, the same in every interface."""

from __future__ import annotations

WHO_EMBEDS = "a running server makes them within minutes, `speckit-memory maintain` or an index run at once"
