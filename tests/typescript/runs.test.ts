// Runs: work on a branch of its own that is published or given up.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ACTOR,
  QUERIES,
  answered,
  beginRun,
  client,
  newBranch,
  post,
  refused,
  setAge,
} from "./live.ts";
import * as api from "./operations.ts";

test("a run is out of sight until it is published, once however often it is asked", async () => {
  const target = await newBranch("run-target");
  const run = await beginRun(target);
  assert.equal(run.status, "running");
  assert.deepEqual([run.published_snapshot_id, run.operation_hash], [null, null]);
  assert.equal(run.actor_id, ACTOR);
  await setAge(run.run_branch, "Alice", 41);
  assert.equal(await ageOf("Alice", target), 30);
  assert.ok(!answered(await api.listBranches({ client })).branches.includes(run.run_branch));

  const path = { run_id: run.run_id };
  const published = answered(await api.publishRun({ client, path }));
  assert.equal(published.status, "published");
  assert.equal(await ageOf("Alice", target), 41);
  assert.deepEqual(answered(await api.publishRun({ client, path })), published);
  assert.deepEqual(answered(await api.getRun({ client, path })), published);
  refused(await api.abortRun({ client, path }), 409, "conflict");
  const { commits } = answered(await api.listCommits({ client, query: { branch: target } }));
  assert.equal(published.published_snapshot_id, commits[0].graph_commit_id);
});

test("a publish with an empty object for a body is the same", async () => {
  const run = await beginRun(await newBranch("empty-body"));
  await setAge(run.run_branch, "Bob", 27);
  const response = await post(`/runs/${run.run_id}/publish`, "{}");
  assert.equal(response.status, 200);
  assert.equal((await response.json()).status, "published");
});

test("an aborted run leaves nothing and cannot be published", async () => {
  const target = await newBranch("given-up");
  for (const body of [undefined, "{}"]) {
    const run = await beginRun(target);
    await setAge(run.run_branch, "Alice", 42);
    const path = { run_id: run.run_id };
    if (body === undefined) {
      assert.equal(answered(await api.abortRun({ client, path })).status, "aborted");
    } else {
      assert.equal((await post(`/runs/${run.run_id}/abort`, body)).status, 200);
    }
    assert.equal(await ageOf("Alice", target), 30);
    refused(await api.publishRun({ client, path }), 409, "conflict");
    refused(await api.abortRun({ client, path }), 409, "conflict");
  }
});

test("of two runs that edit one row the second conflicts, and goes on", async () => {
  const target = await newBranch("two-runs");
  const first = await beginRun(target);
  const second = await beginRun(target);
  await setAge(first.run_branch, "Alice", 43);
  await setAge(second.run_branch, "Alice", 44);
  answered(await api.publishRun({ client, path: { run_id: first.run_id } }));

  const path = { run_id: second.run_id };
  const error = refused(await api.publishRun({ client, path }), 409, "conflict");
  assert.match(error.error, /^merge conflicts: node:Person:Alice \(divergent_update\)$/);
  const conflict = error.merge_conflicts?.[0];
  assert.equal(error.merge_conflicts?.length, 1);
  assert.equal(conflict?.table_key, "node:Person");
  assert.equal(conflict?.row_id, "Alice");
  assert.equal(conflict?.kind, "divergent_update");
  assert.ok(conflict?.message);
  assert.equal(answered(await api.getRun({ client, path })).status, "running");
  assert.equal(await ageOf("Alice", target), 43);
  answered(await api.abortRun({ client, path }));
});

test("runs are listed oldest first", async () => {
  const target = await newBranch("listed");
  const begun = [await beginRun(target), await beginRun(target)].map((run) => run.run_id);
  const { runs } = answered(await api.listRuns({ client }));
  const ids = runs.filter((run) => run.target_branch === target).map((run) => run.run_id);
  assert.deepEqual(ids, begun);
  const times = runs.map((run) => run.created_at);
  assert.deepEqual(times, times.toSorted((a, b) => a - b));
});

test("a run that is not there is not found, whatever is asked of it", async () => {
  const options = { client, path: { run_id: "x" } };
  for (const ask of [api.getRun, api.publishRun, api.abortRun]) {
    assert.match(refused(await ask(options), 404, "not_found").error, /^run 'x' not found/);
  }
});

async function ageOf(name: string, branch: string): Promise<unknown> {
  const body = { query_source: QUERIES, query_name: "person", params: { name }, branch };
  return answered(await api.read({ client, body })).rows[0]["p.age"];
}
