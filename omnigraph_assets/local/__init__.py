"""The whole platform on this machine with one command: `make up`, `make down`, `make demo-reset`.

It starts Dagster and the HTTP server as processes of their own, brings the example through them as
a user would, and ends every one of them. It talks to them as anybody does: over HTTP.
"""
