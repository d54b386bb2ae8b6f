"""The frame: data model, roles, registry, builder, runner, trace. It names no concrete component."""
