"""What runs work with: the graph, and Spark."""
