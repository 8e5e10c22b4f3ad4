# A Spark Connect server whose Python has everything that tasks need; also an image for executors.
#   docker build -f deploy/spark.Dockerfile -t omnigraph-spark:0.1.0 .
FROM python:3.11-slim AS build
WORKDIR /source
COPY deploy/locks/build.lock ./
RUN pip install --no-cache-dir --require-hashes -r build.lock
COPY pyproject.toml README.md LICENSE ./
COPY omnigraph_core omnigraph_core
COPY omnigraph_assets omnigraph_assets
RUN pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
# The scripts of Spark ask `ps` whether a process lives.
RUN apt-get update && apt-get install --yes --no-install-recommends procps && rm -rf /var/lib/apt/lists/*
COPY deploy/locks/platform.lock /tmp/platform.lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/platform.lock
COPY --from=build /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps --no-index /tmp/wheels/omnigraph-0.1.0-py3-none-any.whl
RUN useradd --uid 10001 --create-home omnigraph
WORKDIR /opt/omnigraph
COPY deploy/spark-connect.sh deploy/
ENV SPARK_CONNECT_HOST=0.0.0.0
USER 10001
WORKDIR /home/omnigraph
EXPOSE 15002
CMD ["/opt/omnigraph/deploy/spark-connect.sh"]
