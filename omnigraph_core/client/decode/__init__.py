"""Documents a server answers with, as the values that the engine returns."""
