"""What an operator edits and how it is read: pipeline files, presets, flags, settings. Imports nothing of ours."""
