"""Embeddings: texts in, vectors out, whichever provider makes them."""
