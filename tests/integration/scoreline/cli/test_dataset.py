"""`scoreline dataset`: what its commands refuse."""

import pytest

from scoreline.command_error import CommandError
from tests.integration.scoreline.submit.datasets.dataset_files import ROWS, imported, run
from tests.unit.scoreline.submit.submission_harness import wrote


def test_the_commands_explain_what_they_refuse(tmp_path, postgres_url):
    """A taken name, an invalid file and a missing dataset have one sentence each."""
    path = wrote(tmp_path, "cases.jsonl", ROWS)
    imported(postgres_url, path)
    for arguments, message in [
        (["import", str(path)], "--replace"),
        (["import", str(tmp_path / "cases.txt")], "unknown suffix"),
        (["import", str(tmp_path / "nowhere.csv")], "No such file"),
        (["show", "physics"], "has no dataset 'physics'"),
    ]:
        result = run(postgres_url, *arguments)
        assert isinstance(result.exception, CommandError), result
        assert message in str(result.exception)
    assert imported(postgres_url, path, "--replace", "--name", "other")["name"] == "other"


@pytest.mark.parametrize("name", ["exams/2026", "cases.jsonl", "cases.csv.gz"])
def test_a_name_that_a_batch_would_take_for_a_file_is_refused(tmp_path, postgres_url, name):
    """`--dataset` would take such a name for a file."""
    result = run(postgres_url, "import", str(wrote(tmp_path, "cases.jsonl", ROWS)), "--name", name)
    assert (result.exit_code, "a batch would look for a file" in _plain(result.stderr)) == (2, True)
    assert run(postgres_url, "list", "--json").stdout == ""


def test_one_case_is_one_case(tmp_path, postgres_url):
    """The singular is used for one case."""
    result = run(postgres_url, "import", str(wrote(tmp_path, "cases.jsonl", ROWS[:1])))
    assert result.stderr == "Imported 1 case as 'cases'.\n"


def _plain(boxed: str) -> str:
    return " ".join(boxed.replace("│", " ").split())
