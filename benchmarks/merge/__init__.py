"""What merges and diffs read, counted."""
