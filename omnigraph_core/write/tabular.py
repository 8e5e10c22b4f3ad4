"""placeholder"""
from __future__ import annotations
def read_tabular(intake): return iter(())
def raw_rows(source, lines): return iter(())
