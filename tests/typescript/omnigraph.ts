// A client as a class: methods in groups, camelCase on this side and snake_case on the wire, errors
// as classes, an export as an iterator that reads no further than it is asked.

import { toCamel, toSnake } from "./casing.ts";
import { errorOf } from "./errors.ts";
import type { MergeConflict } from "./errors.ts";
import { urlOf } from "./transport.ts";
import type { ClientConfig, Operation, Parts } from "./transport.ts";
import type * as types from "./types.ts";

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S;
type Verbatim = "params" | "rows" | "columns";

/** The same document with names in camelCase, all the way down but for what users named. */
export type Camelized<T> =
  T extends Array<infer Member>
    ? Array<Camelized<Member>>
    : T extends object
      ? {
          [K in keyof T as K extends string ? Camel<K> : K]: K extends Verbatim
            ? T[K]
            : Camelized<T[K]>;
        }
      : T;

type Sent<T> = Camelized<T>;
type Got<T> = Promise<Camelized<T>>;
type Row = Record<string, unknown>;

export class Omnigraph {
  #config: ClientConfig;
  branches: Branches;
  commits: Commits;
  runs: Runs;
  schema: Schema;

  constructor(config: ClientConfig) {
    this.#config = config;
    const call: Call = (operation, parts) => this.#call(operation, parts);
    this.branches = new Branches(call);
    this.commits = new Commits(call);
    this.runs = new Runs(call);
    this.schema = new Schema(call);
  }

  health(): Got<types.HealthOutput> {
    return this.#call({ method: "GET", url: "/healthz" });
  }

  snapshot(query: { branch?: string } = {}): Got<types.SnapshotOutput> {
    return this.#call({ method: "GET", url: "/snapshot" }, { query });
  }

  read(body: Sent<types.ReadRequest>): Got<types.ReadOutput> {
    return this.#call({ method: "POST", url: "/read" }, { body });
  }

  change(body: Sent<types.ChangeRequest>): Got<types.ChangeOutput> {
    return this.#call({ method: "POST", url: "/change" }, { body });
  }

  ingest(body: Sent<types.IngestRequest>): Got<types.IngestOutput> {
    return this.#call({ method: "POST", url: "/ingest" }, { body });
  }

  /** Objects as they arrive; leaving the loop early hangs up. */
  async *export(body: Sent<types.ExportRequest> = {}): AsyncGenerator<Row, void, void> {
    const hangUp = new AbortController();
    const operation: Operation = { method: "POST", url: "/export" };
    const response = await this.#send(operation, { body }, hangUp.signal);
    try {
      for await (const line of linesOf(response)) {
        yield JSON.parse(line);
      }
    } finally {
      hangUp.abort();
    }
  }

  async #call(operation: Operation, parts: Parts = {}): Promise<any> {
    const response = await this.#send(operation, parts);
    return toCamel(await response.json());
  }

  async #send(operation: Operation, parts: Parts, signal?: AbortSignal): Promise<Response> {
    const headers = new Headers({ Accept: "application/json, application/x-ndjson" });
    if (this.#config.token !== undefined) {
      headers.set("Authorization", `Bearer ${this.#config.token}`);
    }
    const init: RequestInit = { method: operation.method, headers, signal };
    if (parts.body !== undefined) {
      headers.set("Content-Type", "application/json");
      init.body = JSON.stringify(toSnake(parts.body));
    }
    const send = this.#config.fetch ?? globalThis.fetch;
    const response = await send(urlOf(this.#config.baseUrl, operation.url, parts), init);
    if (!response.ok) {
      throw await refusal(response);
    }
    return response;
  }
}

// What comes back is typed where it is handed out: the signature of each method.
type Call = (operation: Operation, parts?: Parts) => Promise<any>;

class Branches {
  #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  list(): Got<types.BranchListOutput> {
    return this.#call({ method: "GET", url: "/branches" });
  }

  create(body: Sent<types.BranchCreateRequest>): Got<types.BranchCreateOutput> {
    return this.#call({ method: "POST", url: "/branches" }, { body });
  }

  delete(branch: string): Got<types.BranchDeleteOutput> {
    return this.#call({ method: "DELETE", url: "/branches/{branch}" }, { path: { branch } });
  }

  merge(body: Sent<types.BranchMergeRequest>): Got<types.BranchMergeOutput> {
    return this.#call({ method: "POST", url: "/branches/merge" }, { body });
  }
}

class Commits {
  #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  list(query: { branch?: string } = {}): Got<types.CommitListOutput> {
    return this.#call({ method: "GET", url: "/commits" }, { query });
  }

  get(commit_id: string): Got<types.CommitOutput> {
    return this.#call({ method: "GET", url: "/commits/{commit_id}" }, { path: { commit_id } });
  }
}

class Runs {
  #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  list(): Got<types.RunListOutput> {
    return this.#call({ method: "GET", url: "/runs" });
  }

  get(run_id: string): Got<types.RunOutput> {
    return this.#call({ method: "GET", url: "/runs/{run_id}" }, { path: { run_id } });
  }

  publish(run_id: string): Got<types.RunOutput> {
    return this.#call({ method: "POST", url: "/runs/{run_id}/publish" }, { path: { run_id } });
  }

  abort(run_id: string): Got<types.RunOutput> {
    return this.#call({ method: "POST", url: "/runs/{run_id}/abort" }, { path: { run_id } });
  }
}

class Schema {
  #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  get(): Got<types.SchemaOutput> {
    return this.#call({ method: "GET", url: "/schema" });
  }

  apply(body: Sent<types.SchemaApplyRequest>): Got<types.SchemaApplyOutput> {
    return this.#call({ method: "POST", url: "/schema/apply" }, { body });
  }
}

async function refusal(response: Response): Promise<Error> {
  const text = await response.text();
  const body = bodyOf(text);
  return errorOf({
    status: response.status,
    message: body?.error ?? text,
    code: body?.code,
    requestId: response.headers.get("X-Request-Id"),
    mergeConflicts: toCamel(body?.merge_conflicts ?? []) as Array<MergeConflict>,
  });
}

function bodyOf(text: string): types.ErrorOutput | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function* linesOf(response: Response): AsyncGenerator<string, void, void> {
  if (response.body === null) {
    return;
  }
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line !== "");
  }
  if (rest !== "") {
    yield rest;
  }
}
