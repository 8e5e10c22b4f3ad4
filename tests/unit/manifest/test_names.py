"""Names of branches and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.names import (
    RUN_PREFIX,
    SCHEMA_APPLY_LOCK,
    check_branch_name,
    check_tag_name,
    is_internal,
)
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH = each("check", [check_branch_name, check_tag_name])

RULES = [
    ("", "must not be empty"),
    (" \t", "must not be empty"),
    ("main", "`main` is reserved"),
    (" main ", "`main` is reserved"),
    ("__run__01J0", "reserved for internal use"),
    ("__run__", "reserved for internal use"),
    ("/__run__x", "reserved for internal use"),
    ("//__run__x", "reserved for internal use"),
    (" __run__x", "reserved for internal use"),
    ("__schema_apply_lock__", "reserved for internal use"),
    ("/__schema_apply_lock__", "reserved for internal use"),
    ("a\nb", "control characters"),
    ("a\x7fb", "control characters"),
    ("a\u2028b", "control characters"),
    ("/a", "starts with a slash"),
    ("/", "starts with a slash"),
    ("a/", "ends with a slash"),
    ("a//b", "two slashes in a row"),
    (".", r"a part that is `\.` or `\.\.`"),
    ("a/..", r"a part that is `\.` or `\.\.`"),
    ("a/./b", r"a part that is `\.` or `\.\.`"),
    ("x" * 241, "too long"),
    ("ü" * 41, "too long"),
    ("a\ud800", "not Unicode text"),
]


@BOTH
@each(("name", "problem"), RULES)
def test_each_rule_is_named(check: Callable[[str], str], name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check(name)


@BOTH
@each(
    "name",
    [
        "nightly",
        "a/b",
        "main/x",
        "Main",
        "..a",
        ".hidden",
        "a..b",
        "v1.0",
        "two words",
        "überprüfung",
        "100%",
        "_run_",
        "x__run__",
        "__schema_apply_lock__2",
        "x" * 240,
        "ü" * 40,
    ],
)
def test_allowed(check: Callable[[str], str], name: str) -> None:
    assert check(f"  {name}\n") == name


@pytest.mark.parametrize("name", [f"{RUN_PREFIX}01J0", SCHEMA_APPLY_LOCK])
def test_internal_names_when_allowed(name: str) -> None:
    assert check_branch_name(name, is_internal_allowed=True) == name


@pytest.mark.parametrize("name", ["main", "/__run__x", "__run__a//b"])
def test_internal_names_keep_the_other_rules(name: str) -> None:
    with pytest.raises(ConfigError):
        check_branch_name(name, is_internal_allowed=True)


def test_messages_say_what_is_named() -> None:
    with pytest.raises(ConfigError, match="the name of a tag must not be empty"):
        check_tag_name("")
    with pytest.raises(ConfigError, match="the branch name `a/` ends"):
        check_branch_name("a/")


def test_is_internal() -> None:
    assert is_internal(" /__run__x")
    assert is_internal(SCHEMA_APPLY_LOCK)
    assert not is_internal("run")
    assert not is_internal("main")
