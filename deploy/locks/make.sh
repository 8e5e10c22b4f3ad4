#!/usr/bin/env bash
# Rewrite the locks of the images: what each needs, in the versions and with the hashes of requirements.lock.
set -euo pipefail
cd "$(dirname "$0")/../.."
uv=${UV:-.venv/bin/uv}

lock() { # name of the lock, then what goes into it
  local name=$1
  shift
  "$uv" pip compile "$@" --constraint requirements.lock --universal --python-version 3.11 \
    --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet -o "deploy/locks/$name.lock"
}

lock build deploy/locks/build.in
lock store deploy/locks/store.in
lock server pyproject.toml --extra aws
lock dagster deploy/locks/dagster.in deploy/locks/postgres.in
lock platform pyproject.toml deploy/locks/postgres.in deploy/locks/kubernetes.in --extra aws --extra platform --extra spark
