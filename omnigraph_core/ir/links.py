"""The order in which to walk the traversals of a match, and from which end.

A traversal links two variables and reads the same from both, so it can be entered from whichever
end is bound: the direction turns round and the rows stay the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import Expand
from omnigraph_core.query.checked import Direction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from omnigraph_core.query.checked import CheckedTraversal
    from omnigraph_core.query.typed import TypedCondition

_TURNED: Final = {
    Direction.OUT: Direction.IN,
    Direction.IN: Direction.OUT,
    Direction.BOTH: Direction.BOTH,
}


def next_link(links: Iterable[CheckedTraversal], bound: Collection[str]) -> CheckedTraversal | None:
    """The link to walk next: one that only drops rows if there is one, else the first with an end.

    None when no link touches a bound variable.
    """
    touching = [link for link in links if link.left in bound or link.right in bound]
    for link in touching:
        if link.edge_binding is None and link.left in bound and link.right in bound:
            return link
    return touching[0] if touching else None


def walk_link(
    link: CheckedTraversal,
    bound: Collection[str],
    conditions: Mapping[str, tuple[TypedCondition, ...]],
) -> Expand:
    """The expand that walks a link from a bound end, the left one if both are.

    `conditions` are those the far variable must meet when this expand introduces it.
    """
    is_forward = link.left in bound
    near, far = (link.left, link.right) if is_forward else (link.right, link.left)
    is_closing = far in bound
    return Expand(
        src_var=near,
        dst_var=far,
        edge_type=link.edge_type,
        direction=link.direction if is_forward else _TURNED[link.direction],
        dst_type=link.right_type if is_forward else link.left_type,
        min_hops=link.min_hops,
        max_hops=link.max_hops,
        dst_filters=() if is_closing else conditions.get(far, ()),
        edge_binding=link.edge_binding,
        is_closing=is_closing,
    )
