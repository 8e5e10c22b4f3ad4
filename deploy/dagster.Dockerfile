# The web server and the daemon of Dagster; they reach graphs through the code location alone.
#   docker build -f deploy/dagster.Dockerfile -t omnigraph-dagster:0.1.0 .
FROM python:3.11-slim
COPY deploy/locks/dagster.lock /tmp/dagster.lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/dagster.lock
RUN useradd --uid 10001 --create-home omnigraph
RUN install -d -o omnigraph /var/lib/dagster
COPY deploy/dagster/dagster.yaml deploy/dagster/workspace.yaml /opt/dagster/
ENV DAGSTER_HOME=/opt/dagster
WORKDIR /opt/dagster
USER 10001
EXPOSE 3000
CMD ["dagster-webserver", "--host", "0.0.0.0", "--port", "3000", "--workspace", "/opt/dagster/workspace.yaml"]
