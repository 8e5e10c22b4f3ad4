// What the suites share: the server they were started for, and how an answer is taken apart.

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";

import { change, createBranch } from "./operations.ts";
import { createOmnigraphClient } from "./transport.ts";
import type { Client, Result } from "./transport.ts";
import type { ErrorOutput, RunOutput } from "./types.ts";

export const BASE_URL = given("OMNIGRAPH_TEST_URL");
export const TOKEN = given("OMNIGRAPH_TEST_TOKEN");
export const OTHER_TOKEN = given("OMNIGRAPH_TEST_OTHER_TOKEN");
export const ACTOR = "act-ann";
export const OTHER_ACTOR = "act-ben";

export const QUERIES = `
query people() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }
query person($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }
query set_age($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query hire($name: String, $company: String) {
  insert Person { name: $name }
  insert WorksAt { from: $name, to: $company }
}
`;

export const client = createOmnigraphClient({ baseUrl: BASE_URL, token: TOKEN, fetch: recording });

/** The answer; fails the test with the refusal where there is none. */
export function answered<Data>(result: Result<Data, ErrorOutput>): Data {
  assert.equal(result.error, undefined, JSON.stringify(result.error));
  assert.equal(result.response.status, 200);
  return result.data as Data;
}

/** The refusal, once its status and its shape are as they have to be. */
export function refused(
  result: Result<unknown, ErrorOutput>,
  status: number,
  code: string,
): ErrorOutput {
  assert.equal(result.data, undefined, JSON.stringify(result.data));
  assert.equal(result.response.status, status, JSON.stringify(result.error));
  assert.match(result.response.headers.get("Content-Type") ?? "", /^application\/json/);
  const error = result.error as ErrorOutput;
  assert.equal(typeof error.error, "string");
  assert.notEqual(error.error, "");
  assert.equal(error.code, code);
  return error;
}

/** A branch of its own for a test, so that no test sees what another one wrote. */
export async function newBranch(name: string): Promise<string> {
  answered(await createBranch({ client, body: { name } }));
  return name;
}

export async function setAge(branch: string, name: string, age: number): Promise<void> {
  const body = { query_source: QUERIES, query_name: "set_age", params: { name, age }, branch };
  assert.equal(answered(await change({ client, body })).affected_nodes, 1);
}

/** Beginning a run is not among the operations of the client: the plain request. */
export async function beginRun(target: string): Promise<RunOutput> {
  const response = await post("/runs", JSON.stringify({ target_branch: target }));
  assert.equal(response.status, 200);
  return (await response.json()) as RunOutput;
}

export function post(path: string, body: BodyInit, headers = {}, on: Client = client) {
  return recording(`${on.baseUrl}${path}`, {
    method: "POST",
    body,
    headers: { ...on.headers, "Content-Type": "application/json", ...headers },
  });
}

/** As `fetch`, and what came back is kept for whoever started the suite. */
export async function recording(url: string | URL | Request, init?: RequestInit) {
  const response = await fetch(url, init);
  const type = response.headers.get("Content-Type");
  const exchange = {
    method: init?.method,
    path: new URL(String(url)).pathname,
    status: response.status,
    type,
    request_id: response.headers.get("X-Request-Id"),
    body: type?.startsWith("application/json") ? await response.clone().text() : null,
  };
  appendFileSync(given("OMNIGRAPH_TEST_RECORD"), `${JSON.stringify(exchange)}\n`);
  return response;
}

function given(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: these suites are started by test_typescript.py`);
  return value;
}
