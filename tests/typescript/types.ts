// The documents of the HTTP interface, as a generator writes them from its OpenAPI description.
//
// `name?: T` may be left out, `name: T | null` is always there. The tests read this file: one
// member a line, no nesting, so that it can be held against openapi.json and against real answers.

export type BranchMergeOutcome = "already_up_to_date" | "fast_forward" | "merged";

export type ErrorCode =
  | "unauthorized"
  | "forbidden"
  | "bad_request"
  | "not_found"
  | "conflict"
  | "internal";

export type LoadMode = "overwrite" | "append" | "merge";

export type MergeConflictKindOutput =
  | "divergent_insert"
  | "divergent_update"
  | "delete_vs_update"
  | "orphan_edge"
  | "unique_violation"
  | "cardinality_violation"
  | "value_constraint_violation";

// Requests: a null counts as left out.

export interface ReadRequest {
  query_source: string;
  query_name?: string | null;
  params?: Record<string, unknown> | null;
  branch?: string | null;
  snapshot?: string | null;
}

export interface ChangeRequest {
  query_source: string;
  query_name?: string | null;
  params?: Record<string, unknown> | null;
  branch?: string | null;
}

export interface ExportRequest {
  branch?: string | null;
  type_names?: Array<string> | null;
  table_keys?: Array<string> | null;
}

export interface IngestRequest {
  data: string;
  branch?: string | null;
  from?: string | null;
  mode?: LoadMode | null;
}

export interface SchemaApplyRequest {
  schema_source: string;
}

export interface BranchCreateRequest {
  name: string;
  from?: string | null;
}

export interface BranchMergeRequest {
  source: string;
  target?: string | null;
}

// Answers: members that are not named here may be there too.

export interface HealthOutput {
  status: string;
  version: string;
  source_version?: string;
}

export interface SnapshotOutput {
  branch: string;
  manifest_version: number;
  tables: Array<SnapshotTableOutput>;
}

export interface SnapshotTableOutput {
  table_key: string;
  table_path: string;
  table_version: number;
  table_branch: string | null;
  row_count: number;
}

export interface ReadOutput {
  query_name: string;
  target: ReadTargetOutput;
  row_count: number;
  columns?: Array<string>;
  rows: Array<Record<string, unknown>>;
}

export interface ReadTargetOutput {
  branch: string | null;
  snapshot: string | null;
}

export interface ChangeOutput {
  branch: string;
  query_name: string;
  affected_nodes: number;
  affected_edges: number;
  actor_id: string | null;
}

export interface IngestOutput {
  uri: string;
  branch: string;
  base_branch: string;
  branch_created: boolean;
  mode: LoadMode;
  tables: Array<IngestTableOutput>;
  actor_id: string | null;
}

export interface IngestTableOutput {
  table_key: string;
  rows_loaded: number;
}

export interface SchemaOutput {
  schema_source: string;
}

export interface SchemaApplyOutput {
  uri: string;
  supported: boolean;
  applied: boolean;
  step_count: number;
  manifest_version: number;
  steps: Array<Record<string, unknown>>;
}

export interface BranchListOutput {
  branches: Array<string>;
}

export interface BranchCreateOutput {
  uri: string;
  from: string;
  name: string;
  actor_id: string | null;
}

export interface BranchDeleteOutput {
  uri: string;
  name: string;
  actor_id: string | null;
}

export interface BranchMergeOutput {
  source: string;
  target: string;
  outcome: BranchMergeOutcome;
  actor_id: string | null;
}

export interface RunListOutput {
  runs: Array<RunOutput>;
}

export interface RunOutput {
  run_id: string;
  target_branch: string;
  run_branch: string;
  base_snapshot_id: string;
  base_manifest_version: number;
  operation_hash: string | null;
  actor_id: string | null;
  status: string;
  published_snapshot_id: string | null;
  created_at: number;
  updated_at: number;
}

export interface CommitListOutput {
  commits: Array<CommitOutput>;
}

export interface CommitOutput {
  graph_commit_id: string;
  manifest_branch: string | null;
  manifest_version: number;
  parent_commit_id: string | null;
  merged_parent_commit_id: string | null;
  actor_id: string | null;
  created_at: number;
}

export interface ErrorOutput {
  error: string;
  code?: ErrorCode;
  merge_conflicts?: Array<MergeConflictOutput>;
}

export interface MergeConflictOutput {
  table_key: string;
  row_id: string | null;
  kind: MergeConflictKindOutput;
  message: string;
}
