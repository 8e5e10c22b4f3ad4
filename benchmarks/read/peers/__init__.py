"""Other engines, each with the operations it can answer."""
