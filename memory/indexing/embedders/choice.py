"""Which embedding model the environment names (feature I6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from speckit_memory.config.settings import DOCUMENT_PROMPT_VARIABLE, EMBEDDER_VARIABLE, QUERY_PROMPT_VARIABLE
from speckit_memory.memory.indexing.embedders.static import StaticEmbedder

if TYPE_CHECKING:
    from speckit_memory.memory.indexing.embedders.encoder import EncoderEmbedder


def chosen(environ: Mapping[str, str]) -> StaticEmbedder | EncoderEmbedder:
    """The encoder in an ONNX file or in a folder, of one that has both forms the ONNX file; else the bundled model.

    Nothing is read but names; what is wrong with the files shows when the first text is embedded.
    """
    bundled, setting = StaticEmbedder(), environ.get(EMBEDDER_VARIABLE, "")
    if not setting:
        return bundled
    # imported by who names an encoder: the bundled model alone needs none of it
    from speckit_memory.memory.indexing.embedders.encoder import EncoderEmbedder
    from speckit_memory.memory.indexing.embedders.named_encoder import named_encoder

    prompts = environ.get(QUERY_PROMPT_VARIABLE), environ.get(DOCUMENT_PROMPT_VARIABLE)
    return EncoderEmbedder(named_encoder(setting), bundled, *prompts)
