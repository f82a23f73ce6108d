"""Recorded answers join their cases when a batch is submitted."""

from pathlib import Path

import pytest

from scoreline.submit.evaluations import prepared
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.plan import Plan
from tests.unit.scoreline.submit.submission_harness import plan_of, refused, submitted, wrote

SHARED = Path(__file__).parents[5] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="the public datasets are not here")

NAMED = [{"id": "a", "input": "x"}, {"id": "b", "input": "y"}]
UNNAMED = [{"input": "x"}, {"input": "y"}, {"input": "z"}]


async def outputs(plan: Plan) -> list[str | None]:
    return [each.answer.output if each.answer else None for each in await submitted(plan)]


async def test_answers_join_by_id_in_any_order(tmp_path):
    """The order of the recorded file does not matter where its rows have ids."""
    wrote(
        tmp_path,
        "answers.jsonl",
        [{"id": "b", "output": "B"}, {"id": "q", "output": "?"}, {"id": "a", "output": 1}],
    )
    assert await outputs(plan_of(tmp_path, NAMED, target="recorded:answers.jsonl")) == ["1", "B"]


async def test_answers_join_by_position_where_there_are_no_ids(tmp_path):
    """Both files are read in parallel; cases that the tags leave out are left out in both."""
    wrote(tmp_path, "answers.jsonl", [{"completion": text} for text in "ABC"])
    rows = [{**row, "tags": ["t"] if row["input"] != "y" else []} for row in UNNAMED]
    plan = plan_of(tmp_path, rows, target="recorded:answers.jsonl", tag=["t"])
    assert await outputs(plan) == ["A", "C"]


async def test_evaluations_can_be_made_again(tmp_path):
    """A second iteration gives the same answers, also where both files are read in parallel."""
    wrote(tmp_path, "answers.jsonl", [{"completion": text} for text in "ABC"])
    async with prepared(plan_of(tmp_path, UNNAMED, target="recorded:answers.jsonl")) as submission:
        first = [each async for each in submission.evaluations()]
        assert first == [each async for each in submission.evaluations()]


async def test_the_nth_row_of_an_id_is_the_nth_repetition(tmp_path):
    """Without a number of repetitions, there are as many as one case has answers."""
    wrote(tmp_path, "answers.jsonl", [{"id": key, "output": key + str(n)} for n in (1, 2) for key in "ab"])
    plan = plan_of(tmp_path, NAMED, target="recorded:answers.jsonl")
    async with prepared(plan) as submission:
        assert submission.plan.spec.repetitions == 2
    assert await outputs(plan) == ["a1", "a2", "b1", "b2"]
    assert await outputs(plan_of(tmp_path, NAMED, target="recorded:answers.jsonl", repetitions=1)) == [
        "a1",
        "b1",
    ]
    complaint = await refused(plan_of(tmp_path, NAMED, target="recorded:answers.jsonl", repetitions=3))
    assert "no recorded answer for the case 'a' for repetition 3" in complaint


async def test_only_recorded_targets_have_answers(tmp_path):
    """Another target beside a recorded one has no answers; each prompt has the same recorded answer."""
    wrote(tmp_path, "answers.jsonl", [{"id": "a", "output": "A"}, {"id": "b", "output": "B"}])
    plan = plan_of(
        tmp_path,
        NAMED,
        target=["simulated", "recorded:answers.jsonl"],
        prompt=["{input}", "- {input}"],
        cache=True,
    )
    assert await outputs(plan) == [None, "A", None, "A", None, "B", None, "B"]
    assert [each.cache_key is None for each in await submitted(plan)] == [False, True] * 4


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "output": "A"}], "cases.jsonl, line 2: there is no recorded answer for the case 'b'"),
        ([{"id": "a", "outptu": "A"}], "answers.jsonl, line 1: there is no column 'output'"),
        ([{"id": "a", "output": None}], "answers.jsonl, line 1: the recorded answer is null"),
        ([{"id": "a", "output": "A"}, {"output": "B"}], "answers.jsonl, line 2: there is no column 'id'"),
        ([{"output": "A"}, {"output": "B"}], "set the column of the case ids with `id`"),
        ([{"id": "a", "output": "x" * 600_000}], "the answer has 600000 characters"),
    ],
)
async def test_an_answer_that_can_not_be_joined_is_named(tmp_path, rows, message):
    """A case without an answer, or an invalid row, stops the submission."""
    wrote(tmp_path, "answers.jsonl", rows)
    assert message in await refused(plan_of(tmp_path, NAMED, target="recorded:answers.jsonl"))


async def test_a_recorded_file_that_is_too_short_is_named(tmp_path):
    """Where rows join by position, the first case beyond the last answer is named."""
    wrote(tmp_path, "answers.jsonl", [{"output": "A"}])
    assert "for the case '2'" in await refused(plan_of(tmp_path, UNNAMED, target="recorded:answers.jsonl"))


async def test_a_case_and_its_answer_fit_into_one_event(tmp_path):
    """Both travel in the event that opens the attempt: together they must not be too large."""
    wrote(tmp_path, "answers.jsonl", [{"output": "\u20ac" * 200_000}])
    plan = plan_of(tmp_path, [{"question": "x" * 250_000}], target="recorded:answers.jsonl")
    assert "too much for one event" in await refused(plan)


async def test_the_expected_value_is_not_taken_for_the_answer(tmp_path):
    """In the dataset's own file, a column is either the expected value or the recorded answer."""
    plan = plan_of(tmp_path, [{"input": "x", "answer": "42"}], target="recorded:cases.jsonl")
    assert "no column 'output'" in await refused(plan)
    plan = plan_of(tmp_path, [{"id": 1, "answer": "42", "response": "41"}], target="recorded:cases.jsonl")
    assert await outputs(plan) == ["41"]


@needs_shared
async def test_public_answers_join_public_datasets():
    """Published answers join their datasets without conversion."""
    message = SHARED / "gsm8k" / "example_model_solutions_first200_finetuning.jsonl"
    methods = ("6b_finetuning", "175b_finetuning")
    gsm8k = {
        "dataset": str(SHARED / "gsm8k" / "test_first200.jsonl"),
        "target": [
            {"type": "recorded", "label": name, "path": str(message), "output": f"{name}.solution"}
            for name in methods
        ],
        "limit": 200,
    }
    assert len(await outputs(make_plan(None, gsm8k, folder=SHARED))) == 400

    bbh = "bbh/date_understanding_few_shot_template_0-255000.json"
    flags = {"dataset": bbh, "records": "outputs", "target": [f"recorded:{bbh}"]}
    made = await submitted(make_plan(None, flags, folder=SHARED))
    right = sum(each.answer.output == each.case.expected for each in made if each.answer)
    assert right / len(made) == 0.636

    flags = {
        "dataset": "humaneval/example_problem.jsonl",
        "id": "task_id",
        "target": ["recorded:humaneval/example_samples.jsonl"],
    }
    made = await submitted(make_plan(None, flags, folder=SHARED))
    assert [each.repetition for each in made] == [1, 2, 3, 4, 5, 6]
    assert made[3].answer
    assert made[3].answer.output == "    return 1"
