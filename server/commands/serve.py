"""`serve`: runs the MCP server."""

from __future__ import annotations

import os
from pathlib import Path

import click

from speckit_memory.config.workspace.options import TOOL_PROFILES, ToolProfile
from speckit_memory.config.workspace.settings import PROFILE_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.failures import show

BAD_CONFIGURATION = 2


@click.command("serve")
@click.option(
    "--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True, help="How clients connect."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="HTTP: the address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="HTTP: the port.")
@click.option(
    "--token-file",
    type=NamedPath(),
    help="HTTP: a file with the bearer token that clients must send, or with lines of a principal and its token; this "
    "or --issuer is required unless the address is loopback.",
)
@click.option(
    "--issuer",
    default="",
    metavar="URL",
    help="HTTP: an OAuth 2.1 issuer whose access tokens (JWT) are accepted.",
)
@click.option(
    "--audience",
    default="",
    metavar="URL",
    help="HTTP: the address of this server that those tokens must name, such as https://memory.example/mcp.",
)
@click.option(
    "--principal-claim",
    default="sub",
    show_default=True,
    metavar="NAME",
    help="HTTP: the claim of those tokens that holds the principal.",
)
@click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="HTTP: a further Host name to accept, such as that of a proxy; may be repeated.",
)
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    metavar="[NAME=]DIR",
    help="The workspace to serve, else that of SPECKIT_ROOT or the working folder. May be repeated: over HTTP each has "
    "the path /mcp/NAME, over stdio the client's roots select it.",
)
@click.option(
    "--warm-up/--no-warm-up", default=True, show_default=True, help="Load the store soon after the first request."
)
@click.option(
    "--profile",
    type=click.Choice(TOOL_PROFILES),
    help=f"The tools to offer: core (six for daily work) or full (all); else {PROFILE_VARIABLE}, else the profile of "
    ".speckit/config.yaml, else full.",
)
@click.option(
    "--cache-seconds",
    type=click.IntRange(0, 3600),
    default=60,
    show_default=True,
    help="Reuse an answer for this long while nothing changes; 0: never.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Index changed files in the background; only one server per store does. Needs the extra 'watch'.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="HTTP: processes that answer reading calls; 1: the server's own.  [default: one per core, at most 4]",
)
@click.option(
    "--shared",
    is_flag=True,
    help="stdio: let one process answer for all clients of the store that are started with the same options; it "
    "begins with the first and ends after the last.",
)
@shared_options("db", "pipeline", "set")
def command(
    common: Common,
    transport: str,
    host: str,
    port: int,
    token_file: Path | None,
    issuer: str,
    audience: str,
    principal_claim: str,
    allowed: tuple[str, ...],
    workspaces: tuple[str, ...],
    warm_up: bool,
    profile: ToolProfile | None,
    cache_seconds: int,
    watch: bool,
    workers: int | None,
    shared: bool,
) -> int:
    """Serve the memory to MCP clients, over stdio or streamable HTTP (path /mcp).

    Exits with 2 when the store, .speckit/config.yaml, --pipeline or --set cannot be used. If files or the environment
    name an unusable pipeline, the shipped one answers with a warning until it is corrected. The server starts without a
    store too: memory_index_scan and memory_save create one once the workspace is clear.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        transport: How clients connect.
        host: Address to listen on, over HTTP.
        port: Port, over HTTP.
        token_file: File with the bearer tokens that HTTP clients may send.
        issuer: Issuer whose access tokens HTTP clients may send; "" for none.
        audience: Address of the server in these tokens.
        principal_claim: Claim of these tokens that holds the principal.
        allowed: Further Host names to accept, over HTTP.
        workspaces: Workspaces to serve; none for that of the environment or the working folder.
        warm_up: Whether the store is loaded soon after the first request.
        profile: Tools to offer; None for the setting.
        cache_seconds: Seconds for which an answer is reused while nothing changes; 0 for never.
        watch: Whether changed files are indexed in the background.
        workers: Processes that answer reading calls, over HTTP; 1 for that of the server, None for one per core.
        shared: Whether one process answers for all clients of the store, over stdio.

    Returns:
        The exit status.
    """
    if shared:
        if transport == "http" or len(workspaces) > 1:
            raise click.UsageError("--shared is for stdio, and for one workspace")
        # imports little: this process only passes lines on
        from speckit_memory.server.transport.front import serve_front
        from speckit_memory.server.transport.shared_socket import SharedOptions, SharedSocket

        try:
            root = next(iter(_roots(common, workspaces).values()), None)
            return serve_front(SharedSocket.of(SharedOptions(common, root, profile, warm_up, cache_seconds, watch)))
        except SpeckitError as error:
            return show(error, as_json=False)
    from speckit_memory.server.calls.worker_processes import usual_workers
    from speckit_memory.server.replies.worker_calls import share_one_arena
    from speckit_memory.server.transport.workspace_registry import WorkspaceRegistry, check_workspaces
    from speckit_memory.server.views.file_changes import require_watching

    try:
        roots = _roots(common, workspaces)
        profiles, broken = check_workspaces(common, roots, profile)
        if watch:
            require_watching()
    except SpeckitError as error:
        show(error, as_json=False)
        return BAD_CONFIGURATION
    share_one_arena()
    served = WorkspaceRegistry(
        common,
        roots,
        profiles,
        broken,
        warm_up=warm_up,
        cache_seconds=cache_seconds,
        watch=watch,
        workers=workers or usual_workers(),
    )
    if transport == "http":
        from speckit_memory.server.transport.http import serve_http
        from speckit_memory.server.transport.http_access import AccessOptions

        access = AccessOptions(token_file, issuer, audience, principal_claim)
        return serve_http(served, host, port, access, allowed)
    from speckit_memory.server.transport.stdio import serve_stdio

    return serve_stdio(served)


def _roots(common: Common, workspaces: tuple[str, ...]) -> dict[str, Path]:
    if not workspaces:
        return {}
    from speckit_memory.server.workspace.served_roots import served_roots

    return served_roots(workspaces, os.environ, own_store=common.db is not None)
