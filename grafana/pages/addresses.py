"""Where the dashboards are, for the links between them."""

DISTRIBUTED = "/d/scoreline-distributed"
BATCH = "/d/scoreline-batch"
EVALUATION = "/d/scoreline-evaluation"
ORDERING = "/d/scoreline-ordering"

TO_BATCH = f"{BATCH}?var-batch=${{__value.raw}}"
TO_EVALUATION = f"{EVALUATION}?var-evaluation=${{__value.raw}}"


def others(own: str) -> dict[str, str]:
    """List the other dashboards, by title."""
    pages = {
        "Distributed evaluation": DISTRIBUTED,
        "Batch": BATCH,
        "Evaluation timeline": EVALUATION,
        "Event ordering": ORDERING,
    }
    return {title: address for title, address in pages.items() if address != own}
