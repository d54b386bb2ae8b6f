"""The commands of the command line, one per module; each module offers `command`."""
