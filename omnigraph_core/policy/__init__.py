"""Who may do what on which branch."""
