# An S3 store for trials: one process, one volume. In production use the store that you have.
#   docker build -f deploy/store.Dockerfile -t omnigraph-store:0.1.0 .
FROM python:3.11-slim
COPY deploy/locks/store.lock /tmp/store.lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/store.lock
RUN useradd --uid 10001 --create-home omnigraph
RUN install -d -o omnigraph /var/lib/store
COPY deploy/store.sh /opt/omnigraph/deploy/
ENV STORE_DIR=/var/lib/store
ENV STORE_HOST=0.0.0.0
ENV STORE_PORT=8333
VOLUME /var/lib/store
USER 10001
EXPOSE 8333
CMD ["/opt/omnigraph/deploy/store.sh"]
