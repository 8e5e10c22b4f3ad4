#!/usr/bin/env bash
# A Spark Connect server on this machine: prints its address when it is ready, Ctrl-C stops it.
#
#   deploy/spark-connect.sh [options of spark-submit]
#
# Java, Spark and the Python of tasks are those of the Python that PYTHON names, else of .venv, else on the PATH.
# SPARK_CONNECT_PORT (15002) and SPARK_UI_PORT (the first free one from 4040 on) say where, SPARK_CONNECT_HOST
# (127.0.0.1) for whom: whoever reaches the port may run code, so keep another address inside your network.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$([[ -x $root/.venv/bin/python ]] && echo "$root/.venv/bin/python" || echo python)}
host=${SPARK_CONNECT_HOST:-127.0.0.1}
port=${SPARK_CONNECT_PORT:-15002}
master=${OMNIGRAPH_SPARK_MASTER:-local[*,3]}
[[ -d $root/omnigraph_core ]] && export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} # else it is installed
found=$("$python" - "$host" "$port" "${SPARK_UI_PORT:-}" "$master" <<'PYTHON'
import pathlib, shlex, socket, sys

import pyspark

from omnigraph_core.spark.defaults import VARIABLE, check_master, classic
from omnigraph_core.spark.java import java_home

# Java of a server has time to compile, and the variables of tasks are those of this script: they may be secret.
NOT_OURS = ("spark.driver.extraJavaOptions", "spark.port.maxRetries", "spark.log.level")

host, port, ui_port, master = sys.argv[1:]
check_master(master)


def first_free(name, ports):
    for number in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, number))
            except OSError as problem:
                why = problem.strerror
            else:
                return number
    sys.exit(f"error: no server can listen at {host}:{number}: {why}; set {name} to another port")


first_free("SPARK_CONNECT_PORT", [int(port)])
settings = [
    word
    for name, value in classic(master).items()
    if name not in NOT_OURS
    and (not name.startswith(VARIABLE) or name.startswith(f"{VARIABLE}LANCE_"))
    for word in ("--conf", f"{name}={value}")
]
values = {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_HOME": pathlib.Path(pyspark.__file__).parent,
    "JAVA_HOME": java_home(),
    "ui_port": first_free("SPARK_UI_PORT", [int(ui_port)] if ui_port else range(4040, 4140)),
}
print("\n".join(f"{name}={shlex.quote(str(value))}" for name, value in values.items()))
print(f"settings=({shlex.join(settings)})")
PYTHON
)
eval "$found"
export PYSPARK_PYTHON SPARK_HOME JAVA_HOME
if [[ $host != 0.0.0.0 ]]; then
  export SPARK_LOCAL_IP=${SPARK_LOCAL_IP:-$host} # where the Spark UI listens
fi

server=''
stop() {
  trap '' INT TERM HUP # a second Ctrl-C leaves nothing behind
  if [[ -n $server ]]; then
    kill -TERM "$server" 2>/dev/null || true
    for _ in {1..150}; do
      kill -0 "$server" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

"$SPARK_HOME/bin/spark-submit" \
  --master "$master" "${settings[@]}" \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --conf "spark.connect.grpc.binding.address=$host" \
  --conf "spark.connect.grpc.binding.port=$port" \
  --conf spark.connect.session.manager.defaultSessionTimeout=24h \
  --conf spark.python.daemon.module=omnigraph_core.spark.daemon \
  --conf "spark.ui.port=$ui_port" \
  "$@" spark-internal &
server=$!
near=${host/#0.0.0.0/127.0.0.1}
until (exec 3<>"/dev/tcp/$near/$port") 2>/dev/null; do
  kill -0 "$server" 2>/dev/null || { wait "$server" && exit 0 || exit $?; }
  sleep 0.2
done
shown=$([[ $host == 0.0.0.0 ]] && hostname || echo "$host")
echo "ready: sc://$shown:$port, Spark UI http://$shown:$ui_port"
wait "$server"
