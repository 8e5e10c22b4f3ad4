"""Imported by processes that others are forked from: builds the parsers of both languages once."""

from __future__ import annotations

from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.read import read_schema

read_schema("node Part { sku: String @key }", "warm.pg")
parse_queries("query all() { match { $p: Part } return { $p.sku } }")
