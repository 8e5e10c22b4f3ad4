"""Hypothesis strategies for schema ASTs: every shape the parser can produce, sensible or not."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph_core.diagnostics import Name
from omnigraph_core.schema import ast
from omnigraph_core.types import MAX_VECTOR_DIMENSION, PropType, Scalar

KEYWORDS = ("node", "edge", "interface", "implements", "enum", "type", "date", "true", "id", "key")
CONSTRAINT_WORDS = frozenset({"key", "unique", "index", "range", "check", "card"})

type_names = st.one_of(
    st.sampled_from(["Node", "Edge", "String", "Vector", "A", "Part_2"]),
    st.from_regex(r"[A-Z][A-Za-z0-9_]{0,6}", fullmatch=True),
).map(Name)
idents = st.one_of(
    st.sampled_from(KEYWORDS), st.from_regex(r"[a-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
).map(Name)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

_plain = [scalar for scalar in Scalar if scalar is not Scalar.VECTOR]
_listable = [scalar for scalar in _plain if scalar is not Scalar.BLOB]
_enum_values = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)

prop_types = st.builds(
    lambda type, is_nullable: type.nullable(is_nullable=is_nullable),
    st.one_of(
        st.sampled_from(_plain).map(PropType),
        st.sampled_from(_listable).map(lambda scalar: PropType(scalar, is_list=True)),
        st.integers(1, MAX_VECTOR_DIMENSION).map(
            lambda dimension: PropType(Scalar.VECTOR, dimension=dimension)
        ),
        st.sets(_enum_values, min_size=1, max_size=4).map(
            lambda values: PropType(Scalar.STRING, enum_values=tuple(sorted(values)))
        ),
    ),
    st.booleans(),
)

_signs = st.sampled_from(["", "-"])
_digits = st.from_regex(r"[0-9]{1,25}", fullmatch=True)
_words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,6}", fullmatch=True).filter(
    lambda word: word not in ("true", "false")
)
_literals = st.one_of(
    texts.map(lambda text: ast.Argument(ast.ArgumentKind.STRING, text)),
    _words.map(lambda word: ast.Argument(ast.ArgumentKind.WORD, word)),
    st.sampled_from(["true", "false"]).map(lambda w: ast.Argument(ast.ArgumentKind.BOOL, w)),
    st.builds(lambda s, d: ast.Argument(ast.ArgumentKind.INT, s + d), _signs, _digits),
    st.builds(
        lambda s, d, f: ast.Argument(ast.ArgumentKind.FLOAT, f"{s}{d}.{f}"),
        _signs,
        _digits,
        _digits,
    ),
)
arguments = st.one_of(
    _literals,
    st.lists(_literals, max_size=3).map(
        lambda items: ast.Argument(ast.ArgumentKind.LIST, "", tuple(items))
    ),
)

annotation_values = st.one_of(
    st.sampled_from(["key", "unique", "index"]).map(lambda name: ast.Annotation(Name(name))),
    st.builds(
        ast.Annotation,
        idents.filter(lambda name: name not in CONSTRAINT_WORDS),
        st.none() | arguments,
        st.dictionaries(idents, arguments, max_size=2).map(
            lambda keywords: tuple((Name(key), value) for key, value in keywords.items())
        ),
    ),
)
_annotation_lists = st.lists(annotation_values, max_size=3).map(tuple)

properties = st.builds(ast.Property, idents, prop_types, _annotation_lists)
_property_lists = st.lists(properties, max_size=4).map(tuple)

_columns = st.lists(idents, min_size=1, max_size=3).map(tuple)
_bounds = st.integers(-(10**19), 10**19) | st.floats(allow_nan=False, allow_infinity=False)
constraints = st.one_of(
    st.builds(ast.Key, _columns),
    st.builds(ast.Unique, _columns),
    st.builds(ast.Index, _columns),
    st.builds(ast.Range, idents, _bounds, _bounds | st.none()),
    st.builds(ast.Range, idents, st.none(), _bounds),
    st.builds(ast.Check, idents, texts),
)
_constraint_lists = st.lists(constraints, max_size=3).map(tuple)

cardinalities = st.builds(ast.Cardinality, st.integers(0, 2**40), st.none() | st.integers(0, 2**40))

declarations = st.one_of(
    st.builds(ast.Interface, type_names, _property_lists),
    st.builds(
        ast.Node,
        type_names,
        _annotation_lists,
        st.lists(type_names, max_size=3, unique=True).map(tuple),
        _property_lists,
        _constraint_lists,
    ),
    st.builds(
        ast.Edge,
        type_names,
        type_names,
        type_names,
        st.none() | cardinalities,
        _annotation_lists,
        _property_lists,
        _constraint_lists,
    ),
)
schemas = st.lists(declarations, max_size=4).map(lambda items: ast.Schema(tuple(items)))
