"""Jobs on Spark: where they run, and how work is spread over many processes.

Opening a graph and answering a query never import this package; who asks for Spark does.
"""
