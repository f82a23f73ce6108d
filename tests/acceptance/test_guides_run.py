"""README and guides, followed to the letter: every command runs, and prints what its page shows.

python -m tests.acceptance.test_guides_run docs/how-to/budgets.md     shows what a page's commands print now
"""

import ast
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from scoreline.local.embedded import embedded_servers
from tests.acceptance.guide_blocks import Block, blocks, pages, steps, typed
from tests.acceptance.guide_scenes import BEFORE, FILES, NOT_RUN, SAVED
from tests.acceptance.guide_session import Differs, Session
from tests.extras import require
from tests.provider import provider

ALL = [block for page in pages() for block in blocks(page)]
FOLLOWED = [page for page in pages() if page in FILES]
ENDPOINT = "https://models.example.com/v1/ask"
require("anthropic")
pytestmark = pytest.mark.timeout(600)


SHELL = re.compile(r"^(\$ .*|scoreline .*|make \w+|export .*|docker compose .*)", re.MULTILINE)


def shows_commands(block: Block) -> bool:
    return block.language in ("console", "sh", "") and SHELL.search(block.text) is not None


def is_run(block: Block) -> bool:
    return shows_commands(block) and not {block.page, block.name} & NOT_RUN.keys()


async def session(root: Path, page: str, redis_url: str, postgres_url: str) -> AsyncIterator[Session]:
    """Lend a reader a folder with the files that a page takes for granted, and a provider."""
    urls = {
        "EVAL_REDIS_URL": redis_url,
        "EVAL_POSTGRES_URL": postgres_url,
        "EVAL_DATA_DIR": str(root / "d"),
    }
    folder = root / "w"
    folder.mkdir()
    for name, text in FILES[page].items():
        (folder / name).write_text(text, encoding="utf-8")
    async with provider(mode="echo") as sim, await asyncio.start_server(_answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        keys = {"ANTHROPIC_API_KEY": "sk-ant-practice", "ANTHROPIC_BASE_URL": sim.base_url}
        yield Session(folder, urls | keys | {"HOME": str(folder)}, {ENDPOINT: url})


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer any request with the same word."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nParis")
    await writer.drain()
    writer.close()


async def follow(reader: Session, page: str) -> AsyncIterator[tuple[Block, Differs]]:
    """Run every command of a page; yields those that print something else than the page shows."""
    for block in blocks(page):
        if block.name in SAVED:
            (reader.root / SAVED[block.name]).write_text(reader.here(block.text), encoding="utf-8")
        if not is_run(block):
            continue
        for command in BEFORE.get(block.name, ()):
            await reader.prepare(command, block.text)
        for step in steps(block.text) if block.language == "console" else typed(block.text):
            try:
                await reader.follow(step)
            except Differs as found:
                yield block, found


@pytest.mark.parametrize("page", FOLLOWED)
async def test_every_command_of_a_page_prints_what_the_page_shows(
    page: str, tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """With times, ids, rates and money set aside; `…` stands for what a page leaves out."""
    differing = []
    async for reader in session(tmp_path, page, redis_url, postgres_url):
        differing = [f"{block.page}:{block.line}\n{found}" async for block, found in follow(reader, page)]
    assert not differing, "\n\n".join(differing)


def test_what_is_not_run_is_there_and_has_a_reason() -> None:
    """Exceptions name blocks with commands, or whole pages of them; every other such block is run."""
    shells = [block for block in ALL if shows_commands(block)]
    names = {name for block in shells for name in (block.name, block.page)}
    assert [name for name in (*NOT_RUN, *BEFORE) if name not in names] == []
    assert SAVED.keys() <= {block.name for block in ALL}
    assert {block.page for block in shells if is_run(block)} == set(FILES)
    assert not set(FILES) & NOT_RUN.keys()


@pytest.mark.parametrize("block", ALL, ids=lambda block: f"{block.page}:{block.line}")
def test_every_block_of_data_or_code_can_be_read(block: Block) -> None:
    """JSON and YAML parse, Python compiles."""
    match block.language:
        case "json":
            for document in _documents(block.text):
                json.loads(document)
        case "yaml":
            assert yaml.safe_load(block.text)
        case "python":
            ast.parse(block.text)


def _documents(text: str) -> list[str]:
    lines = text.splitlines()
    return lines if all(line.startswith("{") and line.endswith("}") for line in lines) else [text]


async def _show(page: str, redis_url: str, postgres_url: str) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        async for reader in session(Path(root), page, redis_url, postgres_url):
            async for block, found in follow(reader, page):
                print(f"{block.page}:{block.line}\n{found}\n")


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data,
        embedded_servers(Path(data)) as servers,
    ):
        for chosen in sys.argv[1:] or FOLLOWED:
            asyncio.run(_show(chosen, servers.redis_url, servers.postgres_url))
