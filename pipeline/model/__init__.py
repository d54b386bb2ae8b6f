"""What flows through a pipeline: query, hits, pool, ranking, trace."""
