"""The settings of a workspace, and the value of each that is in force."""
