"""Shows how a score was computed, one line of arithmetic per step that changed it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from speckit_memory.server.console.output import table, wrap_text

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import Explanation
    from speckit_memory.pipeline.running.explain import StepExplanation

_NAME = re.compile(r"[^\W\d]\w*")


def render_recombination(explanation: Explanation, indent: str) -> str:
    """Renders the steps from the first value to the final score; steps without effect share the last line."""
    steps = explanation.steps
    moved = [step for step in steps if step.after != step.before]
    still = [step.step for step in steps if step.after == step.before]
    blocks = [table([(click.style(step.step, fg="cyan"), arithmetic(step)) for step in moved], indent=indent)]
    if still:
        blocks.append(wrap_text(f"left unchanged by {', '.join(still)}", indent, dim=True))
    return "\n".join(blocks)


def arithmetic(step: StepExplanation) -> str:
    """The arithmetic of a step: "bm25 1.2 + vector 0.3 = 1.5", "1.6 × 2 = 3.2", "(3.2 - low 0.7) / 5 = 0.5"."""
    if step.formula:
        return f"{_filled_in(step)} = {_number(step.after)}"
    before = [] if step.before is None else [_number(step.before)]
    own = len(step.parts) == 1 and step.kind != "sum"  # the only part has the name of the step
    # skip the name of the only part, which would repeat that of the step
    terms = [("" if own else f"{name} ", value) for name, value in step.parts.items()]
    if step.kind == "replace":
        rest = ", ".join(f"{name}{_number(value)}" for name, value in terms if not own)
        return f"{' '.join(before)} → {_number(step.after)}" + (f" ({rest})" if rest else "")
    if step.kind == "multiply":
        # factors of 1 have no effect and are left out
        factors = before + [f"{name}{_number(value)}" for name, value in terms if value != 1]
        return f"{' × '.join(factors)} = {_number(step.after)}"
    said = " ".join(before)
    for name, value in terms:
        if value:
            sign = "-" if value < 0 else "+"
            said += f" {sign} {name}{_number(abs(value))}" if said else f"{name}{_number(value)}"
    return f"{said or 0} = {_number(step.after)}"


def _filled_in(step: StepExplanation) -> str:
    """The formula of a step with its values filled in; the score before the step has no name."""
    from speckit_memory.pipeline.model.formulas import BEFORE  # loads numpy, which `--help` does not need

    numbers = {name: f"{name.replace('_', ' ')} {_bracketed(value)}" for name, value in step.parts.items()}
    if step.before is not None:
        numbers[BEFORE] = _bracketed(step.before)
    return _NAME.sub(lambda name: numbers[name[0]], step.formula.replace("*", "×"))


def _bracketed(value: float) -> str:
    return f"({_number(value)})" if value < 0 else _number(value)


def _number(value: float) -> str:
    """Formats with four decimals; with four significant digits below 0.1."""
    return f"{value:.4f}" if not value or abs(value) >= 0.1 else f"{value:.4g}"
