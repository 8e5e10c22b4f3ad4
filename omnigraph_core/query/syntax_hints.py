"""Likely fixes for queries that do not parse: habits of other languages, and common slips.

A place where parsing stopped comes in; the first hint whose conditions hold goes out, or None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Span
    from omnigraph_core.syntax import Unexpected

BARE_VALUE: Final = re.compile(r"(?:[:\[]|\[[^\[\]{}]*,)\s*\Z")
"""Text before a word that can only be a field's or a list's value."""

_KEYWORDS: Final = frozenset(
    {"query", "match", "return", "distinct", "having", "order", "limit", "offset", "as", "asc"}
    | {"desc", "not", "optional", "and", "or", "in", "is", "null", "contains", "starts_with"}
    | {"true", "false", "insert", "update", "delete", "set", "where"}
)
_LOOK_BACK: Final = 200
_NAME: Final = "NAME"
"""Stands in a hint for the name found, its first letter lowered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hint:
    """Holds when `before` ends the text parsed, `after` starts the rest, and terminals fit.

    Patterns are compiled when an error is explained, not when the module is loaded.
    """

    text: str
    before: str
    after: str
    expected: frozenset[str]
    excluded: frozenset[str]

    def holds(self, found: Unexpected, preceding: str, following: str) -> bool:
        return bool(
            self.expected <= found.expected
            and not self.excluded & found.expected
            and re.match(self.after, following)
            and re.search(rf"(?:{self.before})\Z", preceding)
        )


def find_hint(found: Unexpected, text: str, before: Span) -> str | None:
    """The fix for a place where parsing stopped; `before` is the part that was parsed."""
    word = found.found
    if word != word.lower() and word.lower() in _KEYWORDS:
        return f"keywords are lower-case: `{word.lower()}`"
    preceding = text[max(before.start, before.end - _LOOK_BACK) : before.end].rstrip()
    following = text[before.end : before.end + _LOOK_BACK]
    for hint in _HINTS:
        if hint.holds(found, preceding, following):
            return hint.text.replace(_NAME, word[:1].lower() + word[1:])
    return None


def _hint(
    text: str, *, before: str = "", after: str = "", expected: str = "", excluded: str = ""
) -> _Hint:
    return _Hint(
        text=text,
        before=before,
        after=after,
        expected=frozenset(expected.split()),
        excluded=frozenset(excluded.split()),
    )


_VAR: Final = r"\$\w+"
_EDGE: Final = "edges are written with a lower-case first letter: `NAME`"
_NUMBER: Final = "numbers are written 12, -3 or 4.5: no exponent, digits on both sides of the point"
_CYPHER: Final = (
    "an edge is written between two variables: `$a knows $b`, either way round `$a <knows> $b`"
)

_HINTS: Final = (
    # Characters that mean something elsewhere
    _hint("comments start with `//`", after="#"),
    _hint("strings take double quotes", after="['`]"),
    _hint("equality is a single `=`", before="=", after="=(?![~>])"),
    _hint("write `!=`", before="<", after=">"),
    _hint("write `<=`", before="=", after="<"),
    _hint("write `>=`", before="=", after=">"),
    _hint("regular expressions are not supported: use `contains`, `starts_with` or `search(…)`",
          before="=", after="~"),
    _hint("write `and`", after="&"),
    _hint("write `or`", after=r"\|"),
    _hint("nothing separates clauses, statements and queries: drop the `;`", after=";"),
    _hint("`!` stands only in `!=`; negation is `not { … }`", after="!"),
    _hint("name what is counted: `count($x)`", before=r"count\s*\(", after=r"\*"),
    _hint("hop bounds are written `knows{1,3}`", before=rf"{_VAR}\s+\w+", after=r"\*"),
    _hint("name each column: `return { $x.name }`", after=r"\*", expected="ACCESS"),
    _hint(_CYPHER, after=r"-\s*\[|--|->|<-|-\("),
    _hint(_CYPHER, before=r"[-<]", after=r"[-\[>]"),
    _hint(_NUMBER, after=r"[0-9]+(?![0-9])(?:\.[0-9]+(?![0-9])|(?!\.[0-9]))[A-Za-z_.]|\.[0-9]"),
    _hint("there is no arithmetic: compute the value outside and pass a parameter",
          after="[-+*/%]"),
    _hint("a character that cannot be seen stands here: put a space in its place",
          after="[\u00a0\u2000-\u200f\u202f\u2060\u3000\ufeff]"),
    _hint("names are made of the letters a to z, digits and `_`", after=r"[^\W\x00-\x7f]"),
    # Names
    _hint("variables start with a lower-case letter", after=r"\$[A-Z]"),
    _hint("a variable is `$` and a name", after=r"\$(?!\w)"),
    _hint("property names start with a lower-case letter", before=_VAR, after=r"\.\s*[A-Z]"),
    _hint(_EDGE, before=rf"{_VAR}(?:\s+{_VAR}\s*:)?\s*<?", after=r"[A-Z]\w*\s*(?:[$>]|\{\s*[0-9])"),
    _hint("type names start with an upper-case letter", before=rf"{_VAR}\s*:", after="[a-z_]",
          expected="TYPE_NAME"),
    _hint("a node is bound by `$p: Person`", before=r"\(\s*\w*", after=":"),
    _hint("names of queries, properties and aliases start with a lower-case letter: `NAME`",
          after="[A-Z]", expected="IDENT", excluded="TYPE_NAME SYMBOL NOT"),
    # Around queries
    _hint("`insert`, `update` and `delete` stand directly inside `query name() { … }`",
          after=r"mutation(?!\w)"),
    _hint("annotations follow the parameter list: `query name() NAME(…) { … }`",
          after="@", expected="QUERY"),
    _hint("this `}` closes nothing", after=r"\}", expected="QUERY"),
    _hint("an annotation has a text: `@description(\"…\")`", before=r"@\w+", expected="LPAR"),
    _hint("a parameter starts with `$`: `$NAME`", after=r"\w", expected="VAR RPAR",
          excluded="STRING"),
    _hint("a parameter has a type: `$name: String`", before=_VAR, after="[,)]", expected="COLON",
          excluded="SYMBOL"),
    _hint("every query has a name: `query name() { … }`", after=r"[({]", before=r"(?<!\w)query"),
    _hint("a query has a parameter list, if an empty one: `query name() { … }`",
          before=r"(?<!\w)query\s+\w+", after=r"\{"),
    _hint("wrap it in `query name() { … }`", after=r"(?:match|return|insert|update|delete)(?!\w)",
          expected="QUERY"),
    _hint("enums are passed as `String`", before=r"(?<!\w)enum\s*\("),
    _hint("a query holds `match { … } return { … }` or statements", after=r"\}", expected="MATCH"),
    _hint("a read starts with `match { … }`", after="return", expected="MATCH"),
    # Blocks and their order
    _hint("a read ends in `return { … }`", after=r"\}", expected="RETURN"),
    _hint("conditions stand inside the `match` block", after=r"where(?!\w)", expected="RETURN"),
    _hint("a condition is a clause of its own: drop `where`", before=r"(?<!\w)where",
          expected="SYMBOL"),
    _hint("`order` comes before `limit` and `offset`", after=r"order(?!\w)", expected="RBRACE"),
    _hint("`having` comes before `order`, `limit` and `offset`", after=r"having(?!\w)",
          expected="RBRACE"),
    _hint("`limit` and `offset` are each written once", after=r"(?:limit|offset)(?!\w)",
          expected="RBRACE"),
    _hint("a query reads or writes: give the statement a query of its own",
          after=r"(?:insert|update|delete)(?!\w)", expected="RBRACE", excluded="INSERT"),
    _hint("a query reads or writes: give the read a query of its own",
          after=r"(?:match|return)(?!\w)", expected="INSERT RBRACE"),
    _hint("write `offset`", after=r"skip(?!\w)", expected="OFFSET"),
    _hint("columns beside an aggregate are what it is grouped by: there is no `group`",
          after=r"group(?!\w)", expected="RBRACE"),
    _hint("`not` takes a block: `not { … }`", before=r"(?<!\w)not", expected="LBRACE"),
    _hint("what follows stands in braces: `{ … }`", expected="LBRACE",
          before=r"(?<!\w)(?:match|return|distinct|having|order|optional)"),
    _hint("is the `}` of the block before it missing?", after=r"[{$0-9]|distinct",
          before=r"(?<!\w)(?:return(?:\s+distinct)?|having|order|limit|offset)", expected="SYMBOL"),
    _hint("a `(` before it is not closed", after=r"[}\]]", expected="RPAR"),
    _hint("say which: `where name = $name`", expected="WHERE"),
    _hint("write `update Type set { … } where …`", expected="SET"),
    _hint("assignments stand in braces: `{ name: $name }`", before=r"(?<!\w)(?:insert\s+\w+|set)",
          expected="LBRACE"),
    _hint("a value follows `:`, as in `name: $name`", after="=", expected="COLON",
          excluded="SYMBOL"),
    _hint("a statement names a type: `delete Person where name = $name`", expected="TYPE_NAME",
          before=r"(?<!\w)(?:insert|update|delete)"),
    # Clauses and conditions
    _hint("nothing separates clauses: drop the `,`", after=",", expected="AND RBRACE"),
    _hint("nothing separates clauses: drop the `,`", after=",", expected="OPTIONAL RBRACE"),
    _hint("use `contains`, `starts_with` or `search(…)`", after=r"i?like(?!\w)"),
    _hint("write `… >= $low and … <= $high`", after=r"between(?!\w)"),
    _hint("write `not { $x.p in [1, 2] }`", after=r"not\s+(?:in|contains|starts_with)(?!\w)"),
    _hint("each comparison names both sides: `$x.p > 1 and $x.p < 5`",
          before=r"(?<!\w)(?:and|or)", after="[=<>!]"),
    _hint("`not` stands only in `match`: turn the comparison round",
          before=r"(?<!\w)(?:having\s*\{|where\s)[^{}]*(?<!\w)not(?:\s*\([^()]*)?"),
    _hint("`not { … }` is a clause of its own: leave out `and`, `or` and parentheses before it",
          before=r"(?<!\w)(?:and|or)\s+not(?:\s*\([^()]*)?"),
    _hint("`not` takes a block: `not { … }`", before=r"(?<!\w)not\s*\([^()]*"),
    _hint("a traversal is a clause of its own: leave out `and`, `or` and parentheses around it",
          before=rf"(?:(?<!\w)(?:and|or)|\()\s*{_VAR}", after=r"[a-z_<$]", expected="SYMBOL"),
    _hint("a comparison has two sides: write `a < b and b < c`", expected="AND", excluded="SYMBOL",
          after=r"[=<>!]|(?:contains|starts_with|in|is)(?!\w)"),
    _hint("`in` takes a list or a list parameter: `in [1, 2]`", before=r"(?<!\w)in",
          expected="LSQB"),
    _hint("`is` stands only in `is null` and `is not null`; equality is `=`",
          before=r"(?<!\w)is(?:\s+not)?", expected="NULL"),
    _hint("a variable alone says nothing: bind it with `$x: Type`, or compare it", before=_VAR,
          expected="COLON SYMBOL"),
    _hint("hop bounds take both ends: `{2,2}`", before=r"\{\s*[0-9]+", after=r"\}",
          expected="COMMA"),
    _hint("hop bounds start with the least number: `{1,3}`", before=r"\{", expected="DIGITS"),
    # Values
    _hint("there is no parenthesis after `distinct`: `count(distinct $x)`",
          before=r"\(\s*distinct", after=r"\("),
    _hint("a list holds literals: pass other values as a list parameter", after=r"\$",
          before=r"[\[,]", expected="STRING LSQB", excluded="VAR"),
    _hint("a field takes a literal, a parameter or `now()`; compare properties in a condition",
          before=_VAR, after=r"\.", expected="COMMA RBRACE", excluded="AS"),
    _hint("a name for the column follows `as`, without `$` or quotes", before=r"(?<!\w)as"),
    _hint("a list takes no comma at its end", before=",", after=r"\]"),
    _hint("the last parameter takes no comma", before=",", after=r"\)", expected="VAR",
          excluded="STRING"),
)  # fmt: skip
