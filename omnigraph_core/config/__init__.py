"""The file `omnigraph.yaml`: which graphs there are and how people like to meet them."""
