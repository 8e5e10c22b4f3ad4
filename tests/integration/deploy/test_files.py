"""What is below deploy/ agrees with itself and the code, as far as that shows without Docker."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import typer
import yaml

from omnigraph_core.server.main import cli as server_cli
from omnigraph_core.server.settings import SERVER_SETTINGS
from omnigraph_core.settings import SETTINGS
from omnigraph_core.spark.settings import SPARK_SETTINGS
from tests.support.cases import each
from tests.support.later import Later

if TYPE_CHECKING:
    import dagster as dg
    import dagster._config as dagster_config
    import dagster_k8s.job as pod_jobs
    import dagster_k8s.launcher as pods
    import dagster_postgres.utils as databases
    import sqlalchemy

    from omnigraph_assets.jobs import refresh
else:
    dg, dagster_config = Later("dagster"), Later("dagster._config")
    pod_jobs, pods = Later("dagster_k8s.job"), Later("dagster_k8s.launcher")
    databases, sqlalchemy = Later("dagster_postgres.utils"), Later("sqlalchemy")
    refresh = Later("omnigraph_assets.jobs.refresh")

ROOT = Path(__file__).parent.parent.parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("*.Dockerfile"))
YAMLS = sorted(DEPLOY.rglob("*.yaml"))
SCRIPTS = sorted(DEPLOY.rglob("*.sh"))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
FILES = ("OMNIGRAPH_PLATFORM_GRAPH", "OMNIGRAPH_PLATFORM_DROPS")
"""What a load reads and writes: in the code location, in its runs, and in tasks of Spark."""
OF_OTHERS = {"DAGSTER_HOME", "PYTHONPATH", "POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"}
INSTRUCTIONS = {
    "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "VOLUME", "CMD",
}  # fmt: skip


@cache
def commands() -> dict[str, Any]:
    return {
        "dagster": Later("dagster._cli").cli,
        "dagster-daemon": Later("dagster._daemon.cli").cli,
        "dagster-webserver": Later("dagster_webserver.cli").cli,
        "omnigraph-server": typer.main.get_command(server_cli),
    }


def name_of(path: Path) -> str:
    return str(path.relative_to(DEPLOY))


@cache
def instructions(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    found = [tuple(line.split(maxsplit=1)) for line in lines]
    assert {name for name, _ in found} <= INSTRUCTIONS
    return found  # type: ignore[return-value]


def last(path: Path, instruction: str) -> str:
    return [rest for name, rest in instructions(path) if name == instruction][-1]


@cache
def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def compose() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = documents("compose.yaml")[0]["services"]
    return services


@cache
def known_variables() -> set[str]:
    """Ours, those of the platform's definitions, of dagster.yaml and of the scripts."""
    settings = {item.name for item in (*SETTINGS, *SERVER_SETTINGS, *SPARK_SETTINGS)}
    definitions = ROOT / "omnigraph_assets" / "defs" / "graph" / "defs.yaml"
    platform = set(re.findall(r"env\('(\w+)'", definitions.read_text()))
    dagster = set(re.findall(r"{env: (\w+)}", (DEPLOY / "dagster" / "dagster.yaml").read_text()))
    store = set(re.findall(r"STORE_\w+", (DEPLOY / "store.sh").read_text()))
    spark = set(re.findall(r"SPARK_(?:CONNECT|UI)_\w+", (DEPLOY / "spark-connect.sh").read_text()))
    return settings | platform | dagster | store | spark | OF_OTHERS


def check_command(words: list[str]) -> None:
    """A command of ours or of Dagster whose options it takes, or a script of ours."""
    if words[0].endswith(".sh"):
        script = DEPLOY / Path(words[0]).name
        assert script.stat().st_mode & 0o111, "is not executable"
        return
    command, name, rest = commands()[words[0]], words[0], words[1:]
    assert any(name == point.name for point in entry_points()), f"no command {name}"
    while hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_parser(typer.Context(command)).parse_args(list(rest))


@cache
def entry_points() -> list[Any]:
    names = ("omnigraph", "dagster", "dagster-webserver")
    return [point for name in names for point in distribution(name).entry_points]


@each("path", DOCKERFILES, ids=name_of)
def test_dockerfile(path: Path) -> None:
    for name, rest in instructions(path):
        if name == "FROM":
            assert rest.split()[0] == "python:3.11-slim"
        elif name == "COPY" and not rest.startswith("--from=build "):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
        elif name == "ENV":
            assert rest.split("=")[0] in known_variables()
        elif name == "RUN" and rest.startswith("pip install"):
            assert "--require-hashes" in rest or "--no-index" in rest
        elif name == "RUN" and "wheel" in rest:
            assert "--no-build-isolation" in rest, "would fetch what no lock names"
    assert last(path, "USER") == "10001"
    wheels = re.findall(r"omnigraph-([\d.]+)-py3", path.read_text())
    assert set(wheels) <= {VERSION}
    check_command(json.loads(last(path, "CMD")))


def test_context_holds_what_is_copied() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    for path in DOCKERFILES:
        for name, rest in instructions(path):
            if name == "COPY" and not rest.startswith("--from=build "):
                for source in rest.split()[:-1]:
                    assert any(source == item or source.startswith(f"{item}/") for item in kept)


@each("lock", sorted((DEPLOY / "locks").glob("*.lock")), ids=name_of)
def test_locks_pin_what_is_tested(lock: Path) -> None:
    """Every version and every hash is that of requirements.lock, except what only images have."""
    tested = pins(ROOT / "requirements.lock")
    only_here = {"dagster-postgres", "psycopg2-binary", "uv-build"}
    found = pins(lock)
    assert found
    assert all(hashes for hashes in found.values())
    others = {pin: hashes for pin, hashes in found.items() if pin.split("==")[0] not in only_here}
    assert {pin: tested.get(pin) for pin in others} == others


def pins(lock: Path) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    pin = ""
    for line in lock.read_text().splitlines():
        if match := re.match(r"([\w.-]+)(\[[\w,-]+\])?(==[^ ;]+)", line):
            pin = match[1] + match[3]
            found.setdefault(pin, set())
        found[pin].update(re.findall(r"--hash=(\S+)", line))
    return {pin: frozenset(hashes) for pin, hashes in found.items()}


@each("path", YAMLS, ids=name_of)
def test_yaml(path: Path) -> None:
    """It parses, and every image has a tag that stays what it is."""
    assert all(document for document in documents(name_of(path)))
    for image in re.findall(r"^ *-? ?image: ([^{\s]+)$", path.read_text(), re.MULTILINE):
        name, tag = image.split(":")
        assert tag != "latest"
        if name.startswith("omnigraph-"):
            assert tag == VERSION
            assert (DEPLOY / f"{name.removeprefix('omnigraph-')}.Dockerfile").exists()


@each("name", sorted(compose()))
def test_service(name: str) -> None:
    service = compose()[name]
    assert set(service.get("environment", {})) <= known_variables()
    for other in service.get("depends_on", []):
        assert other in compose()
    for volume in service.get("volumes", []):
        assert volume.split(":")[0] in documents("compose.yaml")[0]["volumes"]
    if "command" in service:
        check_command(service["command"])
    if "build" in service:
        assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).exists()
    image = service["image"].split(":")[0].removeprefix("omnigraph-")
    for port in service.get("ports", []):
        address, _, inside = port.split(":")
        assert address == "127.0.0.1"
        assert inside == last(DEPLOY / f"{image}.Dockerfile", "EXPOSE")


def test_services_find_each_other() -> None:
    """Host names in addresses are services, with the ports that their images listen on."""
    text = (DEPLOY / "compose.yaml").read_text()
    addresses = re.findall(r"(?:http|sc)://([a-z-]+):(\d+)", text)
    (location,) = documents("dagster/workspace.yaml")[0]["load_from"]
    server = location["grpc_server"]
    for host, port in [*addresses, (server["host"], str(server["port"]))]:
        assert port == last(DEPLOY / f"{host}.Dockerfile", "EXPOSE")
        assert host in compose()
    example = (DEPLOY / "environment.example").read_text()
    secrets = set(re.findall(r"\${(\w+):\?}", text))
    assert secrets == set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def instance_of_chart(values: dict[str, Any]) -> dict[str, Any]:
    """What Dagster's chart writes into dagster.yaml, as far as queue and pools go."""
    queue = values["dagsterDaemon"]["runCoordinator"]
    config = queue["config"]["queuedRunCoordinator"]
    coordinator = {
        "module": "dagster.core.run_coordinator",
        "class": queue["type"],
        "config": {re.sub("[A-Z]", r"_\g<0>", name).lower(): it for name, it in config.items()},
    }
    return {"run_coordinator": coordinator, **values["additionalInstanceConfig"]}


def instances() -> dict[str, dict[str, Any]]:
    """The settings of each instance by the file they are from."""
    chart, compose = "kubernetes/dagster-values.yaml", "dagster/dagster.yaml"
    return {
        "dagster.yaml": yaml.safe_load((ROOT / "dagster.yaml").read_text()),
        compose: dict(documents(compose)[0]),
        chart: instance_of_chart(documents(chart)[0]),
    }


def test_instances_differ_in_where_things_are() -> None:
    """One machine or many: queues, retries and retention are the same.

    Only where all is on one machine there is a process to fork runs from.
    """
    places = {"storage", "local_artifact_storage", "compute_logs", "defs_state_storage"}
    one = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    (many,) = documents("dagster/dagster.yaml")
    del one["run_launcher"]
    assert one.keys() == many.keys()
    assert {k: v for k, v in one.items() if k not in places} == {
        k: v for k, v in many.items() if k not in places
    }
    (values,) = documents("kubernetes/dagster-values.yaml")
    pods = instance_of_chart(values)
    assert pods["run_coordinator"]["config"] == one["run_coordinator"]["config"]
    for name in ("retention", "concurrency"):
        assert pods[name] == one[name]
    pin = f"dagster=={values['dagsterDaemon']['image']['tag']}"
    assert pin in pins(ROOT / "requirements.lock")


def test_the_driver_of_postgres_is_installed() -> None:
    """SQLAlchemy would choose one by itself, and not the one that comes with Dagster."""
    (instance,) = documents("dagster/dagster.yaml")
    given = instance["storage"]["postgres"]["postgres_db"]
    known = {key: value if key in ("port", "scheme") else "any" for key, value in given.items()}
    engine = sqlalchemy.create_engine(databases.pg_url_from_config({"postgres_db": known}))
    assert engine.dialect.driver == "psycopg2"
    (values,) = documents("kubernetes/dagster-values.yaml")
    assert values["postgresql"]["postgresqlScheme"] == given["scheme"]
    for name in ("dagster", "platform"):
        lock = (DEPLOY / "locks" / f"{name}.lock").read_text()
        assert "psycopg2-binary==" in lock


def test_manifests() -> None:
    (listed,) = documents("kubernetes/kustomization.yaml")
    (settings,) = documents("kubernetes/settings.yaml")
    (secret,) = documents("kubernetes/secret.example.yaml")
    assert set(settings["data"]) | set(secret["stringData"]) <= known_variables()
    items = [item for name in listed["resources"] for item in documents(f"kubernetes/{name}")]
    by_kind = {(item["kind"], item["metadata"]["name"]): item for item in items}
    for name in ("server", "spark"):
        pod = by_kind["Deployment", name]["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        (port,) = container["ports"]
        service = by_kind["Service", name]["spec"]
        assert pod["spec"]["securityContext"]["runAsUser"] == 10001
        assert str(port["containerPort"]) == last(DEPLOY / f"{name}.Dockerfile", "EXPOSE")
        assert (service["selector"], service["ports"][0]["targetPort"]) == (
            pod["metadata"]["labels"],
            port["name"],
        )
        sources = [next(iter(source.values()))["name"] for source in container["envFrom"]]
        assert sources == [settings["metadata"]["name"], secret["metadata"]["name"]]
    (values,) = documents("kubernetes/dagster-values.yaml")
    (location,) = values["dagster-user-deployments"]["deployments"]
    check_command(["dagster", "code-server", "start", *location["codeServerArgs"]])
    assert str(location["port"]) == last(DEPLOY / "code-location.Dockerfile", "EXPOSE")
    (listed_location,) = documents("dagster/workspace.yaml")[0]["load_from"]
    assert location["name"] == listed_location["grpc_server"]["location_name"] == refresh.LOCATION
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    allowed = by_kind["NetworkPolicy", "spark"]["spec"]["ingress"][0]["from"]
    assert [item["podSelector"]["matchLabels"] for item in allowed] == [
        {"deployment": location["name"]},
        launcher["labels"],
    ]


def test_runs_are_pods_like_the_code_location() -> None:
    (values,) = documents("kubernetes/dagster-values.yaml")
    (location,) = values["dagster-user-deployments"]["deployments"]
    assert values["runLauncher"]["type"] == "K8sRunLauncher"
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    for name in ("image", "envConfigMaps", "envSecrets", "volumes", "volumeMounts"):
        assert launcher[name] == location[name], name
    assert launcher["imagePullPolicy"] == location["image"]["pullPolicy"]
    pod = launcher["runK8sConfig"]["podSpecConfig"]
    assert pod["securityContext"] == location["podSecurityContext"]
    (namespace,) = documents("kubernetes/namespace.yaml")
    assert launcher["jobNamespace"] == namespace["metadata"]["name"]
    # Else volumes and variables would be given twice.
    assert location["includeConfigInLaunchedRuns"] == {"enabled": False}


def test_the_launcher_of_pods_takes_its_section() -> None:
    """The chart is not here: what it writes of the section into dagster.yaml is written here."""
    (values,) = documents("kubernetes/dagster-values.yaml")
    section = values["runLauncher"]["config"]["k8sRunLauncher"]
    written = {snake_case(name): value for name, value in section.items()}
    image = written.pop("image")
    written |= {
        "job_image": f"{image['repository']}:{image['tag']}",
        "env_config_maps": [one["name"] for one in section["envConfigMaps"]],
        "env_secrets": [one["name"] for one in section["envSecrets"]],
        "run_k8s_config": {snake_case(k): v for k, v in section["runK8sConfig"].items()},
        "service_account_name": "dagster",
        "dagster_home": "/opt/dagster/dagster_home",
        "instance_config_map": "dagster-instance",
        "postgres_password_secret": values["global"]["postgresqlSecretName"],
    }
    checked = dagster_config.process_config(pods.K8sRunLauncher.config_type(), written)
    assert checked.success, checked.errors
    # These are checked when a pod is made: fields of pods and jobs, in the words of Kubernetes.
    config = pod_jobs.UserDefinedDagsterK8sConfig.from_dict(written["run_k8s_config"])
    assert config.job_spec_config == {"ttl_seconds_after_finished": 3600}
    assert config.pod_spec_config["security_context"]["run_as_user"] == 10001


def snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def test_the_image_of_runs_has_their_launcher() -> None:
    (values,) = documents("kubernetes/dagster-values.yaml")
    module = pods.K8sRunLauncher.__module__.partition(".")[0]
    assert values["runLauncher"]["type"] == pods.K8sRunLauncher.__name__
    lock = pins(DEPLOY / "locks" / "platform.lock")
    assert [pin for pin in lock if pin.startswith(f"{module.replace('_', '-')}==")]
    assert "platform.lock" in (DEPLOY / "code-location.Dockerfile").read_text()


def test_files_of_a_load_lie_where_all_its_processes_see_them() -> None:
    """Tasks of Spark read what was dropped: a folder of another container is empty to them."""
    services = compose()
    location = services["code-location"]
    spark = services[host_of(location["environment"]["OMNIGRAPH_SPARK_REMOTE"])]
    given = [
        [volume.split(":") for volume in service.get("volumes", ())]
        for service in (location, spark)
    ]
    mounts = [{path: volume for volume, path, *_ in one} for one in given]
    check_places({name: location["environment"][name] for name in FILES}, mounts)


def test_files_of_a_load_lie_where_all_its_pods_see_them() -> None:
    (values,) = documents("kubernetes/dagster-values.yaml")
    (settings,) = documents("kubernetes/settings.yaml")
    (location,) = values["dagster-user-deployments"]["deployments"]
    (spark,) = (one for one in documents("kubernetes/spark.yaml") if one["kind"] == "Deployment")
    assert host_of(settings["data"]["OMNIGRAPH_SPARK_REMOTE"]) == "spark.omnigraph"
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    (container,) = spark["spec"]["template"]["spec"]["containers"]
    mounts = [
        {mount["mountPath"]: mount["name"] for mount in one.get("volumeMounts", ())}
        for one in (location, launcher, container)
    ]
    check_places({name: settings["data"][name] for name in FILES}, mounts)


def host_of(address: str) -> str:
    return str(urlsplit(address).hostname)


def check_places(places: dict[str, str], mounts: list[dict[str, str]]) -> None:
    """Each place is in a bucket, or in a volume that every process has at the same path."""
    for name, place in places.items():
        if "://" not in place:
            volumes = {volume_of(place, one) for one in mounts}
            assert len(volumes - {None}) == len(volumes) == 1, (name, place, volumes)


def volume_of(place: str, mounts: dict[str, str]) -> str | None:
    found = [volume for path, volume in mounts.items() if Path(place).is_relative_to(path)]
    return found[0] if found else None


@pytest.mark.parametrize("path", instances())
def test_instance_limits_runs_and_pools(path: str, tmp_path: Path) -> None:
    """Dagster reads the interval, the limits of the queue and the pools as they are meant."""
    settings = instances()[path]
    for name in ("storage", "local_artifact_storage", "compute_logs", "defs_state_storage"):
        settings.pop(name, None)
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        coordinator: Any = instance.run_coordinator
        found: Any = instance.get_concurrency_config()
    assert coordinator.dequeue_interval_seconds == 1
    assert found.run_queue_config.max_concurrent_runs == 4
    (limit,) = found.run_queue_config.tag_concurrency_limits
    assert limit["key"] == "dagster/partition"
    assert found.pool_config.pool_granularity.value == "op"
    assert found.pool_config.default_pool_limit == 1


def test_unit() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    text = (DEPLOY / "systemd" / "omnigraph-server.service").read_text()
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(text)
    words = shlex.split(unit["Service"]["ExecStart"])
    check_command([Path(words[0]).name, *words[1:]])
    assert set(re.findall(r"^Environment=(\w+)=", text, re.MULTILINE)) <= known_variables()
    (stop,) = [item for item in SERVER_SETTINGS if item.name == "OMNIGRAPH_SHUTDOWN_TIMEOUT"]
    assert float(unit["Service"]["TimeoutStopSec"]) > stop.default


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_script(path: Path) -> None:
    assert path.read_text().startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail\n" in path.read_text()
    subprocess.run(["bash", "-n", path], check=True)


def test_spark_starts_with_the_java_and_python_of_the_image() -> None:
    """As far as its version: the Connect server itself is started by the tests of Spark."""
    done = subprocess.run(
        [DEPLOY / "spark-connect.sh", "--version"],
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    pin = next(p for p in pins(DEPLOY / "locks" / "platform.lock") if p.startswith("pyspark=="))
    assert f"version {pin.split('==')[1]}" in done.stderr
