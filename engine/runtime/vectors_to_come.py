"""Who makes the vectors of what was stored without them, in words: every door says the same."""

from __future__ import annotations

WHO_EMBEDS = "a running server makes them within minutes, `speckit-memory maintain` or an index run at once"
