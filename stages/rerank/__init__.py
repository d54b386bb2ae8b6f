"""Stage 3: rerankers, which rescore, group or select."""
