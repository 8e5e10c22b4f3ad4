"""`omnigraph policy …`: check a policy, test it, and see what it decides. No graph is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.formats import display_width
from omnigraph_core.cli.options import JsonOption  # noqa: TC001 - typer reads annotations
from omnigraph_core.cli.output import key_values, print_json, print_lines
from omnigraph_core.cli.target import ConfigOption  # noqa: TC001 - typer reads annotations
from omnigraph_core.config.find import find_config
from omnigraph_core.errors import ConfigError
from omnigraph_core.policy.model import Action, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.policy.authorize import Policy
    from omnigraph_core.policy.cases import Failure
    from omnigraph_core.policy.matrix import MatrixRow
    from omnigraph_core.policy.model import Decision

app = typer.Typer(help="Check, test and explain who may do what.", no_args_is_help=True)

TargetOption = Annotated[
    str | None,
    typer.Option("--target", metavar="NAME", help="The policy of this graph of omnigraph.yaml."),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="This policy, in place of the configured one."),
]
TestsOption = Annotated[
    Path | None,
    typer.Option(
        "--tests",
        metavar="FILE",
        help="These cases, in place of `policy.tests` or the file beside.",
    ),
]
ActorOption = Annotated[
    str, typer.Option("--actor", metavar="ACTOR", help="Who asks.", show_default=False)
]
ActionOption = Annotated[
    str,
    typer.Option(
        "--action", metavar="ACTION", help=f"What for: {', '.join(Action)}.", show_default=False
    ),
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="The branch it is done on.")
]
TargetBranchOption = Annotated[
    str | None,
    typer.Option(
        "--target-branch", "--target_branch", metavar="NAME", help="The branch it is aimed at."
    ),
]
OnlyActorOption = Annotated[
    list[str] | None,
    typer.Option("--actor", metavar="ACTOR", help="Only this actor; may be repeated."),
]
OnlyActionOption = Annotated[
    list[str] | None,
    typer.Option("--action", metavar="ACTION", help="Only this action; may be repeated."),
]
GroupsOption = Annotated[
    bool, typer.Option("--groups", help="A row for each group in place of each actor.")
]

_BESIDE: Final = "policy.tests.yaml"


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The policy a command is about."""

    path: Path
    tests: Path
    policy: Policy


@app.command()
def validate(
    config: ConfigOption = None,
    target: TargetOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a policy file; every problem is told."""
    chosen = _chosen(config, target, policy)
    document = chosen.policy.document
    if as_json:
        print_json(
            {
                "policy": str(chosen.path),
                "actors": len(document.actors),
                "groups": len(document.groups),
                "rules": len(document.rules),
                "warnings": list(document.warnings),
            }
        )
    else:
        print_lines([f"policy valid: {chosen.path} [{len(document.actors)} actors]"])


@app.command("test")
def run_cases(
    config: ConfigOption = None,
    target: TargetOption = None,
    policy: PolicyOption = None,
    tests: TestsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the cases of a policy; leave with 1 if one is answered otherwise than expected."""
    from omnigraph_core.policy.cases import failures, load_cases  # slow: reads YAML

    chosen = _chosen(config, target, policy)
    file = load_cases(tests or chosen.tests)
    _warn(file.warnings)
    failed = failures(chosen.policy, file.cases)
    if as_json:
        print_json({"cases": len(file.cases), "failures": [_failure(item) for item in failed]})
    elif not failed:
        print_lines([f"policy tests passed: {len(file.cases)} cases"])
    else:
        lines = "\n".join(map(str, failed))
        typer.echo(
            f"error: {len(failed)} of {len(file.cases)} policy cases failed\n{lines}", err=True
        )
    if failed:
        raise typer.Exit(1)


@app.command()
def explain(
    actor: ActorOption,
    action: ActionOption,
    branch: BranchOption = None,
    target_branch: TargetBranchOption = None,
    config: ConfigOption = None,
    target: TargetOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what a policy decides, and by which rule. A denial is an answer, not a failure."""
    request = Request(actor, _action(action), branch, target_branch)
    members = _explained(_chosen(config, target, policy).policy.decide(request))
    if as_json:
        print_json(members)
    else:
        print_lines(key_values(members))


@app.command()
def matrix(
    actor: OnlyActorOption = None,
    action: OnlyActionOption = None,
    has_groups: GroupsOption = False,
    config: ConfigOption = None,
    target: TargetOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who may do what, and where: on protected branches, on others, and without a branch.

    A cell names the rule that allows it; `-` is denied, and empty what is never asked for.
    """
    from omnigraph_core.policy.authorize import Policy  # slow: brings Cedar
    from omnigraph_core.policy.matrix import as_groups, decision_matrix

    judge = _chosen(config, target, policy).policy
    if has_groups:
        judge = Policy(as_groups(judge.document), judge.resource)
    actions = [_action(name) for name in action or Action]
    rows = decision_matrix(judge, actor or judge.document.actors, actions)
    if as_json:
        protected = sorted(judge.document.protected_branches)
        print_json({"protected_branches": protected, "rows": [row.to_json() for row in rows]})
    else:
        print_lines(_table(rows, "group" if has_groups else "actor"))


def _chosen(config_path: Path | None, target: str | None, given: Path | None) -> _Chosen:
    """The policy file that was given, else the configured one, loaded and checked.

    Raises:
        ConfigError: there is none, or it is wrong.
    """
    from omnigraph_core.config.addresses import policy_file, resource_id
    from omnigraph_core.policy.authorize import Policy  # slow: brings Cedar
    from omnigraph_core.policy.load import load_policy

    config = find_config(config_path)
    _warn(config.warnings)
    if target is not None and target not in config.graphs:
        known = ", ".join(config.graphs) or "none"
        raise ConfigError(
            f"graph '{target}' not found in omnigraph.yaml", hint=f"graphs there: {known}"
        )
    path = given or policy_file(config, target)
    if path is None:
        raise ConfigError("policy.file is not set in omnigraph.yaml", hint="or give --policy FILE")
    document = load_policy(path)
    _warn(document.warnings)
    is_configured = path == config.policy.file
    tests = (config.policy.tests if is_configured else None) or path.parent / _BESIDE
    return _Chosen(path, tests, Policy(document, resource_id(config)))


def _action(name: str) -> Action:
    """An action as people write it.

    Raises:
        typer.BadParameter: there is none of that name.
    """
    wanted = name.strip().replace("-", "_")
    if wanted not in tuple(Action):
        raise typer.BadParameter(f"no action '{name}', give one of {', '.join(Action)}")
    return Action(wanted)


def _failure(failed: Failure) -> dict[str, object]:
    case = failed.case
    return {"id": case.id, "expected": str(case.expected), "decision": str(failed.answer)}


def _explained(decision: Decision) -> dict[str, object]:
    asked = decision.request
    return {
        "decision": "allow" if decision.is_allowed else "deny",
        "actor": asked.actor,
        "action": str(asked.action),
        "branch": asked.branch,
        "target_branch": asked.target_branch,
        "matched_rule": decision.matched_rule,
        "message": decision.message,
    }


def _table(rows: Iterable[MatrixRow], first: str) -> Iterator[str]:
    lines: list[tuple[str, ...]] = [(first, "action", "protected", "unprotected", "no branch")]
    for row in rows:
        cells = (row.protected, row.unprotected, row.no_branch)
        lines.append((row.actor, str(row.action), *map(_cell, cells)))
    widths = [max(map(display_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (
            cell + " " * (width - display_width(cell))
            for cell, width in zip(line, widths, strict=True)
        )
        yield "  ".join(padded).rstrip()


def _cell(decision: Decision | None) -> str:
    return "" if decision is None else decision.matched_rule or "-"


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
