"""OmniGraph: a typed property graph kept in a lake."""

__version__ = "0.1.0"
