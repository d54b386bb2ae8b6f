"""Pipeline and flag files as they are shown and edited."""
