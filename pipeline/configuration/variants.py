"""Pipelines derived from other pipelines, and shadow pipelines of a control (features P4, P5). Nothing is built here.

The pipelines of a comparison are values derived by functions: a control, and the control with one change; or a separate
pipeline that the control's file names. An impossible change is added to the problems of the variant, like a problem of
a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from speckit_memory.config.flags.flag import (
    BY_ENVIRONMENT,
    MAX_ACTIVE,
    PREFIX,
    describe_flags,
    nearest_flag,
    surplus,
    ways_back,
)
from speckit_memory.config.flags.flags import Offered, nothing_offered
from speckit_memory.config.pipelines.document import named_in
from speckit_memory.config.pipelines.shadow_entries import MOST_BESIDE, SHARES, BesideMode, ShadowEntry
from speckit_memory.config.workspace.settings import BY_CALL
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.pipeline.configuration.effective import Effective, fill_document
from speckit_memory.pipeline.configuration.overrides import DisabledStep, ParameterOverride

VariantMode = BesideMode


@dataclass(frozen=True, slots=True)
class Variant:
    """A pipeline that runs in addition to a control: to measure its cost (`dark_run`), or to be compared (`shadow`).

    `flag` is the flag that produces it, "" for a separate pipeline. `sample` is the share of queries it sees, (0, 1],
    and `interleave` means that its results are mixed into the served answers. `where` is the position that requests it,
    None for a flag set by the environment.
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
        """The origin of the variant: "SPECKIT_RSF_FUSION in shadow (environment)" or "shadow listed at FILE:2:3"."""
        if not self.flag:
            return f"{self.mode} listed at {self.where}"
        return f"{self.flag} in {self.mode} ({self.where or BY_ENVIRONMENT})"


def with_values(whole: Effective, overrides: Mapping[str, str]) -> Effective:
    """The pipeline with single values changed: "step.parameter" or "step.parameter.key" to YAML text."""
    # Appended: of several changes of one value the last wins.
    return replace(
        whole, changes=(*whole.changes, *(ParameterOverride(path, text) for path, text in overrides.items()))
    )


def without(whole: Effective, step: str, *, forgotten: bool = False) -> Effective:
    """The pipeline without the step of this id.

    With `forgotten`, also without the keys, list items and values that name it in other steps, such as a channel
    weight.
    """
    return replace(whole, changes=(*whole.changes, DisabledStep(step, forgotten)))


def with_flag(whole: Effective, name: str, *, on: bool = True) -> Effective:
    """The pipeline with a flag opened or closed, overriding the environment."""
    flag = whole.flags.get(name)
    if flag is None:
        problem = Problem("E120", f"the flag '{name}' is not declared; {nearest_flag(name, whole.flags)}")
        return replace(whole, misread=(*whole.misread, problem))
    if flag.state == "permanent" and not on:
        problem = Problem("E030", f"{name} is permanent and cannot be switched off")
        return replace(whole, misread=(*whole.misread, problem))
    # The same object if nothing changes.
    return whole if on == flag.on else _decided(whole, name, on=on)


def either_way(whole: Effective, name: str) -> tuple[Effective, Effective]:
    """The pipeline with a declared flag closed and with it open, independent of its state."""
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
    """The pipelines that run in addition to a control, including those that have problems themselves.

    There is one for each flag in `dark_run` or `shadow` that enables steps of the control: the control with that flag
    open. And one for each entry of `shadows` and `dark_runs`: a separate pipeline, whose own shadows do not run. A
    variant equal to the control is kept: its differences show the noise.

    Args:
        control: The pipeline that is served.
        environ: Environment variables that set flags.
        offered: Yields the flags of extensions, for flags that the product does not declare.
        unread: If given, problems of unreadable files are appended to it, and the other variants are returned.

    Raises:
        SpeckitError: With all problems of the entries: unreadable files, the control itself, equal names, and more than
            `MOST_BESIDE`.
    """
    problems: list[Problem] = []
    variants = [
        *_by_flags(control),
        *_by_entries(control, environ, offered, problems, problems if unread is None else unread),
    ]
    first: dict[str, Variant] = {}
    for variant in variants:
        # setdefault returns the first variant of that name, itself if there was none.
        if first.setdefault(variant.name, variant) is not variant:
            message = f"two variants are called '{variant.name}': {first[variant.name].asked_for} and "
            message += f"{variant.asked_for}; give one of them a 'name'"
            problems.append(Problem("E114", message, where=variant.where))
    problems += _too_many(control, variants)
    if problems:
        raise SpeckitError.of(problems)
    return tuple(variants)


def _too_many(control: Effective, variants: Sequence[Variant]) -> Iterator[Problem]:
    """The problem of more than `MOST_BESIDE` variants. If flags request some, the message names flags to close."""
    flags = [control.flags[variant.flag] for variant in variants if variant.flag]
    listed = len(variants) - len(flags)
    if len(variants) > MOST_BESIDE and flags:
        many = surplus(flags, max(MOST_BESIDE - listed, 0))
        message = (
            f"{len(variants)} pipelines would run in addition to '{control.name}', accepted: at most {MOST_BESIDE}; "
        )
        message += f"{len(flags)} are of flags: {describe_flags(flags)}" + (
            f"; {listed} are listed in a file" if listed else ""
        )
        where = next((flag.decided for flag in many if flag.decided), None)
        hint = f"Flags in dark_run and in shadow each run another pipeline; at most {MAX_ACTIVE} should be active."
        yield Problem("E114", message, hint, ways_back(many), where)
    elif len(variants) > MOST_BESIDE:
        for variant in variants[MOST_BESIDE:]:
            message = f"'{variant.name}' is one variant too many; at most {MOST_BESIDE} run in addition to a pipeline"
            yield Problem("E114", message, where=variant.where)


def waiting_flags(whole: Effective) -> list[str]:
    """The declared flags that enable steps of a pipeline, in any state."""
    named = dict.fromkeys(name for steps in whole.listed.values() for step in steps for name in step.flags)
    return [name for name in named if name in whole.flags]


def _by_flags(control: Effective) -> Iterator[Variant]:
    # Names in the order of the steps, not of the flags' file.
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
        # Interleaving attributes each row to one of two teams, so only one variant can take part.
        if entry.interleave and mixing:
            message = f"answers are mixed with those of '{mixing}' already; only one pair can be interleaved at a time"
            problems.append(Problem("E114", message, where=entry.where))
            continue
        mixing = entry.use if entry.interleave else mixing
        if document.file == control.file:
            message = f"'{entry.use}' is the pipeline itself; name another file or preset"
            problems.append(Problem("E114", message, where=entry.where))
            continue
        yield _variant(entry, fill_document(document, environ, offered))


def _variant(entry: ShadowEntry, effective: Effective) -> Variant:
    return Variant(
        entry.name or effective.name,
        entry.mode,
        effective,
        sample=entry.sample,
        interleave=entry.interleave,
        where=entry.where,
    )
