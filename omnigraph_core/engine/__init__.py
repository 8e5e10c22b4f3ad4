"""The façade: everything a user of the library calls."""
