#!/usr/bin/env bash
# A Spark Connect server on SPARK_CONNECT_PORT, with the Java and the Spark of the Python that is on the PATH.
# Whoever reaches the port may run code: keep it inside your network. Arguments go to spark-submit.
set -euo pipefail
python=${PYTHON:-python}
PYSPARK_PYTHON=$("$python" -c 'import sys; print(sys.executable)')
SPARK_HOME=$("$python" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')
JAVA_HOME=$("$python" -c 'from omnigraph_core.spark.java import java_home; print(java_home())')
export PYSPARK_PYTHON SPARK_HOME JAVA_HOME
exec "$SPARK_HOME/bin/spark-submit" \
  --master "${OMNIGRAPH_SPARK_MASTER:-local[*,3]}" \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --conf "spark.connect.grpc.binding.port=${SPARK_CONNECT_PORT:-15002}" \
  --conf spark.python.daemon.module=omnigraph_core.spark.daemon \
  --conf spark.ui.enabled=false \
  "$@" spark-internal
