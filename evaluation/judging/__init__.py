"""Labels by people and by commands, where two pipelines disagree first (feature E3, phase C)."""
