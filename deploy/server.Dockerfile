# The HTTP server and the command line. Built from the root of the repository:
#   docker build -f deploy/server.Dockerfile -t omnigraph-server:0.1.0 .
FROM python:3.11-slim AS build
WORKDIR /source
COPY deploy/locks/build.lock ./
RUN pip install --no-cache-dir --require-hashes -r build.lock
COPY pyproject.toml README.md LICENSE ./
COPY omnigraph_core omnigraph_core
COPY omnigraph_assets omnigraph_assets
RUN pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY deploy/locks/server.lock /tmp/server.lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/server.lock
COPY --from=build /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps --no-index /tmp/wheels/omnigraph-0.1.0-py3-none-any.whl
RUN useradd --uid 10001 --create-home omnigraph
RUN install -d -o omnigraph /var/lib/omnigraph
WORKDIR /opt/omnigraph
COPY deploy/setup.sh deploy/make_bucket.py deploy/
COPY examples/river examples/river
ENV OMNIGRAPH_SERVER_SPOOL=/var/lib/omnigraph/spool
ENV OMNIGRAPH_CACHE_DIR=/var/lib/omnigraph/cache
ENV OMNIGRAPH_EMBED_CACHE=/var/lib/omnigraph/embeddings.sqlite
VOLUME /var/lib/omnigraph
USER 10001
EXPOSE 8080
# Without arguments the environment says what to serve: OMNIGRAPH_TARGET_URI, tokens, OMNIGRAPH_BIND.
CMD ["omnigraph-server"]
