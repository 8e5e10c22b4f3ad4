"""What differs between two snapshots, and what each commit of a branch has changed."""
