"""Keys of a spec: each is known, given once, and named with its place where it is wrong."""

import pytest

from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.keys import read_keys, unknown
from tests.unit.scoreline.submit.spec.spec_files import refused


def test_keys_within_keys_have_lines_too(tmp_path):
    """Mappings of datasets and lists of targets are checked as strictly as the top."""
    text = (
        "dataset:\n  path: a.json\n  recods: x\ntargets:\n- simulated\n- {type: simulated, pass_rat: 1}\n"
    )
    assert "line 3: there is no key `recods`; did you mean `records`?" in refused(tmp_path, text)
    assert "line 6: the simulated target has no option 'pass_rat'" in refused(
        tmp_path, text.replace("recods", "records")
    )


def test_a_wrong_flag_is_named_as_it_was_typed(tmp_path):
    """An error of a flag names the flag, because flags have no lines."""
    assert refused(tmp_path, mode="simulated", max_duration="x").startswith("--max-duration: ")
    assert refused(tmp_path, mode="simulated", records="x").startswith("--records: ")


def place(*keys: str) -> str:
    """Name a place by its keys."""
    return ".".join(keys)


def test_a_key_and_its_singular_are_one_key():
    """Either is read; both together are refused at the place of the second."""
    assert read_keys({"prompt": "{input}"}, place) == read_keys({"prompts": ["{input}"]}, place)
    with pytest.raises(SpecError, match=r"^target: `target` and `targets` are the same key"):
        read_keys({"targets": ["simulated"], "target": "simulated"}, place)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("detach", "it is a flag only, --detach"),
        ("limt", "did you mean `limit`?"),
        ("zzz", "known: cache, limit"),
    ],
)
def test_an_unknown_key_gets_the_most_helpful_hint(key: str, text: str):
    """The flag of that name, the closest key, or else all keys in order."""
    assert unknown(key, ["limit", "cache"]).endswith(text)


@pytest.mark.parametrize(
    ("dataset", "where"),
    [
        ({"path": "a.csv", "name": "maths"}, "dataset: a `dataset` has either"),
        ({"id": "key"}, "dataset: a `dataset` has either"),
        ({"name": "maths", "id": "key"}, "dataset.id: `id` is for files"),
    ],
)
def test_a_dataset_is_a_file_or_an_imported_one(dataset: dict[str, str], where: str):
    """Columns are mapped for files only: an imported dataset has its own."""
    with pytest.raises(SpecError) as refusal:
        read_keys({"dataset": dataset}, place)
    assert str(refusal.value).startswith(where)


def test_limits_of_an_account_are_checked_under_its_name():
    """An unknown or invalid limit is named with the account."""
    assert read_keys({"accounts": {"openai": {"rpm": 60}}}, place)["accounts"] == {"openai": {"rpm": 60}}
    for limits, text in (
        ({"rps": 1}, "there is no key `rps`"),
        ({"rpm": "x"}, "`accounts.openai.rpm` must"),
    ):
        with pytest.raises(SpecError) as refusal:
            read_keys({"accounts": {"openai": limits}}, place)
        assert str(refusal.value).startswith(f"accounts.openai: {text}")
