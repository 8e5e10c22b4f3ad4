"""What a `defs.yaml` can name."""
