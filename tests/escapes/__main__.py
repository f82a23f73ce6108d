"""Run the escape corpus in every privilege mode, and print what contained each attack.

python -m tests.escapes                    every privilege mode, as a table
python -m tests.escapes --json             one JSON object
python -m tests.escapes --only memory      programs whose name or family has this word
python -m tests.escapes --write            no run: write the table into docs/explanation/security.md

The exit code is 1 if a program was not contained, if anything was left behind, or if a privilege mode is
missing.
"""

import argparse
import json
import sys
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from tests.escapes.runner import CorpusRow, ModeReport, run
from tests.escapes.table import DOCUMENT, rewritten

WIDTH = 170
"""Columns of the table where the output is no terminal, or a narrow one."""


def main() -> int:
    """Run the corpus, and print the table; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="a word in the name or the family")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--write", action="store_true", help="write docs/explanation/security.md")
    args = parser.parse_args()
    if args.write:
        DOCUMENT.write_text(rewritten(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    reports = run(args.only)
    if args.json:
        print(json.dumps([_as_json(report) for report in reports]))
    else:
        _show(reports)
    return 0 if all(map(_is_contained, reports)) else 1


def _is_contained(report: ModeReport) -> bool:
    return bool(report.rows) and not report.left_behind and not any(row.problems for row in report.rows)


def _as_json(report: ModeReport) -> dict[str, object]:
    rows = [
        {
            "attack": row.program.name,
            "family": row.program.family,
            "contained": not row.problems,
            "contained_by": row.mechanism,
            "ended_by": row.ended_by,
            "seconds": row.seconds,
            "problems": row.problems,
        }
        for row in report.rows
    ]
    return {**asdict(report), "rows": rows}


def _show(reports: list[ModeReport]) -> None:
    table = Table("family", "attack", "privilege mode", "ended by", "contained by")
    for row in (row for report in reports for row in report.rows):
        table.add_row(row.program.family, row.program.name, row.rights, row.ended_by, _verdict(row))
    console = Console(width=max(Console().width, WIDTH))
    console.print(table, markup=False)
    for report in reports:
        contained = sum(not row.problems for row in report.rows)
        console.print(
            f"{report.rights}: {contained} of {len(report.rows)} contained in {report.seconds} s, "
            f"executor's peak memory {report.peak_mb} MB, "
            f"left behind: {report.left_behind or 'nothing'} {report.unavailable}",
            markup=False,
        )


def _verdict(row: CorpusRow) -> str:
    return "NOT CONTAINED: " + row.problems[0] if row.problems else row.mechanism


if __name__ == "__main__":
    sys.exit(main())
