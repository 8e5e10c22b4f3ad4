"""Pictures of a graph's schema and history, as text and as SVG."""
