"""Commands run as processes."""

from tests.integration.worker import scoreline

Urls = dict[str, str]


def complaint(*arguments: str, **environ: str) -> str:
    """The one line with which a command reports its error."""
    ended = scoreline(*arguments, **environ)
    assert ended.returncode == 1, ended
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "hunter2" not in ended.stderr
    return ended.stderr
