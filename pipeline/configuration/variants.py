"""One pipeline derived from another, and the pipelines that run beside one (features P4, P5). Nothing is built here.

The pipelines that stand side by side in a comparison are made so: a control, and the control with one thing changed, as
functions from value to value; or a whole pipeline that the control's file names. What cannot be changed so joins the
problems of the variant, as what is wrong with a file does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from speckit_memory.config.flags.flag import BY_ENVIRONMENT
from speckit_memory.config.flags.flag_limits import MAX_ACTIVE, surplus, told, ways_back
from speckit_memory.config.flags.flag_names import PREFIX, nearest_flag
from speckit_memory.config.flags.flags import Offered, nothing_offered
from speckit_memory.config.pipelines.beside import MOST_BESIDE, SHARES, Beside, BesideMode
from speckit_memory.config.pipelines.document import named_in
from speckit_memory.config.workspace.settings import BY_CALL
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.pipeline.configuration.effective import Effective, filled
from speckit_memory.pipeline.configuration.overriding import LeftOut, Setting

VariantMode = BesideMode


@dataclass(frozen=True, slots=True)
class Variant:
    """A pipeline that is to run beside a control: for its cost alone (`dark_run`), or to be compared (`shadow`).

    `flag` is the one that makes it, "" for a pipeline of its own. `sample` is the share of queries it sees, (0, 1], and
    `interleave` tells that its answers are mixed with those of the control in what is served. `where` is the place that
    asks for it, None for a flag that the environment decides.
    """

    name: str
    mode: VariantMode
    effective: Effective
    flag: str = ""
    sample: float = 1.0
    interleave: bool = False
    where: Where | None = None

    @property
    def asked_for(self) -> str:
        """Who asks for it, for people: "SPECKIT_RSF_FUSION in shadow (environment)", "shadow listed at FILE:2:3"."""
        if not self.flag:
            return f"{self.mode} listed at {self.where}"
        return f"{self.flag} in {self.mode} ({self.where or BY_ENVIRONMENT})"


def with_values(whole: Effective, overrides: Mapping[str, str]) -> Effective:
    """The pipeline with single values changed: "step.parameter" or "step.parameter.key" to YAML text."""
    return replace(whole, changes=(*whole.changes, *(Setting(path, text) for path, text in overrides.items())))


def without(whole: Effective, step: str, *, forgotten: bool = False) -> Effective:
    """The pipeline without the step of this id.

    `forgotten`: also without the keys, list items and values by which others name it, such as the weight of a channel.
    """
    return replace(whole, changes=(*whole.changes, LeftOut(step, forgotten)))


def with_flag(whole: Effective, name: str, *, on: bool = True) -> Effective:
    """The pipeline with a flag open or closed, whatever the environment says."""
    flag = whole.flags.get(name)
    if flag is None:
        problem = Problem("E120", f"the flag '{name}' is not declared; {nearest_flag(name, whole.flags)}")
        return replace(whole, misread=(*whole.misread, problem))
    if flag.state == "permanent" and not on:
        problem = Problem("E030", f"{name} is permanent and cannot be switched off")
        return replace(whole, misread=(*whole.misread, problem))
    return whole if on == flag.on else _decided(whole, name, on=on)


def either_way(whole: Effective, name: str) -> tuple[Effective, Effective]:
    """The pipeline with a declared flag closed, whatever its state, and with it open."""
    return _decided(whole, name, on=False), _decided(whole, name, on=True)


def _decided(whole: Effective, name: str, *, on: bool) -> Effective:
    state = "enabled" if on else "off"
    decided = replace(whole.flags[name], state=state, decided=Where(BY_CALL, 1, 0, ""), decision={})
    return replace(whole, flags={**whole.flags, name: decided})


def variants_of(
    control: Effective,
    environ: Mapping[str, str],
    offered: Offered = nothing_offered,
    unread: list[Problem] | None = None,
) -> tuple[Variant, ...]:
    """The pipelines that run beside a control, whatever is wrong with each of them by itself.

    One for each flag in `dark_run` or `shadow` that steps of the control wait for: the control with that flag open. And
    one for each entry of `shadows` and `dark_runs`: a whole pipeline, which runs nothing beside itself. One that would
    do the same as the control stays: what differs then is noise. Raises SpeckitError with all that is wrong with the
    entries: what cannot be read, what stands beside itself, equal names, and more than `MOST_BESIDE`. With a list
    `unread` what is wrong with files that cannot be read joins that instead, and the other variants remain.
    """
    problems: list[Problem] = []
    variants = [
        *_by_flags(control),
        *_by_entries(control, environ, offered, problems, problems if unread is None else unread),
    ]
    first: dict[str, Variant] = {}
    for variant in variants:
        if first.setdefault(variant.name, variant) is not variant:
            message = f"two variants are called '{variant.name}': {first[variant.name].asked_for} and "
            message += f"{variant.asked_for}; give one of them a 'name'"
            problems.append(Problem("E114", message, where=variant.where))
    problems += _too_many(control, variants)
    if problems:
        raise SpeckitError.of(problems)
    return tuple(variants)


def _too_many(control: Effective, variants: Sequence[Variant]) -> Iterator[Problem]:
    """That more than `MOST_BESIDE` are asked for. Where flags ask for some, those that are to give way are named."""
    flags = [control.flags[variant.flag] for variant in variants if variant.flag]
    listed = len(variants) - len(flags)
    if len(variants) > MOST_BESIDE and flags:
        many = surplus(flags, max(MOST_BESIDE - listed, 0))
        message = f"{len(variants)} pipelines are to run beside '{control.name}', accepted: at most {MOST_BESIDE}; "
        message += f"{len(flags)} are of flags: {told(flags)}" + (f"; {listed} are listed in a file" if listed else "")
        where = next((flag.decided for flag in many if flag.decided), None)
        hint = (
            f"Flags in dark_run and in shadow run beside the pipeline; at most {MAX_ACTIVE} should be active at once."
        )
        yield Problem("E114", message, hint, ways_back(many), where)
    elif len(variants) > MOST_BESIDE:
        for variant in variants[MOST_BESIDE:]:
            message = f"'{variant.name}' is one variant too many; at most {MOST_BESIDE} run beside a pipeline"
            yield Problem("E114", message, where=variant.where)


def waiting_flags(whole: Effective) -> list[str]:
    """The declared flags that steps of a pipeline wait for, whatever their states."""
    named = dict.fromkeys(name for steps in whole.listed.values() for step in steps for name in step.flags)
    return [name for name in named if name in whole.flags]


def _by_flags(control: Effective) -> Iterator[Variant]:
    for name in waiting_flags(control):
        flag = control.flags[name]
        if flag.beside is not None:
            short = name.removeprefix(PREFIX).lower()
            share = SHARES[flag.beside]
            yield Variant(short, flag.beside, with_flag(control, name), flag=name, sample=share, where=flag.decided)


def _by_entries(
    control: Effective, environ: Mapping[str, str], offered: Offered, problems: list[Problem], unread: list[Problem]
) -> Iterator[Variant]:
    mixing = ""
    for entry in control.beside:
        try:
            document = named_in(entry.where.file, entry.use)
        except SpeckitError as error:
            unread += [replace(problem, where=entry.where) for problem in error.problems]
            continue
        if entry.interleave and mixing:
            message = f"answers are mixed with those of '{mixing}' already; one pair at a time can be told apart"
            problems.append(Problem("E114", message, where=entry.where))
            continue
        mixing = entry.use if entry.interleave else mixing
        if document.file == control.file:
            message = f"'{entry.use}' stands beside itself; name another file or preset"
            problems.append(Problem("E114", message, where=entry.where))
            continue
        yield _variant(entry, filled(document, environ, offered))


def _variant(entry: Beside, effective: Effective) -> Variant:
    return Variant(
        entry.name or effective.name,
        entry.mode,
        effective,
        sample=entry.sample,
        interleave=entry.interleave,
        where=entry.where,
    )
