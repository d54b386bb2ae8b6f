"""Resolves the embedding model from the settings (feature I6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.settings import (
    DOCUMENT_PROMPT_VARIABLE,
    EMBEDDER_VARIABLE,
    ENCODER_VARIABLE,
    QUERY_PROMPT_VARIABLE,
)
from speckit_memory.memory.models.embedders.static import NAME, StaticEmbedder

if TYPE_CHECKING:
    from speckit_memory.memory.models.embedders.encoder import EncoderEmbedder
    from speckit_memory.memory.models.embedders.protocol import SentenceEncoder
    from speckit_memory.memory.models.embedders.remote.embedder import RemoteEmbedder


def chosen(environ: Mapping[str, str]) -> StaticEmbedder | EncoderEmbedder | RemoteEmbedder:
    """Return the model that the environment names, else the bundled one."""
    return of_setting(environ.get(EMBEDDER_VARIABLE, ""), environ)


def of_setting(
    setting: str, environ: Mapping[str, str], bundled: StaticEmbedder | None = None
) -> StaticEmbedder | EncoderEmbedder | RemoteEmbedder:
    """Return the model of this name, with the prompts and limits of the environment. `bundled` supplies its tokens.

    Only names are checked, and nothing is sent; errors in a model appear when the first text is embedded.
    """
    bundled = bundled or StaticEmbedder()
    if setting in ("", NAME):
        return bundled
    # Imported only if a model is named; the bundled one needs none of these.
    from speckit_memory.errors import SpeckitError
    from speckit_memory.memory.models.embedders.encoder import EncoderEmbedder, MissingEncoder
    from speckit_memory.memory.models.embedders.model_folder import Prompts
    from speckit_memory.memory.models.embedders.model_name import BUNDLED, parse_model_name
    from speckit_memory.memory.models.embedders.named_encoder import named_encoder

    query, document = environ.get(QUERY_PROMPT_VARIABLE), environ.get(DOCUMENT_PROMPT_VARIABLE)
    try:
        name = parse_model_name(setting, environ)
        if name.kind == BUNDLED:
            return bundled
        if name.remote:
            from speckit_memory.memory.models.embedders.remote.embedder import RemoteEmbedder
            from speckit_memory.memory.models.embedders.remote.endpoint import endpoint

            asked = endpoint(name.kind, name.model, environ)
            return RemoteEmbedder(asked, bundled, Prompts(query or "", document or ""))
        encoder = named_encoder(name, environ)
    except SpeckitError as error:
        encoder = MissingEncoder(error)
    return EncoderEmbedder(encoder, bundled, query, document)


def encoder_of(environ: Mapping[str, str]) -> EncoderEmbedder | None:
    """Return the second-look encoder that the environment names, None if it names none; it is never a service.

    Errors in a model appear when the first text is embedded.
    """
    setting = environ.get(ENCODER_VARIABLE, "")
    if not setting:
        return None
    from speckit_memory.errors import SpeckitError
    from speckit_memory.memory.models.embedders.encoder import EncoderEmbedder, MissingEncoder
    from speckit_memory.memory.models.embedders.model_name import parse_model_name
    from speckit_memory.memory.models.embedders.named_encoder import named_encoder

    encoder: SentenceEncoder
    try:
        name = parse_model_name(setting, environ)
        if name.kind not in ("path", "fastembed"):
            raise SpeckitError(
                "E001",
                f"{ENCODER_VARIABLE} is '{setting}', which is not a sentence encoder on this machine",
                hint="Accepted: a path, or fastembed:MODEL.",
                actions=("run `speckit-memory model list` for the names", "see docs/embedders.md"),
            )
        encoder = named_encoder(name, environ, ENCODER_VARIABLE)
    except SpeckitError as error:
        encoder = MissingEncoder(error)
    query, document = environ.get(QUERY_PROMPT_VARIABLE), environ.get(DOCUMENT_PROMPT_VARIABLE)
    return EncoderEmbedder(encoder, StaticEmbedder(), query, document)
