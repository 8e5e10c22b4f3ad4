"""The intermediate form of queries: nodes, lowering, rewrite rules, explain."""
