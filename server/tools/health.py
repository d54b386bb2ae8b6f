"""`memory_health`: is everything in order? (feature T7)"""

from collections.abc import Callable
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.server.envelope import Reply
from speckit_memory.server.log_stream import lost_lines
from speckit_memory.server.markdown import about
from speckit_memory.server.workspace import Workspace

BUDGET = 800


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_health() -> Reply:
        """Check store, engine, embedding model and configuration."""
        from speckit_memory.server.output import counted

        try:
            report = workspace.memory().health()
        except SpeckitError as error:
            wrong_parts = [
                {"name": CODES[problem.code].category, "ok": False, "detail": str(problem), "hint": problem.hint}
                for problem in error.problems
            ]
            return Reply(
                "the memory cannot be opened", {"ok": False, "checks": wrong_parts}, rows="checks", row_text=_check_text
            )
        checks = [
            {"name": check.name, "ok": check.ok, "detail": check.detail} | ({"hint": check.hint} if check.hint else {})
            for check in report.checks
        ]
        if lost := lost_lines():
            detail = f"{counted(lost, 'line')} of the log were lost: nobody reads standard error"
            checks.append({"name": "log", "ok": True, "detail": detail})
        # what is wrong, or has a hint, stands first: a short answer leaves out the end
        checks.sort(key=lambda check: (check["ok"], "hint" not in check))
        wrong = [check.name for check in report.checks if not check.ok]
        summary = f"problems with {', '.join(wrong)}" if wrong else "everything is in order"
        return Reply(summary, {"ok": not wrong, "checks": checks}, rows="checks", row_text=_check_text)

    return memory_health


def _check_text(_number: int, check: dict[str, Any]) -> str:
    well = "ok" if check["ok"] else "WRONG"
    return "- " + about(f"{well} {check['name']}: {check['detail']}", check.get("hint", ""))
