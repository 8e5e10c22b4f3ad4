"""A graph behind a server, with the methods of a graph at hand."""
