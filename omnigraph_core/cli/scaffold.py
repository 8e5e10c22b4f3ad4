"""What `init` leaves beside a new graph: `omnigraph.yaml`, and the files of an example.

Nothing that is there is overwritten.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from omnigraph_core.config.find import NAME
from omnigraph_core.errors import ConfigError

EXAMPLES: Final = ("maintenance",)
_WORDS: Final = ("null", "true", "false", "yes", "no", "on", "off")
"""What YAML takes for something else than text."""
_FILES: Final = ("schema.pg", "queries.gq", "data.jsonl")
_TEXT: Final = """\
project:
  name: {name}

graphs:
  local:
    uri: {uri}
    # bearer_token_env: STOCK_TOKEN   # for the URL of a server: the variable with its token

server:
  graph: local
  bind: 127.0.0.1:8080

cli:
  graph: local
  branch: main
  output_format: table
  table_max_column_width: 80
  table_cell_layout: truncate

query:
  roots:
    - queries
    - .

aliases:
  # part:
  #   command: read
  #   query: queries.gq
  #   name: part_by_sku
  #   args: [sku]

# auth:
#   env_file: .env.omnigraph

# policy:
#   file: policy.yaml
"""


def project_folder(address: str) -> Path:
    """Where the files of a project belong: around a local graph, else the current directory."""
    return Path() if "://" in address else Path(address).absolute().parent


def write_config(address: str) -> Path | None:
    """Write `omnigraph.yaml` for a new graph; None if there is one.

    Raises:
        ConfigError: it cannot be written.
    """
    path = project_folder(address) / NAME
    if path.exists():
        return None
    # A path in the file starts where the file is, and that is around the graph.
    uri = address if "://" in address else Path(address).absolute().name
    name = Path(uri.rstrip("/")).stem or "graph"
    return _write(path, _TEXT.format(name=_quoted(name), uri=_quoted(uri)))


def copy_example(name: str, address: str) -> tuple[Path, ...]:
    """Copy the files of an example around a new graph: schema, queries, data.

    Raises:
        ConfigError: there is no such example, a file is in the way, or cannot be written.
    """
    if name not in EXAMPLES:
        raise ConfigError(f"no example `{name}`", hint=f"examples: {', '.join(EXAMPLES)}")
    source = Path(__file__).parent / "examples" / name
    texts = {project_folder(address) / file: (source / file).read_text() for file in _FILES}
    taken = [path for path, text in texts.items() if path.exists() and not _holds(path, text)]
    if taken:
        raise ConfigError(
            "\n".join(f"{path} is in the way" for path in taken),
            hint="make the example in a folder of its own",
        )
    return tuple(_write(path, text) for path, text in texts.items())


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as problem:
        raise ConfigError(f"cannot write {path}: {problem.strerror}") from problem
    return path


def _quoted(text: str) -> str:
    """A text as YAML reads it back, whatever is in it.

    >>> _quoted("stock"), _quoted("s3://bucket/a"), _quoted("no: 1"), _quoted("Null")
    ('stock', 's3://bucket/a', '"no: 1"', '"Null"')
    """
    is_plain = text[:1].isalpha() and all(sign.isalnum() or sign in "_-./:" for sign in text)
    if is_plain and not text.endswith(":") and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)
