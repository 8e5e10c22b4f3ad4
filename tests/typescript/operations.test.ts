// Every function of the generated client but those for runs, against a server that is really there.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ACTOR,
  BASE_URL,
  OTHER_ACTOR,
  OTHER_TOKEN,
  QUERIES,
  answered,
  client,
  newBranch,
  recording,
  refused,
  setAge,
} from "./live.ts";
import * as api from "./operations.ts";
import { createOmnigraphClient } from "./transport.ts";

const anonymous = createOmnigraphClient({ baseUrl: BASE_URL, fetch: recording });
const other = createOmnigraphClient({ baseUrl: BASE_URL, token: OTHER_TOKEN, fetch: recording });

test("health needs no token and tells a version that clients of 0.3 accept", async () => {
  const answer = answered(await api.health({ client: anonymous }));
  assert.equal(answer.status, "ok");
  assert.match(answer.version, /^0\.3\.\d+/);
});

test("a snapshot counts the rows of every table, in the order of their keys", async () => {
  const branch = await newBranch("counted");
  const answer = answered(await api.getSnapshot({ client, query: { branch } }));
  assert.equal(answer.branch, branch);
  assert.deepEqual(
    answer.tables.map((table) => [table.table_key, table.row_count]),
    [
      ["edge:Knows", 3],
      ["edge:WorksAt", 2],
      ["node:Company", 2],
      ["node:Person", 4],
    ],
  );
});

test("a branch that is null is not sent, and means main", async () => {
  const answer = answered(await api.getSnapshot({ client, query: { branch: null } }));
  assert.equal(answer.branch, "main");
  assert.ok(answer.tables.every((table) => table.table_branch === null));
});

test("a read gives rows under the names of its columns", async () => {
  const body = { query_source: QUERIES, query_name: "person", params: { name: "Alice" } };
  const answer = answered(await api.read({ client, body }));
  assert.equal(answer.query_name, "person");
  assert.equal(answer.row_count, 1);
  assert.deepEqual(answer.target, { branch: "main", snapshot: null });
  assert.deepEqual(Object.keys(answer.rows[0]), answer.columns);
  const name = answer.columns?.find((column) => ["$p.name", "p.name", "name"].includes(column));
  assert.equal(answer.rows[0][String(name)], "Alice");
});

test("members that are null count as left out", async () => {
  const query_source = "query all() { match { $p: Person } return { $p.name } }";
  const body = { query_source, query_name: null, params: null, branch: null, snapshot: null };
  const answer = answered(await api.read({ client, body }));
  assert.deepEqual(answer.target, { branch: "main", snapshot: null });
});

test("a read at a commit sees what was there then", async () => {
  const branch = await newBranch("past");
  const { commits } = answered(await api.listCommits({ client, query: { branch } }));
  const snapshot = commits[0].graph_commit_id;
  await setAge(branch, "Bob", 26);
  const read = { query_source: QUERIES, query_name: "person", params: { name: "Bob" } };
  const then = answered(await api.read({ client, body: { ...read, snapshot } }));
  const now = answered(await api.read({ client, body: { ...read, branch } }));
  assert.deepEqual(then.target, { branch: null, snapshot });
  assert.equal(then.rows[0]["p.age"], 25);
  assert.equal(now.rows[0]["p.age"], 26);
  refused(await api.read({ client, body: { ...read, branch, snapshot } }), 400, "bad_request");
});

test("an export is lines of JSON, read as a Blob", async () => {
  const branch = await newBranch("exported");
  const result = await api.export_({ client, body: { branch } });
  const type = result.response.headers.get("Content-Type");
  assert.equal(type, "application/x-ndjson; charset=utf-8");
  const objects = await exported(answered(result));
  assert.equal(objects.length, 11);
  assert.ok("edge" in objects[0], "edges come first: their keys sort first");
  assert.deepEqual(
    objects.filter((o) => o.type === "Company").map((o) => o.data.name),
    ["Acme", "Globex"],
  );
});

test("an export can be narrowed by types and by tables, which add up", async () => {
  const branch = await newBranch("narrowed");
  const one = await api.export_({ client, body: { branch, type_names: ["Company"] } });
  assert.equal((await exported(answered(one))).length, 2);
  const body = { branch, type_names: ["Company"], table_keys: ["edge:WorksAt"] };
  assert.equal((await exported(answered(await api.export_({ client, body })))).length, 4);
});

test("an export that cannot be is refused before it begins", async () => {
  const unknown = { type_names: ["Ghost"] };
  refused(await api.export_({ client, body: unknown }), 400, "bad_request");
  refused(await api.export_({ client, body: { branch: "nowhere" } }), 404, "not_found");
});

test("a change counts what it did and tells who did it", async () => {
  const branch = await newBranch("changed");
  const params = { name: "Erin", company: "Acme" };
  const body = { query_source: QUERIES, query_name: "hire", params, branch };
  const answer = answered(await api.change({ client: other, body }));
  assert.equal(answer.branch, branch);
  assert.equal(answer.query_name, "hire");
  assert.deepEqual([answer.affected_nodes, answer.affected_edges], [1, 1]);
  assert.equal(answer.actor_id, OTHER_ACTOR);
  const { commits } = answered(await api.listCommits({ client, query: { branch } }));
  assert.equal(commits[0].actor_id, OTHER_ACTOR);
});

test("the schema is given back as it was written", async () => {
  const { schema_source } = answered(await api.getSchema({ client }));
  assert.match(schema_source, /^node Person \{\n {4}name: String @key\n/);
});

test("a schema is applied once, and then there is nothing left to do", async () => {
  const { schema_source } = answered(await api.getSchema({ client }));
  const wider = schema_source.replace("age: I32?", "age: I32?\n    city: String?");
  const first = answered(await api.applySchema({ client, body: { schema_source: wider } }));
  assert.deepEqual([first.supported, first.applied, first.step_count], [true, true, 1]);
  const step = {
    kind: "add_property",
    type_kind: "node",
    type_name: "Person",
    property_name: "city",
    property_type: { scalar: "String", nullable: true, list: false, enum_values: null },
  };
  assert.deepEqual({ ...first.steps[0], ...step }, first.steps[0]);
  const again = answered(await api.applySchema({ client, body: { schema_source: wider } }));
  assert.deepEqual([again.supported, again.applied, again.step_count], [true, false, 0]);
  assert.deepEqual(again.steps, []);
  assert.equal(again.manifest_version, first.manifest_version);
});

test("a schema that cannot be applied is refused", async () => {
  const { schema_source } = answered(await api.getSchema({ client }));
  const body = { schema_source: schema_source.replace("age: I32?", "age: Date?") };
  const error = refused(await api.applySchema({ client, body }), 400, "bad_request");
  assert.match(error.error, /changing property type/);
});

test("an ingest makes its branch and counts by table", async () => {
  const data =
    '{"edge": "Knows", "from": "Alice", "to": "Frank"}\n' +
    '{"type": "Person", "data": {"name": "Frank", "age": 51}}\n';
  const body = { data, branch: "taken-in", from: null, mode: null };
  const answer = answered(await api.ingest({ client, body }));
  assert.deepEqual([answer.branch, answer.base_branch], ["taken-in", "main"]);
  assert.equal(answer.branch_created, true);
  assert.equal(answer.mode, "merge");
  assert.equal(answer.actor_id, ACTOR);
  assert.deepEqual(
    answer.tables.map((table) => [table.table_key, table.rows_loaded]),
    [
      ["edge:Knows", 1],
      ["node:Person", 1],
    ],
  );
  const again = answered(await api.ingest({ client, body: { ...body, mode: "merge" } }));
  assert.equal(again.branch_created, false);
});

test("an ingest may be larger than other requests", async () => {
  const long = JSON.stringify({ type: "Company", data: { name: "x".repeat(2 * 1024 * 1024) } });
  const answer = answered(await api.ingest({ client, body: { data: long, branch: "long" } }));
  assert.equal(answer.tables[0].rows_loaded, 1);
});

test("a branch name with a slash goes through the path and back", async () => {
  const name = "review/2026";
  const made = answered(await api.createBranch({ client, body: { name, from: "main" } }));
  assert.deepEqual([made.name, made.from, made.actor_id], [name, "main", ACTOR]);
  const listed = answered(await api.listBranches({ client })).branches;
  assert.ok(listed.includes(name) && listed.includes("main"));
  assert.deepEqual(listed, [...listed].sort());
  const body = { query_source: QUERIES, query_name: "people", branch: name };
  const rows = answered(await api.read({ client, body }));
  assert.deepEqual(rows.target, { branch: name, snapshot: null });
  assert.equal(rows.row_count, 4);
  const gone = answered(await api.deleteBranch({ client, path: { branch: name } }));
  assert.deepEqual([gone.name, gone.actor_id], [name, ACTOR]);
  assert.ok(!answered(await api.listBranches({ client })).branches.includes(name));
  refused(await api.deleteBranch({ client, path: { branch: name } }), 404, "not_found");
});

test("any name goes through paths and queries as it is", async () => {
  for (const name of ["review/2026 ü?", "100%25", "a+b&c=d", "#1;v=2", "Ω/…/終"]) {
    await newBranch(name);
    const snapshot = answered(await api.getSnapshot({ client, query: { branch: name } }));
    assert.equal(snapshot.branch, name);
    const gone = answered(await api.deleteBranch({ client, path: { branch: name } }));
    assert.equal(gone.name, name);
    const query = { branch: name };
    refused(await api.listCommits({ client, query }), 404, "not_found");
  }
});

test("a branch may have the name of a route", async () => {
  await newBranch("merge");
  answered(await api.deleteBranch({ client, path: { branch: "merge" } }));
});

test("names that cannot be made or unmade are refused", async () => {
  await newBranch("taken");
  refused(await api.createBranch({ client, body: { name: "taken" } }), 409, "conflict");
  refused(await api.createBranch({ client, body: { name: "main" } }), 400, "bad_request");
  refused(await api.createBranch({ client, body: { name: "__run__x" } }), 400, "bad_request");
  const orphan = { name: "orphan", from: "nowhere" };
  refused(await api.createBranch({ client, body: orphan }), 404, "not_found");
  refused(await api.deleteBranch({ client, path: { branch: "main" } }), 400, "bad_request");
});

test("merging a branch without changes changes nothing", async () => {
  const target = await newBranch("still-target");
  answered(await api.createBranch({ client, body: { name: "still", from: target } }));
  const first = answered(await api.mergeBranches({ client, body: { source: "still", target } }));
  assert.ok(["fast_forward", "already_up_to_date"].includes(first.outcome), first.outcome);
  assert.deepEqual([first.source, first.target, first.actor_id], ["still", target, ACTOR]);
  const again = answered(await api.mergeBranches({ client, body: { source: "still", target } }));
  assert.equal(again.outcome, "already_up_to_date");
});

test("a merge takes the changes over and has two parents when both sides moved", async () => {
  const target = await newBranch("both-target");
  answered(await api.createBranch({ client, body: { name: "both", from: target } }));
  await setAge(target, "Alice", 31);
  await setAge("both", "Bob", 26);
  const merged = answered(await api.mergeBranches({ client, body: { source: "both", target } }));
  assert.equal(merged.outcome, "merged");
  const { commits } = answered(await api.listCommits({ client, query: { branch: target } }));
  assert.ok(commits[0].parent_commit_id && commits[0].merged_parent_commit_id);
  assert.equal(commits[0].manifest_branch, target);
});

test("sides that changed one row in two ways are told apart row by row", async () => {
  const target = await newBranch("torn-target");
  answered(await api.createBranch({ client, body: { name: "torn", from: target } }));
  await setAge(target, "Alice", 40);
  await setAge("torn", "Alice", 50);
  const result = await api.mergeBranches({ client, body: { source: "torn", target } });
  const error = refused(result, 409, "conflict");
  assert.match(error.error, /merge conflict/);
  assert.deepEqual(
    error.merge_conflicts?.map((c) => [c.table_key, c.row_id, c.kind, typeof c.message]),
    [["node:Person", "Alice", "divergent_update", "string"]],
  );
});

test("commits are listed newest first and found by their id", async () => {
  const branch = await newBranch("dated");
  await setAge(branch, "Alice", 32);
  await setAge(branch, "Alice", 33);
  const { commits } = answered(await api.listCommits({ client, query: { branch } }));
  assert.equal(commits[0].parent_commit_id, commits[1].graph_commit_id);
  assert.ok(commits[0].manifest_version > commits[1].manifest_version);
  assert.ok(commits[0].created_at > 1_600_000_000_000_000, "microseconds");
  const found = await api.getCommit({ client, path: { commit_id: commits[0].graph_commit_id } });
  assert.deepEqual(answered(found), commits[0]);
});

test("commits of main have no branch of their own", async () => {
  const { commits } = answered(await api.listCommits({ client, query: { branch: undefined } }));
  assert.ok(commits.every((commit) => commit.manifest_branch === null));
  assert.equal(commits[commits.length - 1].parent_commit_id, null);
});

async function exported(blob: Blob): Promise<Array<any>> {
  assert.ok(blob instanceof Blob);
  const lines = (await blob.text()).trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line));
}
