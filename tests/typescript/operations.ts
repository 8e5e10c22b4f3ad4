// The operations of the HTTP interface, one function each, named after their operationId.

import { request } from "./transport.ts";
import type { Options, Result } from "./transport.ts";
import type * as types from "./types.ts";

type Answer<Data> = Promise<Result<Data, types.ErrorOutput>>;
type Body<T> = { body: T };
type OnBranch = { query?: { branch?: string | null } };

export function health(options: Options): Answer<types.HealthOutput> {
  return request({ method: "GET", url: "/healthz" }, options);
}

export function getSnapshot(options: Options & OnBranch): Answer<types.SnapshotOutput> {
  return request({ method: "GET", url: "/snapshot" }, options);
}

export function read(options: Options & Body<types.ReadRequest>): Answer<types.ReadOutput> {
  return request({ method: "POST", url: "/read" }, options);
}

export function export_(options: Options & Body<types.ExportRequest>): Answer<Blob> {
  return request({ method: "POST", url: "/export" }, options);
}

export function change(options: Options & Body<types.ChangeRequest>): Answer<types.ChangeOutput> {
  return request({ method: "POST", url: "/change" }, options);
}

export function getSchema(options: Options): Answer<types.SchemaOutput> {
  return request({ method: "GET", url: "/schema" }, options);
}

export function applySchema(
  options: Options & Body<types.SchemaApplyRequest>,
): Answer<types.SchemaApplyOutput> {
  return request({ method: "POST", url: "/schema/apply" }, options);
}

export function ingest(options: Options & Body<types.IngestRequest>): Answer<types.IngestOutput> {
  return request({ method: "POST", url: "/ingest" }, options);
}

export function listBranches(options: Options): Answer<types.BranchListOutput> {
  return request({ method: "GET", url: "/branches" }, options);
}

export function createBranch(
  options: Options & Body<types.BranchCreateRequest>,
): Answer<types.BranchCreateOutput> {
  return request({ method: "POST", url: "/branches" }, options);
}

export function deleteBranch(
  options: Options & { path: { branch: string } },
): Answer<types.BranchDeleteOutput> {
  return request({ method: "DELETE", url: "/branches/{branch}" }, options);
}

export function mergeBranches(
  options: Options & Body<types.BranchMergeRequest>,
): Answer<types.BranchMergeOutput> {
  return request({ method: "POST", url: "/branches/merge" }, options);
}

export function listRuns(options: Options): Answer<types.RunListOutput> {
  return request({ method: "GET", url: "/runs" }, options);
}

export function getRun(options: Options & { path: { run_id: string } }): Answer<types.RunOutput> {
  return request({ method: "GET", url: "/runs/{run_id}" }, options);
}

export function publishRun(
  options: Options & { path: { run_id: string } },
): Answer<types.RunOutput> {
  return request({ method: "POST", url: "/runs/{run_id}/publish" }, options);
}

export function abortRun(options: Options & { path: { run_id: string } }): Answer<types.RunOutput> {
  return request({ method: "POST", url: "/runs/{run_id}/abort" }, options);
}

export function listCommits(options: Options & OnBranch): Answer<types.CommitListOutput> {
  return request({ method: "GET", url: "/commits" }, options);
}

export function getCommit(
  options: Options & { path: { commit_id: string } },
): Answer<types.CommitOutput> {
  return request({ method: "GET", url: "/commits/{commit_id}" }, options);
}
