"""Tasks as rows of the answers of tools and commands."""

from typing import Any

from speckit_memory.errors.echo import abridge
from speckit_memory.memory.lifecycle.epistemic import LearningSummary, TaskScores
from speckit_memory.memory.lifecycle.tasks import Task
from speckit_memory.server.console.markdown import one_line, quote_text
from speckit_memory.server.views.rows.rows import when

MOST_QUESTIONS = 5
"""Open questions of a task shown in the text; the structured answer has all."""


def scores(of: TaskScores) -> dict[str, int]:
    """The three scores by name."""
    return {"knowledge": of.knowledge, "uncertainty": of.uncertainty, "context": of.context}


def task_row(task: Task) -> dict[str, Any]:
    """A task with its scores and, if complete, what was learned; without empty values."""
    learned, done = task.learned, {}
    if task.after is not None and learned is not None and task.completed_at is not None:
        done = {
            "after": scores(task.after),
            "delta": {"knowledge": learned.knowledge, "uncertainty": learned.uncertainty, "context": learned.context},
            "learning_index": learned.index,
            "band": learned.band,
            "gapsClosed": list(task.gaps_closed),
            "newGapsDiscovered": list(task.new_gaps),
            "completed": when(task.completed_at),
        }
    row: dict[str, Any] = {
        "taskId": task.task,
        "phase": "complete" if done else "preflight",
        "sessionId": task.session,
        "began": when(task.began_at),
        "before": scores(task.before),
        "knowledgeGaps": list(task.gaps),
        **done,
    }
    return {name: value for name, value in row.items() if value not in ("", [])}


def resumed_task(task: Task | None) -> dict[str, Any]:
    """The task that a resumed session continues, with its open questions; {} if there is none."""
    if task is None:
        return {}
    return {"task": {"specFolder": task.folder, **task_row(task), "openQuestions": list(task.open_questions)}}


def resumed_text(task: Task | None) -> str:
    """The task that a resumed session continues, as lines of text."""
    if task is None:
        return ""
    how = "begun" if task.after is None else "completed"
    done = when(task.completed_at or task.began_at)
    lines = [f"last task: {one_line(task.task)} of {one_line(task.folder)}, {how} {done}"]
    if asked := task.open_questions:
        lines.append(f"open questions ({len(asked)}):")
        lines += [quote_text(abridge(one_line(question))) for question in asked[:MOST_QUESTIONS]]
    return "\n".join(lines)


def changes(row: dict[str, Any]) -> dict[str, str]:
    """The three differences of a complete task as signed numbers; positive ones are gains."""
    return {name: f"{value:+d}" for name, value in row["delta"].items()}


def summary_row(summary: LearningSummary) -> dict[str, Any]:
    """Means and trend, without unknown values."""
    row = {
        "tasks": summary.tasks,
        "complete": summary.complete,
        "mean_knowledge": summary.knowledge,
        "mean_uncertainty": summary.uncertainty,
        "mean_context": summary.context,
        "mean_learning_index": summary.index,
        "trend": summary.trend,
    }
    return {name: value for name, value in row.items() if value is not None}
