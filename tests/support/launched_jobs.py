"""A code location whose jobs end well, badly or never, for the tests of the run launcher."""

import importlib
import threading

import dagster as dg


@dg.op
def succeed() -> None:
    """Nothing."""


@dg.op
def fail() -> None:
    raise ValueError("as it should")


@dg.op
def wait() -> None:
    threading.Event().wait()


@dg.op(config_schema={"root": str, "socket": str})
def use_engine(context: dg.OpExecutionContext) -> None:
    """Use all that must not have been used before a fork: Lance, obstore and gRPC."""
    from dagster._grpc.client import DagsterGrpcClient

    from omnigraph_core.engine.omnigraph import Omnigraph

    with Omnigraph.init(f"{context.op_config['root']}/{context.run_id}", "node Part {}") as graph:
        graph.branch_create("other")
    assert DagsterGrpcClient(socket=context.op_config["socket"]).ping("here")["echo"] == "here"


@dg.op(config_schema=str)
def read_module(context: dg.OpExecutionContext) -> None:
    """See a module, which the fork server has imported, as it is now."""
    found = importlib.import_module("edited_module").VALUE
    assert found == context.op_config, found


@dg.job
def succeeding() -> None:
    succeed()


@dg.job
def failing() -> None:
    fail()


@dg.job
def waiting() -> None:
    wait()


@dg.job
def engine() -> None:
    use_engine()


@dg.job
def module() -> None:
    read_module()


defs = dg.Definitions(
    jobs=[succeeding, failing, waiting, engine, module], executor=dg.in_process_executor
)
