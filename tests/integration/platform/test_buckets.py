"""Drops and graph in a bucket: from a file that is dropped to rows that can be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
import pytest

from omnigraph_assets.resources.landing import LOADED, QUARANTINE, open_drops
from omnigraph_assets.resources.landing_s3 import S3Drops
from tests.support.platform import PEOPLE, carry_out, look, make_platform, told

if TYPE_CHECKING:
    from pathlib import Path

    import dagster as dg

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def test_drops_in_a_bucket(s3_root: str) -> None:
    store = open_drops(s3_root)
    store.write(f"{s3_root}/team%2Fa/rows.jsonl", "{}\n")
    store.write(f"{s3_root}/team%2Fa/rows.jsonl.part", "{")
    store.write(f"{s3_root}/_loaded/main/old.jsonl", "{}\n")
    (file,) = store.list()
    assert (file.branch, file.name, file.size) == ("team/a", "rows.jsonl", 3)
    assert store.look(file) == file
    moved = store.archive(file, QUARANTINE)
    assert moved == f"{s3_root}/_quarantine/team%2Fa/rows.jsonl"
    assert store.list() == []
    assert store.look(file) is None
    store.write(file.address, "[]\n")
    (again,) = store.list()
    assert again.id != file.id  # though it may be of the same second
    assert store.archive(again, QUARANTINE) != moved  # nothing is replaced


def test_an_object_that_is_written_anew_while_it_is_archived_is_not_lost(
    s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_drops(f"{s3_root}/drops")
    assert isinstance(store, S3Drops)
    address = f"{s3_root}/drops/main/rows.jsonl"
    usual = store._client.copy

    def copy_slowly(*given: object, **more: object) -> None:
        usual(*given, **more)
        store.write(address, "[]\n")

    def copy_late(*given: object, **more: object) -> None:
        store.write(address, "[2]\n")
        usual(*given, **more)

    store.write(address, "{}\n")
    (file,) = store.list()
    monkeypatch.setattr(store._client, "copy", copy_slowly)
    moved = store.archive(file, LOADED)
    assert moved is not None
    assert _text(moved) == "{}\n"
    assert _text(address) == "[]\n"
    (file,) = store.list()
    monkeypatch.setattr(store._client, "copy", copy_late)
    store.archive(file, LOADED)
    assert _text(address) == "[2]\n"
    assert store.archive(file, LOADED) is None


def test_a_file_of_a_bucket_is_loaded_and_put_away(
    s3_root: str, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    platform = make_platform(tmp_path, instance, root=s3_root)
    store = open_drops(f"{s3_root}/drops")
    store.write(f"{s3_root}/drops/main/people.jsonl", "".join(f"{json.dumps(r)}\n" for r in PEOPLE))
    store.write(f"{s3_root}/drops/main/bad.jsonl", '{"type": "Person", "data": {"na')
    (request,) = look(platform).run_requests
    assert not carry_out(platform, request).success  # together with a bad one
    (request,) = look(platform).run_requests
    loaded = carry_out(platform, request)
    assert list(told(loaded)) == ["people/nodes/Person", "people/edges/Knows", "people/manifest"]
    assert platform.rows("node:Person") == 2
    assert look(platform).run_requests == []
    kept = sorted(key.removeprefix(s3_root) for key in _keys(s3_root))
    assert [key for key in kept if key.startswith("/drops/")] == [
        "/drops/_loaded/main/people.jsonl",
        "/drops/_quarantine/main/bad.jsonl",
        "/drops/_quarantine/main/bad.jsonl.reason.json",
    ]


def _text(address: str) -> str:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    got = boto3.session.Session().client("s3").get_object(Bucket=bucket, Key=key)
    return str(got["Body"].read().decode())


def _keys(root: str) -> list[str]:
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    pages = boto3.session.Session().client("s3").get_paginator("list_objects_v2")
    found = pages.paginate(Bucket=bucket, Prefix=prefix)
    return [f"s3://{bucket}/{item['Key']}" for page in found for item in page["Contents"]]
