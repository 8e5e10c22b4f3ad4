// Refusals as classes: chosen by the `code` of the body, by the status where the body has none.

export interface MergeConflict {
  tableKey: string;
  rowId: string | null;
  kind: string;
  message: string;
}

export class OmnigraphError extends Error {
  status: number;
  code: string | undefined;
  requestId: string | null;
  mergeConflicts: Array<MergeConflict>;

  constructor(refused: Refused) {
    super(refused.message);
    this.name = new.target.name;
    this.status = refused.status;
    this.code = refused.code;
    this.requestId = refused.requestId;
    this.mergeConflicts = refused.mergeConflicts;
  }
}

export class BadRequestError extends OmnigraphError {}
export class AuthenticationError extends OmnigraphError {}
export class PermissionDeniedError extends OmnigraphError {}
export class NotFoundError extends OmnigraphError {}
export class ConflictError extends OmnigraphError {}
export class InternalServerError extends OmnigraphError {}

export interface Refused {
  status: number;
  message: string;
  code: string | undefined;
  requestId: string | null;
  mergeConflicts: Array<MergeConflict>;
}

type ErrorClass = new (refused: Refused) => OmnigraphError;

const BY_CODE: Record<string, ErrorClass> = {
  bad_request: BadRequestError,
  unauthorized: AuthenticationError,
  forbidden: PermissionDeniedError,
  not_found: NotFoundError,
  conflict: ConflictError,
  internal: InternalServerError,
};

const BY_STATUS: Record<number, ErrorClass> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  500: InternalServerError,
};

export function errorOf(refused: Refused): OmnigraphError {
  const named = refused.code === undefined ? undefined : BY_CODE[refused.code];
  return new (named ?? BY_STATUS[refused.status] ?? InternalServerError)(refused);
}
