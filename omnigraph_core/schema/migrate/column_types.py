"""How a property's type may change, and what the rows need for it.

Values and nullability change independently: `I32` to `I64?` is a widening and a relaxation. A
change of values that no step describes is unsupported, whatever the rows hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.document.shape import stored_default
from omnigraph_core.schema.migrate.codes import MigrationCode
from omnigraph_core.schema.migrate.steps import (
    DataWork,
    EnumToString,
    ExtendEnum,
    NarrowEnum,
    RelaxNullability,
    StringToEnum,
    Tier,
    TightenNullability,
    TypeKind,
    UnsupportedChange,
    WidenProperty,
)
from omnigraph_core.types import STRING, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.schema.migrate.steps import Step
    from omnigraph_core.types import PropType

WIDENINGS: Final = frozenset(
    {
        (Scalar.I32, Scalar.I64),
        (Scalar.U32, Scalar.U64),
        (Scalar.U32, Scalar.I64),
        (Scalar.F32, Scalar.F64),
    }
)


def plan_type_change(
    kind: TypeKind,
    type_name: str,
    before: PropType,
    after: PropertyDef,
    *,
    is_key: bool,
) -> Iterator[Step]:
    """The steps from one type of a property to another, or the one that refuses it."""
    place = (kind, type_name, str(after.name))
    steps = _value_steps(place, before, after.type, is_key=is_key)
    if steps is None:
        yield _refuse(place, before, after.type, is_key=is_key)
        return
    yield from steps
    if after.type.is_nullable and not before.is_nullable:
        yield RelaxNullability(*place)
    elif before.is_nullable and not after.type.is_nullable:
        yield _tighten(place, after)


def _value_steps(
    place: tuple[TypeKind, str, str], before: PropType, after: PropType, *, is_key: bool
) -> tuple[Step, ...] | None:
    old, new = before.nullable(is_nullable=False), after.nullable(is_nullable=False)
    if old == new:
        return ()
    if old.enum_values is not None and new.enum_values is not None:
        return _enum_steps(place, set(old.enum_values), set(new.enum_values))
    if old.is_enum and new == STRING:
        return (EnumToString(*place),)
    if old == STRING and new.enum_values is not None:
        return (
            StringToEnum(*place, new.enum_values, tier=Tier.VALIDATED, data_work=DataWork.SCAN),
        )
    if _is_widening(old, new, is_key=is_key):
        wider = new.nullable(is_nullable=before.is_nullable)
        return (WidenProperty(*place, before, wider, data_work=DataWork.REWRITE),)
    return None


def _enum_steps(place: tuple[TypeKind, str, str], old: set[str], new: set[str]) -> tuple[Step, ...]:
    steps: list[Step] = []
    if added := tuple(sorted(new - old)):
        steps.append(ExtendEnum(*place, added))
    if removed := tuple(sorted(old - new)):
        steps.append(
            NarrowEnum(*place, removed, tier=Tier.VALIDATED, data_work=DataWork.SCAN),
        )
    return tuple(steps)


def _is_widening(old: PropType, new: PropType, *, is_key: bool) -> bool:
    # An id is the text of its key, and the shortest text of a number differs between F32 and F64.
    if is_key and old.scalar.is_float:
        return False
    return (old.scalar, new.scalar) in WIDENINGS and old.is_list == new.is_list


def _refuse(
    place: tuple[TypeKind, str, str],
    before: PropType,
    after: PropType,
    *,
    is_key: bool,
) -> UnsupportedChange:
    kind, type_name, name = place
    key = " of a key column" if is_key else ""
    return UnsupportedChange(
        f"{kind}:{type_name}.{name}",
        f"changing property type{key} from `{before}` to `{after}` is not supported",
        MigrationCode.TYPE_CHANGE,
        hint="add a property of the new type, copy the values, then drop this one",
    )


def _tighten(place: tuple[TypeKind, str, str], after: PropertyDef) -> TightenNullability:
    work = DataWork.BACKFILL if after.has_default else DataWork.SCAN
    return TightenNullability(*place, stored_default(after), tier=Tier.VALIDATED, data_work=work)
