"""`save`: stores one file, or a text as a new file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

import click

from speckit_memory.config.files.paths import is_there, named_path
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.typed_text import decode_option, standard_input
from speckit_memory.server.console.output import print_json, wrap_text

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import SaveResult


@click.command("save")
@click.argument("file", required=False, default="", metavar="[FILE]", shell_complete=completion.files)
@click.option("--content", metavar="TEXT|-", callback=decode_option, help="The text to store, '-' for standard input.")
@click.option("--title", default="", metavar="TEXT", callback=decode_option, help="The title of the new document.")
@click.option("--folder", metavar="DIR", help="The folder of the new file, else 'memories'.")
@click.option("--tier", default="", metavar="TIER", callback=decode_option, help="The tier of the new document.")
@click.option(
    "--trigger",
    "triggers",
    multiple=True,
    metavar="PHRASE",
    callback=decode_option,
    help="A trigger phrase of the document; may be repeated.",
)
@click.option("--supersedes", multiple=True, metavar="ID|KEY", help="A memory that it replaces; may be repeated.")
@click.option("--relates-to", multiple=True, metavar="ID|KEY", help="A related memory; may be repeated.")
@click.option("--append", "append", is_flag=True, help="Add the text to FILE, or to a section of it.")
@click.option("--replace", "replace", is_flag=True, help="Replace a section of FILE by the text.")
@click.option(
    "--section", default="", metavar="NAME", callback=decode_option, help="The section, by ANCHOR id or heading."
)
@click.option("--force", is_flag=True, help="Save despite problems found by the checks.")
@click.option("--skip-preflight", is_flag=True, help="Skip the checks of anchors, duplicates and length.")
@click.option("--dry-run", is_flag=True, help="Only check, and show how the text relates to existing memories.")
@click.option("--session", default="", help="Name of the session that saves.")
@shared_options("db", "json")
def command(
    common: Common,
    file: str,
    content: str | None,
    title: str,
    folder: str | None,
    tier: str,
    triggers: tuple[str, ...],
    supersedes: tuple[str, ...],
    relates_to: tuple[str, ...],
    append: bool,
    replace: bool,
    section: str,
    force: bool,
    skip_preflight: bool,
    dry_run: bool,
    session: str,
) -> None:
    """Check and store one FILE, or a text as a new Markdown file.

    The new file is FILE, or one named after the title; no file is ever overwritten. With --append or --replace the text
    goes into the FILE of a memory. Links to superseded and related memories are written into the front matter, under
    `causalLinks`.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        file: Document of the workspace; "" for a new one.
        content: Text to store, "-" for standard input; None to read the file.
        title: Title of the new document.
        folder: Folder of the new file; None for the default.
        tier: Tier of the new document.
        triggers: Trigger phrases of the document.
        supersedes: Memories that it replaces.
        relates_to: Related memories.
        append: Whether the text is added to the file, or to a section of it.
        replace: Whether the text replaces a section of the file.
        section: Section, by ANCHOR id or heading.
        force: Whether problems found by the checks are overridden.
        skip_preflight: Whether the checks of anchors, duplicates and length are skipped.
        dry_run: Whether the text is only checked.
        session: Name of the session; "" for none.
    """
    how: Literal["append", "replace", ""] = "append" if append else "replace" if replace else ""
    _require_fitting(file, content, how, append and replace, section, bool(title or folder or tier or triggers))
    text = None if content is None else standard_input() if content == "-" else content
    config = settings(common.db)
    if text is None and not store_is_there(config.db) and not is_there(config.root / named_path(file)):
        raise SpeckitError("E010", f"{file}: there is no such file")
    from speckit_memory.server.console.arguments.memory_names import known_key, known_keys
    from speckit_memory.server.views.unweighed_inputs import unweighed_tier

    with common.open(create=not dry_run) as memory:
        every = known_keys(memory, (*supersedes, *relates_to))
        replaced, related = every[: len(supersedes)], every[len(supersedes) :]
        if text is None:
            saved = memory.documents.save(
                named_path(file).absolute(),
                force=force,
                dry_run=dry_run,
                skip_preflight=skip_preflight,
                session=session,
                supersedes=replaced,
                relates_to=related,
            )
        elif how:
            name = known_key(memory, file)
            saved = memory.documents.edit(
                name,
                text,
                how=how,
                section=section,
                force=force,
                dry_run=dry_run,
                skip_preflight=skip_preflight,
                session=session,
                supersedes=replaced,
                relates_to=related,
            )
        else:
            path = str(named_path(file).absolute()) if file else ""
            saved = memory.documents.write(
                text,
                title=title,
                folder=folder,
                path=path,
                tier=tier,
                triggers=triggers,
                force=force,
                dry_run=dry_run,
                skip_preflight=skip_preflight,
                session=session,
                supersedes=replaced,
                relates_to=related,
            )
        hints = unweighed_tier(memory, tier) if saved.id else ()
    _show(saved, common.as_json)
    for hint in hints if not common.as_json else ():
        click.echo(wrap_text(hint, dim=True))


def _require_fitting(file: str, content: str | None, how: str, both: bool, section: str, describes: bool) -> None:
    context = click.get_current_context()
    if not file and content is None:
        raise click.UsageError("a FILE or --content is needed", context)
    if both:
        raise click.UsageError("--append and --replace exclude each other", context)
    if how and not (file and content is not None):
        raise click.UsageError(f"--{how} needs FILE and --content", context)
    if section and not how:
        raise click.UsageError("--section goes with --append or --replace", context)
    if describes and (how or content is None):
        raise click.UsageError("--title, --folder, --tier and --trigger go with --content for a new file", context)


def _show(saved: SaveResult, as_json: bool) -> None:
    from speckit_memory.server.views.save_result import saved_data
    from speckit_memory.server.views.save_verdict import describe_verdict, link_lines, question

    if as_json:
        print_json(saved_data(saved))
        return
    outcome = "checked, nothing written" if saved.outcome == "dry_run" else saved.outcome
    click.echo(wrap_text(f"{saved.key}: {outcome}{f' (id {saved.id})' if saved.id else ''}"))
    if saved.verdict:
        click.echo(wrap_text(f"verdict: {describe_verdict(saved.verdict)}"))
    for line in link_lines(saved):
        click.echo(wrap_text(line))
    option = f"--supersedes {shlex.quote(saved.verdict.key)}" if saved.verdict else ""
    # the document of a dry run of a text does not exist
    dry = saved.outcome == "dry_run"
    again = f"the same command with {option}" if dry else f"speckit-memory save {shlex.quote(saved.key)} {option}"
    if asked := question(saved, again):
        click.echo(wrap_text(asked))
    for problem in saved.problems:
        click.echo(wrap_text(f"{problem.code} {problem.where or saved.key}: {problem.message}"))
