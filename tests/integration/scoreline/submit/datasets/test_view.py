"""Datasets as they are listed and shown."""

import json

from tests.integration.scoreline.submit.datasets.dataset_files import imported, run


def test_a_file_is_imported_listed_and_shown(tmp_path, postgres_url):
    """The three commands work for people and, with JSON, for machines."""
    rows = [{"key": f"k{n}", "q": f"What is {n}?", "a": n} for n in range(12)]
    path = tmp_path / "sums.json"
    path.write_text(json.dumps({"data": {"rows": rows}}))
    columns = ["--records", "data.rows", "--id", "key", "--input", "q", "--expected", "a"]
    about = imported(postgres_url, path, *columns, "--tag", "small")
    assert (about["name"], about["cases"]) == ("sums", 12)

    (listed,) = run(postgres_url, "list", "--json").stdout.splitlines()
    about = json.loads(listed)
    assert about.pop("imported_at")
    assert about == {
        "name": "sums",
        "project": "default",
        "cases": 12,
        "tags": ["small"],
        "source": "sums.json",
    }
    shown = json.loads(run(postgres_url, "show", "sums", "--limit", "2", "--json").stdout)
    assert [(case["id"], case["input"], case["expected"]) for case in shown["first"]] == [
        ("k0", "What is 0?", 0),
        ("k1", "What is 1?", 1),
    ]
    assert "What is 11?" not in run(postgres_url, "show", "sums").stdout
    assert "sums" in run(postgres_url, "list").stdout
    assert run(postgres_url, "list", "--project", "other", "--json").stdout == ""
