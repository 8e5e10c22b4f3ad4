"""Planning: what of a query is handed to storage, and how."""
