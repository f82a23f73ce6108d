"""The deployment holds together: compose.yaml, the image, the users and the guide, without an engine."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from jsonschema import Draft202012Validator

from executor.settings import Timings
from scoreline.cli.main import app
from scoreline.cli.secret_files import SUFFIX, names_secret_file
from scoreline.settings import PREFIX, Settings, load_settings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "compose.yaml"
TEXT = COMPOSE.read_text(encoding="utf-8")
PLAN: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = PLAN["services"]
OURS = {name: each for name, each in SERVICES.items() if "build" in each}
SCALED = ("coordinator", "executor", "storage-worker")
PASSING = ("migrate", "cli")
"""Services that end by themselves."""
MADE = ("./deploy/secrets/", "./deploy/project")
"""What is made on the machine: secrets by a script, the project by the submitting user."""
DASHBOARDS = "./grafana/"
"""The folder of dashboards and rules, which may not be there yet."""
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
NAMESPACE_CALLS = {
    "clone",
    "clone3",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "sethostname",
}
NEVER = {"bpf", "kexec_load", "init_module", "finit_module", "ptrace", "keyctl", "io_uring_setup", "reboot"}
SCRIPTS = {
    "executor": ("eventlog", "taskqueue", "executor/lanes"),
    "storage": ("eventlog", "storage_worker"),
    "coordinator": ("eventlog", "taskqueue"),
}
"""Whose Lua each user runs."""


def default(text: str) -> str:
    """Put in what compose puts in where nothing is set."""
    return VARIABLE.sub(lambda found: found[2] or "", text)


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


def mounts(service: dict[str, Any]) -> Iterator[str]:
    """List what a service has mounted from this folder."""
    sources = (default(volume).partition(":")[0] for volume in service.get("volumes", ()))
    yield from (source for source in sources if source.startswith("./"))


def test_the_plan_is_a_compose_file_of_the_kind_we_write():
    """Every key is one that Compose knows, in the form that is used here; see the comment in the schema."""
    schema = json.loads(Path(__file__).with_name("compose.schema.json").read_text(encoding="utf-8"))
    errors = Draft202012Validator(schema).iter_errors(PLAN)
    assert [f"{'.'.join(map(str, each.path))}: {each.message}" for each in errors] == []


def test_what_a_service_names_is_there():
    """Networks, volumes, secrets, and the services it waits for."""
    for name, service in SERVICES.items():
        assert set(service["networks"]) <= set(PLAN["networks"]), name
        assert set(service.get("secrets", ())) <= set(PLAN["secrets"]), name
        assert set(service.get("depends_on", ())) <= set(SERVICES), name
        kept = {default(each).partition(":")[0] for each in service.get("volumes", ())}
        assert {each for each in kept if not each.startswith("./")} <= set(PLAN["volumes"]), name
    asked = {secret for service in SERVICES.values() for secret in service.get("secrets", ())}
    assert set(PLAN["secrets"]) == asked


def test_every_file_that_is_named_exists():
    """But for secrets, which are made, and dashboards, which have a folder of their own."""
    named = {source for service in SERVICES.values() for source in mounts(service)}
    options = [option for service in SERVICES.values() for option in service["security_opt"]]
    named |= {f"./{each.partition('=')[2]}" for each in options if each.startswith("seccomp=")}
    wanted = {each for each in named if not each.startswith((*MADE, DASHBOARDS))}
    assert {each for each in wanted if not (ROOT / each).exists()} == set()
    if (ROOT / DASHBOARDS).is_dir():
        missing = {each for each in named if each.startswith(DASHBOARDS) and not (ROOT / each).exists()}
        assert missing == set()


def test_the_script_makes_every_secret_and_keeps_it(tmp_path):
    """Run twice it changes nothing, and only the owner can open its folder."""
    environ = {**os.environ, "SECRETS": str(tmp_path / "secrets")}
    seen = []
    for _ in range(2):
        subprocess.run([ROOT / "deploy" / "secrets.sh"], env=environ, check=True, capture_output=True)
        made = {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir() if file.is_file()}
        seen.append(made)
    assert seen[0] == seen[1]
    assert {Path(each["file"]).name for each in PLAN["secrets"].values()} <= set(made)
    assert all(made.values())
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert "{password}" not in made["redis_users"]


def test_what_watches_the_fleet_is_wired_to_it():
    """Prometheus asks services that exist, has its rules where it looks, and keeps who spoke."""
    plan = yaml.safe_load((ROOT / "grafana/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"]: job for job in plan["scrape_configs"]}
    groups = [*plan["alerting"]["alertmanagers"], *jobs.values()]
    asked = {target for group in groups for each in group["static_configs"] for target in each["targets"]}
    assert {target.partition(":")[0] for target in asked} - {"127.0.0.1"} <= set(SERVICES)
    mounted = {volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]}
    assert set(plan["rule_files"]) <= mounted
    collector = yaml.safe_load((ROOT / "deploy/otel/collector.yaml").read_text(encoding="utf-8"))
    port = collector["exporters"]["prometheus"]["endpoint"].partition(":")[2]
    assert jobs["otel-collector"]["static_configs"] == [{"targets": [f"otel-collector:{port}"]}]
    assert jobs["otel-collector"]["honor_labels"] is True


def test_secrets_of_alerts_are_files_in_a_folder_that_is_mounted():
    """They may be missing, so the folder is mounted and not the files; the script names both."""
    text = (ROOT / "grafana/prometheus/alertmanager.yml").read_text(encoding="utf-8")
    files = {Path(found) for found in re.findall(r"_file: (\S+)", text)}
    assert len(files) == 2
    folders = dict(volume.split(":")[1::-1] for volume in SERVICES["alertmanager"]["volumes"])
    assert {folders[str(file.parent)] for file in files} == {"./deploy/secrets/alerts"}
    script = (ROOT / "deploy" / "secrets.sh").read_text(encoding="utf-8")
    assert [file.name for file in files if f"alerts/{file.name}" not in script] == []


def parse(words: list[str]) -> None:
    """Have a command line read as ours, without running it."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words[0]]
        words = words[1:]
    with command.make_context(command.name, list(words)):
        pass


@pytest.mark.parametrize("name", [name for name in OURS if name != "cli"])
def test_every_command_is_one_of_ours(name):
    """What a service is started and checked with has commands and flags that exist."""
    parse(OURS[name]["command"])
    test = OURS[name].get("healthcheck", {}).get("test", ["", ""])
    if test[1] == "scoreline":
        parse(test[2:])


@pytest.mark.parametrize("name", OURS)
def test_every_setting_is_one_of_ours(name):
    """With nothing set, the environment of a service makes settings; secrets come from files."""
    environ = {key: default(value) for key, value in OURS[name]["environment"].items()}
    files = {key: value for key, value in environ.items() if names_secret_file(key)}
    mounted = {f"/run/secrets/{secret}" for secret in OURS[name]["secrets"]}
    assert {value for value in files.values() if value} == mounted
    known = {PREFIX + field.upper() for field in Settings.model_fields}
    assert {key.removesuffix(SUFFIX) for key in environ if key.startswith(PREFIX)} <= known
    load_settings({key: value for key, value in environ.items() if key not in files})


def test_services_that_stay_are_restarted_and_checked():
    """Only what ends by itself, and an image with nothing to ask with, goes without a check."""
    for name, service in SERVICES.items():
        assert service["restart"] == ("no" if name in PASSING else "always"), name
        checked = service.get("healthcheck", {"disable": True})
        assert ("test" in checked) is (name not in {*PASSING, "otel-collector"}), name


@pytest.mark.parametrize("name", SCALED)
def test_what_is_scaled_has_no_name_and_no_port_of_its_own(name):
    """`docker compose up --scale executor=8` has nothing to fight over."""
    assert {"container_name", "ports", "hostname"} & SERVICES[name].keys() == set()
    assert SERVICES[name]["deploy"]["replicas"] >= 2
    assert not [word for word in SERVICES[name]["command"] if word in {"--id", "--name"}]


def test_an_executor_has_no_way_to_the_database():
    """Neither a network nor a secret; and the servers' networks lead nowhere else."""
    executor = SERVICES["executor"]
    assert set(executor["networks"]) & set(SERVICES["postgres"]["networks"]) == set()
    assert [secret for secret in executor["secrets"] if "postgres" in secret] == []
    for server in ("redis", "postgres"):
        assert all(PLAN["networks"][each]["internal"] for each in SERVICES[server]["networks"])
        assert "ports" not in SERVICES[server]


def test_an_executor_is_given_longer_to_stop_than_it_takes():
    """Its drain and its last words fit into the grace."""
    service = SERVICES["executor"]
    drain = float(default(service["environment"]["EVAL_WORKER_DRAIN"]))
    assert drain == Settings().worker_drain
    assert seconds(service["stop_grace_period"]) > drain + Timings().shutdown_grace.total_seconds()


def test_only_executors_are_less_confined_than_the_rest():
    """And only by what the sandbox needs."""
    usual = ["no-new-privileges:true"]
    odd = {name: each["security_opt"] for name, each in SERVICES.items() if each["security_opt"] != usual}
    more = ["seccomp=deploy/seccomp.json", "apparmor=unconfined", "systempaths=unconfined"]
    assert odd == {"executor": usual + more}


def test_the_seccomp_profile_allows_namespaces_and_little_else():
    """All that bubblewrap needs is there, nothing that leads out, and whatever is not named is refused."""
    profile = json.loads((ROOT / "deploy" / "seccomp.json").read_text(encoding="utf-8"))
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    rules = profile["syscalls"]
    assert {rule["action"] for rule in rules} == {"SCMP_ACT_ALLOW"}
    allowed = [name for rule in rules for name in rule["names"] if "args" not in rule]
    assert len(allowed) == len(set(allowed))
    assert set(allowed) >= NAMESPACE_CALLS
    assert set(allowed) & NEVER == set()
    assert {rule["args"][0]["value"] for rule in rules if rule["names"] == ["socket"]} == {1, 2, 10, 16}


@pytest.mark.parametrize("user", SCRIPTS)
def test_a_user_may_call_what_its_scripts_call(user):
    """A command that a script begins to use is granted, or this goes red before a fleet does."""
    rules = (ROOT / "deploy" / "redis" / "users.acl").read_text(encoding="utf-8")
    [own] = re.findall(rf"^user {user} on (.*?)(?=^user |^#|\Z)", rules, re.DOTALL | re.MULTILINE)
    granted = set(re.findall(r"\+([a-z]+(?:\|[a-z]+)?)", own))
    scripts = [script for room in SCRIPTS[user] for script in (ROOT / room).glob("*.lua")]
    called = re.compile(r"redis\.p?call\('(\w+)'(?:, '([A-Z]+)')?")
    used = {words for script in scripts for words in called.findall(script.read_text(encoding="utf-8"))}
    wanted = {
        f"{name}|{sub}".lower() if name in {"XINFO", "XGROUP"} else name.lower() for name, sub in used
    }
    assert wanted
    assert wanted - granted == (set() if user != "storage" else wanted - granted - {"xadd"})


def test_the_image_has_all_that_it_is_built_from():
    """What is copied is let through, every package is in it, and it does not run as root."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    through = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    assert all((ROOT / each).exists() for each in through)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {*wheel, "pyproject.toml", "README.md", "LICENSE", "requirements/deploy.txt"} <= through
    assert "--require-hashes -r /src/requirements/deploy.txt" in dockerfile
    assert 'ENTRYPOINT ["scoreline"]' in dockerfile
    [uid] = re.findall(r"^USER (\S+)$", dockerfile, re.MULTILINE)
    assert {service["user"] for service in OURS.values()} == {uid}
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    assert "latest" not in dockerfile + TEXT


def test_the_image_has_the_versions_that_are_tested():
    """The lock of the image and the lock of the tests agree, wherever both have a package."""
    pinned = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
    image, tested = (
        dict(pinned.findall((ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")))
        for name in ("deploy", "dev")
    )
    assert {"anthropic", "openai", "redis", "psycopg"} <= image.keys()
    assert {name: version for name, version in image.items() if tested.get(name, version) != version} == {}


# The guide.

GUIDE = ROOT / "docs" / "how-to" / "deploy.md"


def test_the_guide_names_every_service_and_every_variable():
    """Each is explained in the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    assert [name for name in SERVICES if f"`{name}`" not in text] == []
    variables = {found[1] for found in VARIABLE.finditer(TEXT)}
    assert [name for name in sorted(variables) if f"`{name}`" not in text] == []


def test_the_guide_lists_what_was_not_run():
    """No engine was at hand: the guide must not sound as if one had been."""
    text = GUIDE.read_text(encoding="utf-8")
    assert "## What was not run" in text


def test_every_command_of_ours_in_the_guide_exists():
    """Also those that are run through compose."""
    text = GUIDE.read_text(encoding="utf-8")
    lines = re.findall(
        r"^(?:docker compose run --rm \w+|(?:\w+=\S+ )*scoreline) ([a-z].*)$", text, re.MULTILINE
    )
    assert lines
    for line in lines:
        parse(shlex.split(line.partition(" #")[0]))
