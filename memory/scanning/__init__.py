"""The files of a workspace: found, selected, compared with what is stored."""
