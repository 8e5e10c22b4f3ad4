#!/usr/bin/env bash
# An S3 store in one process: SeaweedFS on STORE_HOST and STORE_PORT, its files below STORE_DIR.
# It also takes the three ports after STORE_PORT, and each of the four plus 10000; the clients' is the first.
set -euo pipefail
: "${STORE_DIR:?where the store keeps its files}"
: "${AWS_ACCESS_KEY_ID:?the key id that clients sign with}"
: "${AWS_SECRET_ACCESS_KEY:?the secret that clients sign with}"
host=${STORE_HOST:-127.0.0.1}
port=${STORE_PORT:-8333}

mkdir -p "$STORE_DIR/data" "$STORE_DIR/logs"
cd "$STORE_DIR" # the sockets go here: their paths must be short
umask 077
cat >s3.json <<JSON
{"identities": [{"name": "omnigraph",
  "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
JSON
HOME=$STORE_DIR exec "${WEED:-weed}" -logdir=logs server -s3 \
  -s3.port="$port" -master.port="$((port + 1))" -volume.port="$((port + 2))" -filer.port="$((port + 3))" \
  -dir=data -s3.config=s3.json -ip=127.0.0.1 -ip.bind="$host" \
  -s3.port.iceberg=0 -s3.port.lance=0 -filer.localSocket=filer.sock -s3.localSocket=s3.sock \
  -master.telemetry=false -master.peers=none -master.volumeSizeLimitMB=64 \
  -volume.max=0 -volume.preStopSeconds=0
