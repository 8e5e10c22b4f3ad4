"""The graphs of this platform: one folder for each, with a `defs.yaml`."""
