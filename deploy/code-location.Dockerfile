# The code location of the platform, and the runs that it starts.
#   docker build -f deploy/code-location.Dockerfile -t omnigraph-code-location:0.1.0 .
FROM python:3.11-slim AS build
WORKDIR /source
COPY deploy/locks/build.lock ./
RUN pip install --no-cache-dir --require-hashes -r build.lock
COPY pyproject.toml README.md LICENSE ./
COPY omnigraph_core omnigraph_core
COPY omnigraph_assets omnigraph_assets
RUN pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY deploy/locks/platform.lock /tmp/platform.lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/platform.lock
COPY --from=build /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps --no-index /tmp/wheels/omnigraph-0.1.0-py3-none-any.whl
RUN useradd --uid 10001 --create-home omnigraph
RUN install -d -o omnigraph /var/lib/dagster
WORKDIR /opt/omnigraph
# Definitions are found from the project above them, so they are read here and not where the wheel put them.
ENV PYTHONPATH=/opt/omnigraph
COPY pyproject.toml ./
COPY omnigraph_assets omnigraph_assets
COPY deploy/dagster/dagster.yaml /opt/dagster/dagster.yaml
ENV DAGSTER_HOME=/opt/dagster
USER 10001
EXPOSE 4000
CMD ["dagster", "code-server", "start", "--host", "0.0.0.0", "--port", "4000", "--module-name", "omnigraph_assets.definitions"]
