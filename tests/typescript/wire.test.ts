// What the clients send and how they read answers, seen from the other end of a socket. The suites
// against the real server mean something only as long as this holds.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import * as errors from "./errors.ts";
import { Omnigraph } from "./omnigraph.ts";
import * as api from "./operations.ts";
import { createOmnigraphClient } from "./transport.ts";
import type { Client } from "./transport.ts";

interface Seen {
  method?: string;
  url?: string;
  headers: IncomingMessage["headers"];
  body: string;
}

let seen: Seen;
let reply = (response: ServerResponse) => json(response, 200, "{}");
let client: Client;
let baseUrl: string;

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) {
    body += chunk;
  }
  seen = { method: request.method, url: request.url, headers: request.headers, body };
  reply(response);
});

before(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = createOmnigraphClient({ baseUrl, token: "secret" });
});

after(() => {
  server.closeAllConnections();
  server.close();
});

test("a request without a body has no content type", async () => {
  reply = (response) => json(response, 200, "{}");
  const run = { client, path: { run_id: "r" } };
  for (const [send, method, url] of [
    [() => api.listBranches({ client }), "GET", "/branches"],
    [() => api.deleteBranch({ client, path: { branch: "b" } }), "DELETE", "/branches/b"],
    [() => api.publishRun(run), "POST", "/runs/r/publish"],
    [() => api.abortRun(run), "POST", "/runs/r/abort"],
  ] as const) {
    await send();
    assert.deepEqual([seen.method, seen.url, seen.body], [method, url, ""]);
    assert.equal(seen.headers["content-type"], undefined);
    assert.equal(seen.headers.authorization, "Bearer secret");
  }
});

test("a body is JSON and says so", async () => {
  await api.createBranch({ client, body: { name: "b", from: null } });
  assert.equal(seen.headers["content-type"], "application/json");
  assert.deepEqual(JSON.parse(seen.body), { name: "b", from: null });
});

test("names in paths and queries are percent-encoded, null is not sent", async () => {
  await api.deleteBranch({ client, path: { branch: "review/2026 ü?" } });
  assert.equal(seen.url, "/branches/review%2F2026%20%C3%BC%3F");
  await api.getSnapshot({ client, query: { branch: "a/b&c" } });
  assert.equal(seen.url, "/snapshot?branch=a%2Fb%26c");
  for (const branch of [null, undefined]) {
    await api.listCommits({ client, query: { branch } });
    assert.equal(seen.url, "/commits");
  }
});

test("the content type of an answer decides how it is read", async () => {
  reply = (response) => json(response, 200, '{"a": 1}');
  assert.deepEqual((await api.health({ client })).data, { a: 1 });
  reply = (response) => typed(response, "application/x-ndjson; charset=utf-8", "{}\n");
  const { data } = await api.export_({ client, body: {} });
  assert.ok(data instanceof Blob);
  assert.equal(await data.text(), "{}\n");
  reply = (response) => typed(response, undefined, "{}");
  assert.ok(((await api.health({ client })).data as unknown) instanceof ReadableStream);
  reply = (response) => response.writeHead(204).end();
  assert.deepEqual((await api.health({ client })).data, {});
});

test("a refusal is returned or thrown, as JSON where it is JSON", async () => {
  reply = (response) => json(response, 404, '{"error": "gone", "code": "not_found"}');
  const { error, data, response } = await api.listRuns({ client });
  assert.deepEqual([error, data], [{ error: "gone", code: "not_found" }, undefined]);
  assert.equal(response.status, 404);
  await assert.rejects(api.listRuns({ client, throwOnError: true }), { error: "gone" });
  reply = (response) => response.writeHead(502, { "Content-Type": "text/plain" }).end("no way");
  assert.equal((await api.listRuns({ client })).error as unknown, "no way");
});

test("the class client accepts JSON and lines, sends snake_case but for parameters", async () => {
  reply = (response) => json(response, 200, '{"row_count": 0, "rows": [{"a_b": {"c_d": 1}}]}');
  const body = { querySource: "q", queryName: "n", params: { firstName: "x" } };
  const answer = await new Omnigraph({ baseUrl, token: "secret" }).read(body);
  assert.equal(seen.headers.accept, "application/json, application/x-ndjson");
  assert.equal(
    seen.body,
    '{"query_source":"q","query_name":"n","params":{"firstName":"x"}}',
  );
  assert.deepEqual(answer, { rowCount: 0, rows: [{ a_b: { c_d: 1 } }] });
});

test("errors are classes by code, then by status, then internal", async () => {
  const graph = new Omnigraph({ baseUrl });
  const cases: Array<[number, string, new (...given: any) => Error]> = [
    [413, '{"error": "e", "code": "bad_request"}', errors.BadRequestError],
    [403, '{"error": "e", "code": "forbidden"}', errors.PermissionDeniedError],
    [400, '{"error": "e"}', errors.BadRequestError],
    [401, "not JSON", errors.AuthenticationError],
    [404, '{"error": "e", "code": "something_new"}', errors.NotFoundError],
    [409, '{"error": "e"}', errors.ConflictError],
    [418, '{"error": "e"}', errors.InternalServerError],
  ];
  for (const [status, text, kind] of cases) {
    reply = (response) => json(response, status, text, { "X-Request-Id": "id-1" });
    await assert.rejects(graph.health(), (error: errors.OmnigraphError) => {
      assert.equal(error.constructor, kind, `${status} ${text}`);
      assert.deepEqual([error.status, error.requestId], [status, "id-1"]);
      return true;
    });
  }
});

test("an export is read by the line, however it is cut, and hung up on when left", async () => {
  let hungUp: () => void;
  const closed = new Promise<void>((resolve) => (hungUp = resolve));
  reply = (response) => {
    response.writeHead(200, { "Content-Type": "application/x-ndjson" });
    response.on("close", () => hungUp());
    const bytes = Buffer.from('{"name": "ü"}\n{"name": "b"}\n{"na');
    response.write(bytes.subarray(0, 11)); // in the middle of a letter
    setImmediate(() => response.write(bytes.subarray(11)));
  };
  const names = [];
  for await (const object of new Omnigraph({ baseUrl }).export()) {
    names.push(object.name);
    if (names.length === 2) {
      break; // the third line never ends
    }
  }
  assert.deepEqual(names, ["ü", "b"]);
  await closed;
});

function json(response: ServerResponse, status: number, text: string, headers = {}): void {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(text);
}

function typed(response: ServerResponse, type: string | undefined, text: string): void {
  response.writeHead(200, type === undefined ? {} : { "Content-Type": type }).end(text);
}
