"""Renders page templates. All values are escaped, except for plots drawn by the product.

Control characters and bidirectional controls are escaped first, as on a terminal.
"""

from __future__ import annotations

from importlib.resources import files

from markupsafe import Markup

from speckit_memory.server.console.output import printable


def rendered(name: str, **texts: object) -> str:
    """Renders a template of this folder with its style included; an undefined name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("speckit_memory.server.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_readable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # the only unescaped values are our own SVG drawings
    environment.filters["drawing"] = Markup
    style = files("speckit_memory.server.page").joinpath("page.css").read_text(encoding="utf-8")
    return environment.get_template(name).render(style=Markup(style), **texts)


def _readable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
