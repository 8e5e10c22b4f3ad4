// What the server refuses reaches a generated client as an error document, with a code it knows.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BASE_URL, QUERIES, TOKEN, answered, client, post, recording, refused } from "./live.ts";
import * as api from "./operations.ts";
import { createOmnigraphClient, request } from "./transport.ts";
import type { ErrorOutput } from "./types.ts";

const LIMIT = 1024 * 1024;

test("without a token only health is answered", async () => {
  const stranger = createOmnigraphClient({ baseUrl: BASE_URL, fetch: recording });
  answered(await api.health({ client: stranger }));
  const error = refused(await api.listBranches({ client: stranger }), 401, "unauthorized");
  assert.equal(error.error, "missing bearer token");
});

test("a token that nobody has is refused", async () => {
  const liar = createOmnigraphClient({ baseUrl: BASE_URL, token: "no such", fetch: recording });
  const error = refused(await api.getSnapshot({ client: liar }), 401, "unauthorized");
  assert.equal(error.error, "invalid bearer token");
});

test("another scheme is no token", async () => {
  for (const scheme of ["bearer", "Basic"]) {
    const headers = { Authorization: `${scheme} ${TOKEN}` };
    const error = refused(await api.listRuns({ client, headers }), 401, "unauthorized");
    assert.equal(error.error, "missing bearer token");
  }
});

test("text that is no query is a bad request", async () => {
  const body = { query_source: "select * from people" };
  refused(await api.read({ client, body }), 400, "bad_request");
  refused(await api.change({ client, body }), 400, "bad_request");
});

test("a query that is not there, or not named, is a bad request", async () => {
  const nobody = { query_source: QUERIES, query_name: "nobody" };
  refused(await api.read({ client, body: nobody }), 400, "bad_request");
  refused(await api.read({ client, body: { query_source: QUERIES } }), 400, "bad_request");
});

test("a parameter of the wrong kind is named", async () => {
  const body = { query_source: QUERIES, query_name: "person", params: { name: 7 } };
  const error = refused(await api.read({ client, body }), 400, "bad_request");
  assert.match(error.error, /param 'name': /);
});

test("what is not there is not found", async () => {
  const body = { query_source: QUERIES, query_name: "people" };
  const branch = "nowhere";
  refused(await api.read({ client, body: { ...body, branch } }), 404, "not_found");
  const params = { name: "Alice", age: 1 };
  const edit = { ...body, query_name: "set_age", params, branch };
  refused(await api.change({ client, body: edit }), 404, "not_found");
  refused(await api.getSnapshot({ client, query: { branch } }), 404, "not_found");
  const bogus = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  refused(await api.getCommit({ client, path: { commit_id: bogus } }), 404, "not_found");
  refused(await api.read({ client, body: { ...body, snapshot: bogus } }), 404, "not_found");
});

test("records that do not fit the schema are refused with their line", async () => {
  const data = '{"type": "Person", "data": {"name": "Gina"}}\n{"type": "Ghost", "data": {}}\n';
  const error = refused(await api.ingest({ client, body: { data } }), 400, "bad_request");
  assert.match(error.error, /line 2|Ghost/);
});

test("a body over one MiB is refused, and the next request is served", async () => {
  for (const extra of [1, LIMIT, 8 * LIMIT]) {
    const body = { query_source: "x".repeat(LIMIT + extra) };
    refused(await api.read({ client, body }), 413, "bad_request");
    answered(await api.health({ client }));
  }
});

test("an ingest over 32 MiB is refused", async () => {
  const data = "x".repeat(32 * LIMIT);
  refused(await api.ingest({ client, body: { data } }), 413, "bad_request");
});

test("what the web framework refuses is an error document too", async () => {
  const cases: Array<[number, string, Promise<Response>]> = [
    [400, "bad_request", post("/read", "{")],
    [422, "bad_request", post("/read", "{}")],
    [422, "bad_request", post("/read", '{"query_source": 7}')],
    [415, "bad_request", post("/read", "{}", { "Content-Type": "text/plain" })],
    [404, "not_found", post("/no/such/path", "{}")],
    [405, "bad_request", post("/healthz", "{}")],
  ];
  for (const [status, code, sent] of cases) {
    const response = await sent;
    const error = (await response.json()) as ErrorOutput;
    assert.equal(response.status, status, JSON.stringify(error));
    refused({ error, response }, status, code);
  }
});

test("an unknown path is unknown to everybody", async () => {
  const stranger = createOmnigraphClient({ baseUrl: BASE_URL, fetch: recording });
  const operation = { method: "GET", url: "/no/such/path" } as const;
  refused(await request<unknown, ErrorOutput>(operation, { client: stranger }), 404, "not_found");
});

test("a refusal can be thrown", async () => {
  const options = { client, path: { run_id: "x" }, throwOnError: true };
  await assert.rejects(api.getRun(options), (error: ErrorOutput) => error.code === "not_found");
});
