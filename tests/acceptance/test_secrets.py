"""Secrets, as an attacker would look for them: in everything that is stored, logged, shown and exported."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from eventlog.redaction import Redactor
from tests.acceptance.batch_commands import Folder
from tests.acceptance.echoing_server import echoing_server, forms
from tests.extras import require
from tests.provider import provider
from tests.waiting import until

require("anthropic")
pytestmark = pytest.mark.timeout(300)

SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-Q7/a+b_c0123456789=zz",
    "SERVICE_HANDLE": "hd-9/Yk+w_7TqLm5vXs=",  # known only because a header names it
    "FEED_API_KEY": "fd-4/Zp+e_2RnBc8uWj=",
    "TOOL_PASSWORD": "tl-6/Vd+g_3MhKx1oQr=",
}
EVALUATIONS = 12
LEAKS = """
import os, sys
from pathlib import Path

FORMS = Path(__file__).with_name("forms.txt").read_text()

def leak(prompt):
    print(FORMS, flush=True)
    print(FORMS, file=sys.stderr, flush=True)
    if "fail" in prompt:
        raise ValueError("x" * 3_950 + os.environ["TOOL_PASSWORD"] + FORMS)
    return FORMS

def judge(output):
    with Path(__file__).with_name("judged").open("a") as judged:
        judged.write(output)
    return {"score": 1.0, "passed": True, "reason": FORMS}
"""
SPEC = """
name: leaks
dataset: cases.jsonl
retries: 0
targets:
  - {{type: python, function: "leaks:leak", label: function}}
  - type: http
    label: http
    url: "{server}/answer?key=$FEED_API_KEY"
    headers: {{X-Service: "Token $SERVICE_HANDLE"}}
  - {{type: http, url: "{server}/answer?key=$FEED_API_KEY", output: nowhere, label: no output}}
  - {{type: anthropic, model: claude-sonnet-4-5, base_url: "{server}", label: model}}
  - {{type: command, command: cat forms.txt, files: {{forms.txt: forms.txt}}, label: command}}
  - type: command
    label: failing
    command: ["sh", "-c", "cat forms.txt >&2; exit 3"]
    files: {{forms.txt: forms.txt}}
evaluators:
  - {{type: python, function: "leaks:judge"}}
  - {{type: contains, value: nothing like this}}
"""


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Have files created with this mask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def tables(url: str) -> Iterator[bytes]:
    """Dump every table of the database."""
    names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    with psycopg.connect(url) as conn:
        for (name,) in conn.execute(names.encode()).fetchall():
            with conn.cursor().copy(
                sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.Identifier(name))
            ) as rows:
                yield b"".join(rows)


def leaks(found: bytes) -> list[str]:
    """Name the secrets of which some form, or a beginning that a cut has left, is there."""
    text = found.decode(errors="replace")
    plain = text.replace("\\\\", "\\").replace("\\/", "/")
    return [
        name
        for name, secret in SECRETS.items()
        if any(form in each for form in Redactor(frozenset({secret}))._texts for each in (text, plain))
        or secret[:10] in plain
        or Redactor(frozenset({secret})).redact(text) != text
    ]


def files(*folders: Path) -> list[Path]:
    """List all files below some folders."""
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]


def open_to_others(*folders: Path) -> list[Path]:
    """List what anybody but the owner may do anything with."""
    found = [path for folder in folders for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    return [path for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077]


async def test_nothing_of_a_secret_is_stored_logged_shown_or_exported(tmp_path: Path) -> None:
    """Targets, providers, functions and programs repeat secrets in every encoding, and fail with them."""
    folder, spans = Folder(tmp_path), tmp_path / "spans"
    folder.write("leaks.py", LEAKS)
    folder.write("forms.txt", "\n".join(map(forms, SECRETS.values())))
    folder.write("cases.jsonl", '{"input": "fine"}\n{"input": "fail"}\n')
    (folder.root / "forms.txt").chmod(0o644)
    folder.root.chmod(0o755)
    debug = {"EVAL_LOG_LEVEL": "DEBUG", "ANTHROPIC_LOG": "debug", "EVAL_TRACE_DIR": str(spans)}
    folder.environ |= {**SECRETS, **debug}
    outputs = [word for end in ("jsonl", "csv", "xml") for word in ("--output", f"out.{end}")]
    with echoing_server() as server, umask(0):
        folder.write("scoreline.yaml", SPEC.format(server=server))
        ran = await folder.run("batch", "run", "--workers", "1", *outputs)
        async with folder.started("storage-worker", "start"):
            await until(lambda: folder.ended() == EVALUATIONS, 60)
            batch_id, dumped = folder.batch_id(), list(tables(folder.postgres_url))
            dlq = await folder.run("batch", "dlq", batch_id)
            replayed = await folder.run("replay", f"{batch_id}.1")
    await folder.at_rest()
    written = files(folder.data / "logs", folder.data / "servers" / "valkey", spans)
    written += [*folder.data.glob("servers/*.log"), *folder.root.glob("out.*"), folder.root / "judged"]
    assert {path.suffix for path in written} >= {".log", ".aof", ".jsonl", ".csv", ".xml"}
    assert b"".join(dumped).count(b"***") > 100  # it was repeated, and stored without
    assert not {path for path in written if leaks(path.read_bytes())}
    assert not [dump[:100] for dump in dumped if leaks(dump)]
    assert not [each for each in (ran, dlq, replayed) if leaks(f"{each.stdout}{each.stderr}".encode())]
    assert not open_to_others(folder.data, spans)


async def test_data_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """Logs and data are private whatever the umask; a directory of an earlier version is repaired."""
    folder = Folder(tmp_path)
    folder.cases(1)
    run = ("batch", "run", "--workers", "1", "--dataset", "cases.jsonl", "--target", "python:app:echo")
    with umask(0):
        for name in ("logs/old.log", "servers/valkey.log", "servers/valkey/old.aof"):
            left = folder.data / name
            left.parent.mkdir(parents=True, exist_ok=True)
            left.write_text("readable by all")
        assert len(open_to_others(folder.data)) == 7
        assert (await folder.run(*run)).code == 0
    await folder.at_rest()  # servers that stop remove files
    assert not open_to_others(folder.data)


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        ("{type: http, url: 'http://h/?api_key=abc123'}", "api_key=$NAME"),
        ("{type: http, url: 'http://h/', headers: {Cookie: 'session=abc'}}", "Cookie: $COOKIE"),
        ("{type: anthropic, model: m, headers: {Proxy-Authorization: abc}}", "$PROXY_AUTHORIZATION"),
    ],
)
async def test_a_key_that_is_written_out_is_refused(target: str, advice: str, tmp_path: Path) -> None:
    """Nothing is started or stored, the key is not repeated, and the error names what to write instead."""
    folder = Folder(tmp_path)
    folder.cases(1)
    folder.write("scoreline.yaml", f"dataset: cases.jsonl\ntarget: {target}\n")
    ran = await folder.run("batch", "run", "--workers", "1")
    assert ran.code == 1
    assert advice in ran.stderr
    assert "abc" not in ran.stderr
    assert not (folder.data / "servers").exists()


async def test_headers_name_variables_for_provider_batches_too(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """What `$NAME` stands for is sent with the submission of a provider batch, never the name."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(3)
    spec = {"type": "anthropic", "model": "claude-sonnet-4-5", "headers": {"X-Service": "$SERVICE_HANDLE"}}
    async with provider(mode="echo", batch_seconds=0) as sim, recorded(sim.base_url) as (address, sent):
        folder.environ |= {**SECRETS, "ANTHROPIC_BASE_URL": address}
        folder.write(
            "scoreline.yaml", json.dumps({"dataset": "cases.jsonl", "target": spec, "evaluator": "exact"})
        )
        ran = await folder.run("batch", "run", "--workers", "1", "--json", "--batch-api")
        assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["passed"] == 3
    submissions = [head for head in sent if head.startswith(b"POST /v1/messages/batches ")]
    assert [SECRETS["SERVICE_HANDLE"].encode() in head for head in submissions] == [True]
    assert not any(b"$SERVICE_HANDLE" in head for head in sent)


@asynccontextmanager
async def recorded(address: str) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Forward connections to a server, and keep what each request begins with."""
    host, _, port = address.removeprefix("http://").partition(":")
    sent: list[bytes] = []

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        head = await reader.readuntil(b"\r\n\r\n")
        sent.append(head)
        back.write(head)
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", sent
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
