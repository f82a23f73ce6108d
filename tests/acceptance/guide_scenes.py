"""What a page takes for granted: files beside the reader's own, batches that ran before, blocks not run."""

CAPITALS = """\
{"id": "fr", "question": "What is the capital of France?", "answer": "Paris", "tags": ["europe"]}
{"id": "it", "question": "What is the capital of Italy?", "answer": "Rome", "tags": ["europe"]}
{"id": "jp", "question": "What is the capital of Japan?", "answer": "Tokyo", "tags": ["asia"]}
{"id": "au", "question": "What is the capital of Australia?", "answer": "Canberra", "tags": ["oceania"]}
"""
APP = """\
KNOWN = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Australia": "Sydney"}

def answer(prompt):
    return next(city for country, city in KNOWN.items() if country in prompt)
"""
ONCE = """\
{"id": "fr", "output": "Paris"}
{"id": "it", "output": "Rome"}
{"id": "jp", "output": "Kyoto"}
{"id": "au", "output": "Canberra"}
"""
REFUSED = """\
def answer(prompt):
    raise PermissionError("the key was refused")
"""
BOT = """\
import sys

sys.path.insert(0, ".")
question = sys.stdin.read()
known = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Australia": "Sydney"}
print(next(city for country, city in known.items() if country in question))
"""
FLAKY = (
    "name: flaky\nmode: simulated\nlimit: 64\nretries: 1\ntarget: {type: simulated, transient_rate: 1}\n"
)

PAID = "dataset: cases.jsonl\ntarget: anthropic/claude-haiku-4-5\nevaluator: exact\n"
CASES = "".join(
    f'{{"id": "{number}", "input": "{number}", "expected": "{number}"}}\n' for number in range(800)
)

ON_CAPITALS = "--dataset capitals.jsonl --evaluator exact --workers 1"

FILES: dict[str, dict[str, str]] = {
    "docs/tutorials/first-ten-minutes.md": {},
    "README.md": {"capitals.jsonl": CAPITALS, "app.py": APP},
    "docs/how-to/run-batches.md": {
        "scoreline.yaml": "dataset: capitals.jsonl\ntarget: python:app:answer\nevaluator: exact\n",
    },
    "docs/how-to/pause-resume-retry.md": {"flaky.yaml": FLAKY},
    "docs/how-to/budgets.md": {"cases.jsonl": CASES, "paid.yaml": PAID, "app.py": REFUSED},
    "docs/how-to/compare.md": {"capitals.jsonl": CAPITALS, "app.py": APP, "once.jsonl": ONCE},
    "docs/reference/results.md": {"capitals.jsonl": CAPITALS, "app.py": APP},
    "docs/reference/spec.md": {
        "capitals.jsonl": CAPITALS,
        "app.py": APP,
        "typo.yaml": "dataset: capitals.jsonl\ntarget: simulated\ntimeuot: 3\n",
        "bot.py": BOT,
    },
    "docs/how-to/datasets.md": {
        "capitals.jsonl": CAPITALS,
        "app.py": APP,
        "once.jsonl": ONCE,
        "twice.csv": "id,question\n1,a\n1,b\n",
        "broken.jsonl": '{"id": "1"}\n{"question": ]\n',
        "nested.json": '{"examples": {"rows": [{"id": "1"}]}}',
    },
}
"""By page: files that it names and does not show."""

SAVED = {
    "docs/reference/spec.md: name: capitals": "scoreline.yaml",
}
"""By block: the file that it is the text of."""

BEFORE: dict[str, tuple[str, ...]] = {
    "docs/how-to/pause-resume-retry.md: $ scoreline batch dlq flaky-wv27p8 --limit 3": (
        "scoreline batch run -c flaky.yaml --workers 1",
    ),
    "docs/how-to/compare.md: $ scoreline batch compare before-g9n4q2 after-z75mm3": (
        f"scoreline batch run --name before --target recorded:once.jsonl {ON_CAPITALS}",
        f"scoreline batch run --name after --target python:app:answer {ON_CAPITALS}",
    ),
}
"""By block: commands that its page leaves out; batches that they start are those that the block names."""

DOCKER = "needs a container engine and the images of the deployment"
LONG_RUN = "was taken from a run of minutes, with signals and kills at moments that the page does not show"
NOT_RUN: dict[str, str] = {
    "docs/how-to/dashboards.md": "minutes; tests/integration/scoreline/local/test_observe.py runs parts",
    "docs/how-to/deploy.md": DOCKER,
    "docs/how-to/operations.md": "tests/acceptance/test_alerts.py and tests/alerts run these commands",
    "docs/how-to/replay.md": "tests/acceptance/test_replay_document.py runs its screens",
    "docs/how-to/custom-targets.md": "needs an installed package; test_guides.py runs its code",
    "docs/how-to/provider-batches.md": LONG_RUN,
    "docs/how-to/fleet.md": "names servers that are not here; tests/acceptance/test_fleet.py runs a fleet",
    "docs/tutorials/first-ten-minutes.md: make demo                           # in the clone: installs"
    " into .venv, scores recorded answers": "installs the program that the tests run with",
    "README.md: make demo     # 400 recorded answers to real questions, scored by four executors, one of"
    " which is killed": "tests/acceptance/test_demo.py runs the demo",
    "docs/how-to/pause-resume-retry.md: $ scoreline batch run -c slow.yaml --workers 2 --concurrency 8": (
        LONG_RUN
    ),
    "docs/how-to/pause-resume-retry.md: $ scoreline batch pause slow-ne5vqq --reason lunch": LONG_RUN,
}
"""By page or by block: why it is not run; everything else that shows a command is."""
