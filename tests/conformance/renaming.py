"""What the suite asks of its own test server, as questions for this one. Of answers nothing is changed."""

from __future__ import annotations

from typing import Any

TOOLS: dict[str, dict[str, Any]] = {
    "test_simple_text": {"name": "memory_search", "arguments": {"query": "quokka store"}},
    "test_error_handling": {"name": "memory_validate", "arguments": {"id": 2**40, "wasUseful": True}},
    "test_tool_with_progress": {"name": "memory_index_scan", "arguments": {"force": True}},
}
RESOURCES = {
    "test://static-text": "memory://notes/wal.md",
    "test://template/123/data": "memory://notes/123.md",
}
PROMPTS = {
    "test_simple_prompt": ("handover", {}),
    "test_prompt_with_arguments": ("remember", {"arg1": "topic", "arg2": "folder"}),
}
COMPLETED = {"type": "ref/prompt", "name": "why"}, "memory"


def renamed(message: Any) -> Any:
    """The message in names that this server has; the same message where it names nothing of the suite's."""
    if not isinstance(message, dict) or not isinstance(message.get("params"), dict):
        return message
    params = dict(message["params"])
    match message.get("method"):
        case "tools/call":
            params |= TOOLS.get(params.get("name", ""), {})
        case "resources/read":
            params["uri"] = RESOURCES.get(params.get("uri", ""), params.get("uri"))
        case "prompts/get" if params.get("name") in PROMPTS:
            params["name"], names = PROMPTS[params["name"]]
            params["arguments"] = {names[name]: value for name, value in params.get("arguments", {}).items()}
        case "completion/complete" if params.get("ref", {}).get("name") in PROMPTS:
            params["ref"], argument = COMPLETED
            params["argument"] = {**params["argument"], "name": argument}
    return {**message, "params": params}
