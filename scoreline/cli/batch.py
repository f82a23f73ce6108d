"""`scoreline batch`: the group of commands about batches."""

import typer

from scoreline.cli import batch_control, batch_reports, batch_run

app = typer.Typer(help="Run, inspect and control batches of evaluations.", no_args_is_help=True)
app.command("run", epilog=batch_run.RUN_EPILOG)(batch_run.run)
app.command("list", epilog=batch_reports.LIST_EPILOG)(batch_reports.list_)
app.command("status", epilog=batch_reports.STATUS_EPILOG)(batch_reports.status)
app.command("pause", epilog=batch_control.PAUSE_EPILOG)(batch_control.pause)
app.command("resume", epilog=batch_run.RESUME_EPILOG)(batch_run.resume)
app.command("retry", epilog=batch_run.RETRY_EPILOG)(batch_run.retry)
app.command("dlq", epilog=batch_reports.DLQ_EPILOG)(batch_reports.dlq)
app.command("cancel", epilog=batch_control.CANCEL_EPILOG)(batch_control.cancel)
app.command("export", epilog=batch_reports.EXPORT_EPILOG)(batch_reports.export)
app.command("compare", epilog=batch_reports.COMPARE_EPILOG)(batch_reports.compare)
