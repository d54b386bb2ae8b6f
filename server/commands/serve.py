"""`serve`: the MCP server."""

from __future__ import annotations

from pathlib import Path

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.server.failures import show
from speckit_memory.server.options import Common, NamedPath, shared

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
    help="HTTP: a file that holds the bearer token clients must present; needed for any but a loopback address.",
)
@click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="HTTP: a further Host name to answer to, such as that of a proxy; may be repeated.",
)
@click.option(
    "--warm-up/--no-warm-up", default=True, show_default=True, help="Load the store soon after the first request."
)
@shared("db", "pipeline", "set")
def command(
    common: Common,
    transport: str,
    host: str,
    port: int,
    token_file: Path | None,
    allowed: tuple[str, ...],
    warm_up: bool,
) -> int:
    """Serve the memory to MCP clients, over stdio or streamable HTTP (path /mcp).

    Exits with 2 when the store, the pipeline or .speckit/config.yaml cannot be what was meant. Without a store the
    server starts all the same: memory_index_scan and memory_save create one where it is clear which workspace is meant.
    """
    from speckit_memory.server.startup import check_configuration

    try:
        check_configuration(common)
    except SpeckitError as error:
        show(error, as_json=False)
        return BAD_CONFIGURATION
    if transport == "http":
        from speckit_memory.server.http import serve_http

        return serve_http(common, host, port, token_file, allowed, warm_up=warm_up)
    from speckit_memory.server.stdio import serve_stdio

    return serve_stdio(common, warm_up=warm_up)
