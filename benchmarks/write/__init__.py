"""What writing costs beside the bare Lance calls."""
