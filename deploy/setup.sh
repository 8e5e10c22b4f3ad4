#!/usr/bin/env bash
# Make the graph OMNIGRAPH_TARGET_URI on an S3 store: the bucket, the graph with the schema of the river example,
# and its records, or the file that is given. What is there already stays as it is.
set -euo pipefail
trap 'exit 130' INT # a command that was interrupted must not count as an answer
data=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
: "${OMNIGRAPH_TARGET_URI:?the graph to make, as s3://bucket/prefix}"
python=${PYTHON:-python}
omnigraph=${OMNIGRAPH:-omnigraph}

"$python" deploy/make_bucket.py "$OMNIGRAPH_TARGET_URI"
# The tag comes last: a setup that was interrupted is done again, and merging the records twice changes nothing.
if "$omnigraph" tag list "$OMNIGRAPH_TARGET_URI" 2>/dev/null | grep -q '^example '; then
  echo "there is a graph at $OMNIGRAPH_TARGET_URI: it stays as it is"
  exit
fi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
schema=$PWD/examples/river/schema.pg
if [[ -z $data ]]; then
  data=$made/river.jsonl
  "$python" -m examples.river.generate --out "$data"
fi
cd "$made" # where `init` leaves an omnigraph.yaml: nobody needs that one
"$omnigraph" branch list "$OMNIGRAPH_TARGET_URI" >/dev/null 2>&1 || "$omnigraph" init "$OMNIGRAPH_TARGET_URI" --schema "$schema"
"$omnigraph" load "$OMNIGRAPH_TARGET_URI" --data "$data" --mode merge
"$omnigraph" tag create example "$OMNIGRAPH_TARGET_URI"
