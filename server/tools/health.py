"""`memory_health`: check the store, the models and the configuration (feature T7)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.server.calls.parameters import Name
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.console.fitting_actions import advice_for_client
from speckit_memory.server.console.markdown import about, one_line
from speckit_memory.server.logging.log_stream import lost_lines
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

BUDGET = 800
ROOM_BESIDE_WRONG = 80
"""Tokens for the sentence that says how many checks were left out."""
MOST_KEYS = 10
"""Keys shown per document; the rest are counted."""


def idle(values: Mapping[str, Any]) -> UnusedParameters | None:
    """`limit` has no effect on the full report, which has no list."""
    return UnusedParameters(("limit",), "the full report lists no aliases") if values["reportMode"] == "full" else None


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_health(
        reportMode: Literal["full", "divergent_aliases"] = "full",  # noqa: N803 -- parameter names of the specification
        limit: Annotated[int, Field(strict=True, ge=1, le=200, description="Of aliases")] = 20,
        specFolder: Name = "",  # noqa: N803
    ) -> Reply:
        """Check store, engine, model and configuration; or list documents in several folders."""
        from speckit_memory.errors.echo import plural

        if reportMode == "divergent_aliases":
            return _aliases(workspace.memory(), specFolder, limit)
        if specFolder:
            raise SpeckitError("E031", "a 'specFolder' needs reportMode: divergent_aliases")
        try:
            report = workspace.memory().status()
        except SpeckitError as error:
            wrong_parts = [
                {
                    "name": CODES[problem.code].category,
                    "ok": False,
                    "detail": str(problem),
                    "hint": _advice(problem.hint),
                }
                for problem in error.problems
            ]
            summary = "the memory cannot be opened"
            return _report(summary, wrong_parts, workspace)
        checks = [
            {"name": check.name, "ok": check.ok, "detail": _advice(check.detail)}
            | ({"hint": _advice(check.hint)} if check.hint else {})
            for check in report.checks
        ]
        if lost := lost_lines():
            detail = f"{plural(lost, 'line')} of the log were lost: the client does not read standard error"
            checks.append({"name": "log", "ok": True, "detail": detail})
        # failures first, then hints: a short answer drops the end
        checks.sort(key=lambda check: (check["ok"], "hint" not in check))
        wrong = [check.name for check in report.checks if not check.ok]
        remarks = [check.name for check in report.checks if check.ok and check.hint]
        nothing_wrong = f"in order, with remarks on {', '.join(remarks)}" if remarks else "everything is in order"
        return _report(f"problems with {', '.join(wrong)}" if wrong else nothing_wrong, checks, workspace)

    return memory_health


def _report(summary: str, checks: list[dict[str, Any]], workspace: Workspace) -> Reply:
    """The reply with the checks; its budget is large enough for all failures and warnings."""
    told = [_check_text(0, check) for check in checks if not check["ok"] or "hint" in check]
    needed = sum(workspace.count_tokens([summary, *told])) + len(told) + ROOM_BESIDE_WRONG
    budget = max(BUDGET, needed)
    healthy = all(check["ok"] for check in checks)
    return Reply(summary, {"ok": healthy, "checks": checks}, rows="checks", row_text=_check_text, budget=budget)


def _advice(text: str) -> str:
    """Advice for clients with all tools: a profile that has this tool has them all."""
    return advice_for_client(text, lambda _: True)


def _aliases(memory: "Memory", folder: str, limit: int) -> Reply:
    from speckit_memory.errors.echo import plural
    from speckit_memory.server.views.folder_text import in_folder, missing_folder

    report = memory.inventory.aliases(folder, limit)
    rows = [
        {
            "kind": group.kind,
            "keys": list(group.keys[:MOST_KEYS]),
            **({"further": len(group.keys) - MOST_KEYS} if len(group.keys) > MOST_KEYS else {}),
        }
        for group in report.groups
    ]
    # with rows, the folder may contain only links, which are not memories: no hint on a missing folder
    one_of_each = "keep one of each: delete or exclude the others, or say what differs"
    hint = one_of_each if rows else missing_folder(memory, folder)
    where = in_folder(folder)
    return Reply(
        f"{plural(report.total, 'document')}{where}{',' if where else ''} in several folders",
        {"total": report.total, "aliases": rows},
        (hint,) if hint else (),
        rows="aliases",
        row_text=_alias_text,
    )


def _alias_text(_number: int, row: dict[str, Any]) -> str:
    how = "the same content" if row["kind"] == "content" else "links to one file"
    more = f"{row['further']} more" if "further" in row else ""
    return "- " + about(f"{how}: {', '.join(map(one_line, row['keys']))}", more)


def _check_text(_number: int, check: dict[str, Any]) -> str:
    well = "WRONG" if not check["ok"] else "warn" if "hint" in check else "ok"
    return "- " + about(f"{well} {check['name']}: {check['detail']}", check.get("hint", ""))
