"""`scoreline batch`: everything about batches."""

import typer

from scoreline.cli import batch_control, batch_run
from scoreline.cli import batch_reports as batch_look

app = typer.Typer(help="Run batches of evaluations, and look at them.", no_args_is_help=True)
app.command("run", epilog=batch_run.RUN_EPILOG)(batch_run.run)
app.command("list", epilog=batch_look.LIST_EPILOG)(batch_look.list_)
app.command("status", epilog=batch_look.STATUS_EPILOG)(batch_look.status)
app.command("pause", epilog=batch_control.PAUSE_EPILOG)(batch_control.pause)
app.command("resume", epilog=batch_run.RESUME_EPILOG)(batch_run.resume)
app.command("retry", epilog=batch_control.RETRY_EPILOG)(batch_control.retry)
app.command("dlq", epilog=batch_look.DLQ_EPILOG)(batch_look.dlq)
app.command("cancel", epilog=batch_control.CANCEL_EPILOG)(batch_control.cancel)
app.command("export", epilog=batch_look.EXPORT_EPILOG)(batch_look.export)
app.command("compare", epilog=batch_look.COMPARE_EPILOG)(batch_look.compare)
