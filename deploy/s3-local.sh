#!/usr/bin/env bash
# A graph on S3 on this machine, with one command: starts a store, makes the bucket and the graph of the river
# example, loads it and serves it. Ctrl-C stops everything; the next start goes on with the data.
#
#   deploy/s3-local.sh [FILE.jsonl]     records to load in place of those of the example
#
# S3_PORT (8333) and SERVER_PORT (8080) say where, S3_LOCAL_DIR (build/s3-local) says where the data is kept.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${BIN:-$root/.venv/bin}
s3_port=${S3_PORT:-8333}
server_port=${SERVER_PORT:-8080}
directory=$(realpath -m "${S3_LOCAL_DIR:-$root/build/s3-local}")
data=${1:+$(realpath "$1")}

export AWS_ACCESS_KEY_ID=local-key AWS_SECRET_ACCESS_KEY=local-secret AWS_REGION=us-east-1
export AWS_ENDPOINT_URL=http://127.0.0.1:$s3_port AWS_ALLOW_HTTP=true
export OMNIGRAPH_TARGET_URI=s3://lake/river
export OMNIGRAPH_EMBEDDINGS_MOCK=${OMNIGRAPH_EMBEDDINGS_MOCK:-1} # no account is needed to try it

taken=$("$bin/python" - "$s3_port" "$server_port" <<'PYTHON'
import socket, sys

s3, server = map(int, sys.argv[1:])
wanted = [("SERVER_PORT", server)]
wanted += [("S3_PORT", port + more) for port in range(s3, s3 + 4) for more in (0, 10_000)]
for name, port in wanted:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            print(f"error: port {port} is taken: set {name} to another one")
PYTHON
)
if [[ -n $taken ]]; then
  echo "$taken" >&2
  exit 1
fi

store='' server=''
stop() {
  trap '' INT TERM HUP # a second Ctrl-C leaves nothing behind
  for process in $server $store; do # the server first: it may still write
    kill -TERM "$process" 2>/dev/null || continue
    for _ in {1..150}; do
      kill -0 "$process" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  for port in {0..3}; do # SeaweedFS leaves these behind
    rm -f /tmp/seaweedfs-*-grpc-$((s3_port + port + 10000)).sock
  done
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$directory"
# In a session of its own: Ctrl-C must not take the store away from those who still write.
STORE_DIR=$directory STORE_PORT=$s3_port WEED=$bin/weed setsid "$root/deploy/store.sh" >"$directory/store.log" 2>&1 &
store=$!
PYTHON=$bin/python OMNIGRAPH=$bin/omnigraph "$root/deploy/setup.sh" ${data:+"$data"}

cat >"$directory/omnigraph.yaml" <<YAML
graphs:
  river: {uri: "$OMNIGRAPH_TARGET_URI"}
server: {graph: river}
query: {roots: ["$root/examples/river"]}
YAML
"$bin/omnigraph-server" --config "$directory/omnigraph.yaml" --bind "127.0.0.1:$server_port" 2>"$directory/server.log" &
server=$!
until "$bin/python" -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$server_port/readyz', timeout=5)" 2>/dev/null; do
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$directory/server.log" >&2
    exit 1
  fi
  sleep 0.2
done

cat <<TEXT
ready
  graph   $OMNIGRAPH_TARGET_URI at $AWS_ENDPOINT_URL, key $AWS_ACCESS_KEY_ID, secret $AWS_SECRET_ACCESS_KEY
  server  http://127.0.0.1:$server_port
  try     curl http://127.0.0.1:$server_port/queries/suspects --json '{"params": {"number": "IN-2030-1"}}'
  logs    $directory/store.log, $directory/server.log
  Ctrl-C stops everything
TEXT
wait "$server"
