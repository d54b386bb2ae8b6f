"""`memory_causal_stats`: statistics of the causal graph (feature T20)."""

from collections.abc import Callable

from speckit_memory.server.console.markdown import about, fields
from speckit_memory.server.replies.envelope import Reply, nothing
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1200


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_causal_stats() -> Reply:
        """Count causal links by relation and maker, and memories with one."""
        from speckit_memory.engine.graph.linking import WANTED_COVERAGE

        stats = workspace.memory().graph.stats()
        enough = stats.coverage >= WANTED_COVERAGE
        hint = f"fewer than {WANTED_COVERAGE:.0%} of the memories have a link: declare causalLinks in documents"
        return Reply(
            f"{stats.links} causal links, {stats.coverage:.0%} of {stats.memories} memories have one",
            {
                "links": stats.links,
                "memories": stats.memories,
                "covered": stats.covered,
                "coverage": round(stats.coverage, 4),
                "wanted_coverage": WANTED_COVERAGE,
                "mean_strength": round(stats.strength, 4),
                "by_relation": stats.by_relation,
                "by_maker": stats.by_maker,
            },
            facts=about(fields(stats.by_relation), fields({"mean strength": round(stats.strength, 4)})),
            again=nothing,
            hints=() if enough or not stats.memories else (hint,),
        )

    return memory_causal_stats
