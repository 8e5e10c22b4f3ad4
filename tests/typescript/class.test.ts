// The class client from end to end: what an application sees of a server that is really there.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { AuthenticationError, BadRequestError, ConflictError, NotFoundError } from "./errors.ts";
import { ACTOR, BASE_URL, OTHER_ACTOR, OTHER_TOKEN, QUERIES, TOKEN, beginRun } from "./live.ts";
import { Omnigraph } from "./omnigraph.ts";

const graph = new Omnigraph({ baseUrl: BASE_URL, token: TOKEN });
const other = new Omnigraph({ baseUrl: BASE_URL, token: OTHER_TOKEN });
const person = { querySource: QUERIES, queryName: "person" };

test("health has the version this client was made for", async () => {
  const { status, version } = await new Omnigraph({ baseUrl: BASE_URL }).health();
  assert.equal(status, "ok");
  assert.deepEqual(version.split(".").slice(0, 2), ["0", "3"]);
});

test("a snapshot knows how many people there are", async () => {
  const { tables, manifestVersion } = await graph.snapshot();
  assert.ok(Number.isInteger(manifestVersion));
  assert.equal(tables.find((table) => table.tableKey === "node:Person")?.rowCount, 4);
});

test("a branch is made, listed and deleted", async () => {
  const made = await graph.branches.create({ name: "class/first", from: "main" });
  assert.deepEqual([made.name, made.from, made.actorId], ["class/first", "main", ACTOR]);
  assert.ok((await graph.branches.list()).branches.includes("class/first"));
  assert.equal((await graph.branches.delete("class/first")).name, "class/first");
  assert.ok(!(await graph.branches.list()).branches.includes("class/first"));
});

test("merging a branch without changes changes nothing", async () => {
  await graph.branches.create({ name: "class-still" });
  const merge = { source: "class-still", target: "main" };
  const { outcome } = await graph.branches.merge(merge);
  assert.ok(["fast_forward", "already_up_to_date"].includes(outcome), outcome);
  assert.equal((await graph.branches.merge(merge)).outcome, "already_up_to_date");
});

test("a read gives one row, its names untouched", async () => {
  const answer = await graph.read({ ...person, params: { name: "Alice" } });
  assert.equal(answer.rowCount, 1);
  assert.equal(answer.queryName, "person");
  const row = answer.rows[0];
  assert.ok(["$p.name", "p.name", "name"].some((key) => row[key] === "Alice"));
});

test("names that a query gives and takes pass as they are", async () => {
  const querySource = `query named($first_name: String) {
    match { $p: Person { name: $first_name } } return { $p.name as full_name }
  }`;
  const answer = await graph.read({ querySource, params: { first_name: "Bob" } });
  assert.deepEqual(answer.columns, ["full_name"]);
  assert.deepEqual(answer.rows, [{ full_name: "Bob" }]);
});

test("a change is its actor's", async () => {
  await graph.branches.create({ name: "class-changed" });
  const params = { name: "Hal", company: "Globex" };
  const written = { ...person, queryName: "hire", params, branch: "class-changed" };
  const answer = await other.change(written);
  assert.deepEqual([answer.affectedNodes, answer.affectedEdges], [1, 1]);
  assert.equal(answer.actorId, OTHER_ACTOR);
  const { commits } = await graph.commits.list({ branch: "class-changed" });
  assert.deepEqual(await graph.commits.get(commits[0].graphCommitId), commits[0]);
});

test("an ingest tells its tables", async () => {
  const data = JSON.stringify({ type: "Company", data: { name: "Initech" } });
  const answer = await graph.ingest({ data, branch: "class-taken-in", mode: "append" });
  assert.equal(answer.branchCreated, true);
  assert.deepEqual(answer.tables, [{ tableKey: "node:Company", rowsLoaded: 1 }]);
});

test("the schema is read, and applied when there is something new", async () => {
  const { schemaSource } = await graph.schema.get();
  const answer = await graph.schema.apply({ schemaSource });
  assert.deepEqual([answer.supported, answer.applied, answer.stepCount], [true, false, 0]);
});

test("runs are published and given up", async () => {
  await graph.branches.create({ name: "class-runs" });
  const [kept, dropped] = [await beginRun("class-runs"), await beginRun("class-runs")];
  assert.equal((await graph.runs.get(kept.run_id)).status, "running");
  assert.equal((await graph.runs.publish(kept.run_id)).status, "published");
  assert.equal((await graph.runs.abort(dropped.run_id)).status, "aborted");
  const { runs } = await graph.runs.list();
  const mine = runs.filter((run) => run.targetBranch === "class-runs");
  assert.deepEqual(mine.map((run) => run.runId), [kept.run_id, dropped.run_id]);
});

test("an export is a stream of objects", async () => {
  const objects = [];
  for await (const object of graph.export()) {
    objects.push(object);
  }
  assert.ok(objects.length >= 4);
  assert.equal(objects.filter((object) => object.type === "Person").length, 4);
});

test("an export that is left early leaves the server free for others", async () => {
  // More than the sockets between the two can hold, compressed or not: the server is still sending.
  const lines = Array.from({ length: 3000 }, (_, n) => {
    const nickname = randomBytes(3072).toString("base64");
    return JSON.stringify({ type: "Person", data: { name: `p${n}`, nickname } });
  });
  await graph.ingest({ data: lines.join("\n"), branch: "class-long" });
  for (let round = 0; round < 3; round += 1) {
    for await (const object of graph.export({ branch: "class-long", typeNames: ["Person"] })) {
      assert.equal(object.type, "Person");
      break;
    }
  }
  let count = 0;
  for await (const _ of graph.export({ branch: "class-long", typeNames: ["Person"] })) {
    count += 1;
  }
  assert.equal(count, 3004);
  assert.equal((await graph.read({ ...person, params: { name: "Bob" } })).rowCount, 1);
});

test("errors are classes, with the id of their request", async () => {
  const bogus = graph.commits.get("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  await assert.rejects(bogus, (error) => {
    assert.ok(error instanceof NotFoundError);
    assert.deepEqual([error.status, error.code], [404, "not_found"]);
    assert.match(error.requestId ?? "", /^[\x21-\x7e]{1,128}$/);
    return true;
  });
  const liar = new Omnigraph({ baseUrl: BASE_URL, token: "no such" });
  await assert.rejects(liar.snapshot(), AuthenticationError);
  await assert.rejects(graph.read({ querySource: "this is no query" }), BadRequestError);
  await assert.rejects(graph.branches.create({ name: "main" }), BadRequestError);
  await assert.rejects(graph.export({ branch: "nowhere" }).next(), NotFoundError);
});

test("a body that is too long is a bad request", async () => {
  const long = graph.read({ querySource: "x".repeat(2 * 1024 * 1024) });
  await assert.rejects(long, (error) => error instanceof BadRequestError && error.status === 413);
});

test("conflicts come with their rows", async () => {
  await graph.branches.create({ name: "class-torn-target" });
  await graph.branches.create({ name: "class-torn", from: "class-torn-target" });
  for (const [branch, age] of [["class-torn-target", 60], ["class-torn", 70]]) {
    const params = { name: "Alice", age };
    await graph.change({ ...person, queryName: "set_age", params, branch: String(branch) });
  }
  const merge = graph.branches.merge({ source: "class-torn", target: "class-torn-target" });
  await assert.rejects(merge, (error) => {
    assert.ok(error instanceof ConflictError);
    const { tableKey, rowId, kind } = error.mergeConflicts[0];
    assert.deepEqual([tableKey, rowId, kind], ["node:Person", "Alice", "divergent_update"]);
    return true;
  });
});

test("the same client works below the address of a graph", async () => {
  const named = new Omnigraph({ baseUrl: `${BASE_URL}/graphs/default`, token: TOKEN });
  assert.equal((await named.read({ ...person, params: { name: "Bob" } })).rowCount, 1);
  assert.deepEqual(await named.branches.list(), await graph.branches.list());
  const nowhere = new Omnigraph({ baseUrl: `${BASE_URL}/graphs/nowhere`, token: TOKEN });
  await assert.rejects(nowhere.branches.list(), NotFoundError);
});
