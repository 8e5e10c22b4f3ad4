"""Every error OmniGraph raises on purpose. A test compares this drawing with the classes.

OmnigraphError
├── CompileError
│   ├── SchemaSyntaxError
│   ├── SchemaError
│   ├── QuerySyntaxError
│   ├── QueryTypeError
│   └── UnsupportedMigration
├── DataError
│   ├── RecordError
│   ├── ConstraintViolation
│   ├── EndpointNotFound
│   ├── DuplicateKey
│   ├── ParameterError
│   └── CursorRejected
├── NotFoundError
│   ├── BranchNotFound
│   ├── CommitNotFound
│   ├── SnapshotNotFound
│   ├── TableNotFound
│   ├── TagNotFound
│   ├── RunNotFound
│   ├── QueryNotFound
│   ├── GraphNotFound
│   ├── BlobIsNull
│   └── ChangeFeedGap
├── ConflictError
│   ├── VersionConflict
│   ├── PreconditionFailed
│   ├── PublishContention
│   ├── AlreadyExists
│   ├── BranchInUse
│   ├── SchemaApplyLocked
│   └── MergeConflicts
├── CommitOutcomeUnknown
├── PolicyDenied
├── Unauthenticated
├── ConfigError
│   └── BlobElsewhere
├── FormatTooNew
├── StorageError
│   └── ObjectNotFound
├── EmbeddingError
├── JobFailed
├── QueryStopped
│   ├── BudgetExceeded
│   ├── QueryTimeout
│   └── QueryCancelled
└── InvariantBroken

`kind` is closed and equals the wire codes; `code` is a stable dotted string listed in
docs/reference/errors.md; `retryable` says whether the same call may succeed later unchanged.
"""

from __future__ import annotations

from omnigraph_core.errors.given import (
    CompileError,
    ConstraintViolation,
    CursorRejected,
    DataError,
    DuplicateKey,
    EndpointNotFound,
    ParameterError,
    QuerySyntaxError,
    QueryTypeError,
    RecordError,
    SchemaError,
    SchemaSyntaxError,
    UnsupportedMigration,
)
from omnigraph_core.errors.root import (
    ErrorKind,
    OmnigraphError,
)
from omnigraph_core.errors.state import (
    AlreadyExists,
    BlobIsNull,
    BranchInUse,
    BranchNotFound,
    ChangeFeedGap,
    CommitNotFound,
    CommitOutcomeUnknown,
    ConflictError,
    GraphNotFound,
    MergeConflicts,
    NotFoundError,
    PreconditionFailed,
    PublishContention,
    QueryNotFound,
    RunNotFound,
    SchemaApplyLocked,
    SnapshotNotFound,
    TableNotFound,
    TagNotFound,
    VersionConflict,
)
from omnigraph_core.errors.system import (
    BlobElsewhere,
    BudgetExceeded,
    ConfigError,
    EmbeddingError,
    FormatTooNew,
    InvariantBroken,
    JobFailed,
    ObjectNotFound,
    PolicyDenied,
    QueryCancelled,
    QueryStopped,
    QueryTimeout,
    StorageError,
    Unauthenticated,
)

__all__ = [
    "AlreadyExists",
    "BlobElsewhere",
    "BlobIsNull",
    "BranchInUse",
    "BranchNotFound",
    "BudgetExceeded",
    "ChangeFeedGap",
    "CommitNotFound",
    "CommitOutcomeUnknown",
    "CompileError",
    "ConfigError",
    "ConflictError",
    "ConstraintViolation",
    "CursorRejected",
    "DataError",
    "DuplicateKey",
    "EmbeddingError",
    "EndpointNotFound",
    "ErrorKind",
    "FormatTooNew",
    "GraphNotFound",
    "InvariantBroken",
    "JobFailed",
    "MergeConflicts",
    "NotFoundError",
    "ObjectNotFound",
    "OmnigraphError",
    "ParameterError",
    "PolicyDenied",
    "PreconditionFailed",
    "PublishContention",
    "QueryCancelled",
    "QueryNotFound",
    "QueryStopped",
    "QuerySyntaxError",
    "QueryTimeout",
    "QueryTypeError",
    "RecordError",
    "RunNotFound",
    "SchemaApplyLocked",
    "SchemaError",
    "SchemaSyntaxError",
    "SnapshotNotFound",
    "StorageError",
    "TableNotFound",
    "TagNotFound",
    "Unauthenticated",
    "UnsupportedMigration",
    "VersionConflict",
]
