"""How runs start: forked from a process that has imported everything a run needs.

Start with `launcher`, which Dagster calls; `fork_server` is the warm process, `client` its caller.
"""
