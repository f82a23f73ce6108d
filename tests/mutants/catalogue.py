"""The mechanisms that the guarantees rest on, what each looks like, and what it looks like without."""

from typing import NamedTuple

APPEND = "eventlog/append.lua"
SETTLE = "eventlog/settle.lua"
MOVE = "projections/sql/evaluations.sql"
CORE = "projections/migrations/0001_core.sql"
ROLES = "projections/migrations/0002_roles.sql"

LOG = "tests/conformance/eventlog/test_log.py"
LOG_MODES = "tests/conformance/eventlog/test_log_append_modes.py"
REDIS_LOG = "tests/conformance/eventlog/test_redis_streams.py"
REDIS_QUEUE = "tests/conformance/taskqueue/test_redis_streams.py"
LOG_RETENTION = "tests/conformance/eventlog/test_log_retention.py"
TABLES = "tests/conformance/projections/store/test_contract.py"
WORKER = "tests/integration/storage_worker/test_app.py"
PERMUTATIONS = "tests/unit/storage_worker/test_storage_permutations.py"
STORAGE = "tests/unit/storage_worker/test_storage.py"
STORAGE_FAULTS = "tests/unit/storage_worker/test_storage_faults.py"
TIMELINE = "tests/unit/eventlog/test_timeline.py"
LIFECYCLE = "tests/unit/eventlog/test_lifecycle.py"
QUEUE = "tests/unit/eventlog/test_event_queue.py"
OWNERSHIP = "tests/unit/eventlog/test_event_queue_ownership.py"
OUTBOX = "tests/unit/eventlog/test_outbox.py"
VERIFY = "tests/integration/projections/verification/test_verify.py"
REBUILD = "tests/integration/projections/verification/test_rebuild.py"
RETRACE = "tests/unit/projections/folds/test_refold.py"
SIMULATION = "tests/simulation/test_simulation.py"
FOUND = "tests/simulation/test_found.py"
RECONCILE = "tests/unit/coordinator/test_reconcile_decision.py"
GRACE = "tests/unit/coordinator/test_grace.py"
CONFIRMATION = "tests/unit/eventlog/test_event_queue_confirmation.py"
CHANGE = "tests/unit/projections/folds/test_change.py"
CONTINUITY = "tests/integration/scoreline/local/embedded/test_continuity.py"
ATTEMPTS = "tests/unit/coordinator/test_attempts.py"
FOLD = "tests/unit/executor/test_replay.py"
LEDGER = "tests/conformance/projections/ledger/test_contract.py"
EXECUTOR_CONTROL = "tests/unit/executor/test_executor.py"
INTERRUPTION = "tests/integration/scoreline/local/test_interruption.py"
PROCESSES = "tests/integration/scoreline/local/test_processes.py"
DAMAGED_FILE = "tests/integration/scoreline/local/embedded/test_damage.py"
HTTP_TARGET = "tests/integration/executor/targets/test_http.py"
BOUNDED_REPLIES = "tests/unit/providers/test_bounded_replies.py"
HOSTILE_REPLIES = "tests/acceptance/test_hostile_replies.py"
RUNS = "tests/acceptance/test_runs.py"
LANE = "executor/lanes/lane.lua"
LANES = "tests/conformance/executor/lanes/test_contract.py"
LANES_TRACES = "tests/conformance/executor/lanes/test_contract_traces.py"
LANES_ARITHMETIC = "tests/unit/executor/lanes/test_lane.py"
EXECUTOR_LANES = "tests/unit/executor/lanes/test_client.py"
LANES_LIMITS = "tests/unit/executor/lanes/test_limits.py"
BUDGETS = "tests/integration/coordinator/test_auto_pause.py"
BUDGET_ACCOUNTS = "tests/conformance/taskqueue/budget/test_contract.py"
EXECUTOR_BUDGET = "tests/unit/executor/budget/test_client.py"
BUDGET_KEEPER = "tests/unit/coordinator/test_budget_keeper.py"
FAILURE_STREAK = "tests/unit/executor/test_failure_streak.py"
PROVIDER_BATCH_BUDGETS = "tests/unit/coordinator/provider_batches/test_reservations.py"
PROVIDER_BOOKS = "tests/conformance/projections/ledger/test_provider_batches.py"
PROVIDER_CRASH = "tests/unit/coordinator/provider_batches/test_recovery_crash.py"
PROVIDER_BATCHES = "tests/unit/coordinator/provider_batches/test_driver.py"
PREFLIGHT = "tests/acceptance/test_preflight.py"
REPORT = "tests/unit/scoreline/reports/test_report.py"
EXPORT = "tests/unit/scoreline/reports/test_export.py"
PYTHON_TARGET = "tests/integration/executor/targets/test_python.py"
FAULTS = "tests/unit/executor/test_outcome.py"
EXECUTOR_RUN = "tests/unit/executor/test_attempt.py"
SCORECARD = "tests/unit/projections/folds/test_scorecard.py"
SIMULATION_MODE = "tests/unit/scoreline/submit/spec/test_simulation.py"
SANDBOX = "tests/integration/executor/sandbox/test_sandbox.py"
ESCAPES = "tests/escapes/test_corpus.py::test_every_program_is_contained_and_everything_is_returned"
CODE_VERDICTS = "tests/acceptance/test_code_verdicts.py"
RUN_DIRECTORIES = "tests/acceptance/test_run_directories.py"
PROTOCOL_DESCRIPTORS = "tests/acceptance/test_protocol_descriptors.py"
SANDBOX_CHECK = "tests/acceptance/test_sandbox_check.py"
WALL_CHECKS = "tests/integration/executor/sandbox/test_isolation_checks.py"
COMPLETION = "tests/unit/executor/evaluators/test_completion.py"
FIRST_PROCESS = "tests/integration/executor/sandbox/test_init.py"
WALLS = "tests/unit/executor/sandbox/test_bubblewrap_options.py"
SANDBOX_MEMORY = "tests/integration/executor/sandbox/test_resource_monitor.py"
SANDBOX_CGROUP = "tests/integration/executor/sandbox/test_memory_cgroup.py"
HOST_FILES = "tests/unit/executor/targets/test_host_files.py"
SECCOMP = "tests/unit/executor/sandbox/test_seccomp.py"
TOTALS = "tests/unit/projections/folds/test_attempt_totals.py"
FOREIGN = "tests/acceptance/test_foreign_producers.py"
ACROSS_ATTEMPTS = "tests/unit/storage_worker/test_storage_arrival_across_attempts.py"
SERVER_ERRORS = "tests/acceptance/test_server_errors.py"
ACL = "tests/integration/deploy/test_users_acl.py::test_each_user_is_denied_what_its_service_does_not_need"
LEAST_PRIVILEGE = "tests/integration/deploy/test_least_privilege.py"
EXTREMES = "tests/integration/eventlog/test_events_extreme_values.py"
BATCH_STATUS = "tests/unit/scoreline/reports/test_batch_status.py"
COMPARE = "tests/integration/scoreline/reports/test_compare.py"
INVOCATION = "tests/unit/scoreline/test_invocation.py"
PASS_RATE = "tests/unit/scoreline/reports/test_pass_rate.py"
FUZZ = "tests/fuzz/test_fuzz.py"
ACCEPTING = "tests/unit/coordinator/test_acceptance.py"
PROVIDER_PRICES = "tests/unit/providers/test_endpoint.py"
DATASET_LIMITS = "tests/unit/scoreline/submit/datasets/test_file_formats_limits.py"
DATASET_FORMATS = "tests/unit/scoreline/submit/datasets/test_file_formats.py"
HOSTILE_FILES = "tests/acceptance/test_hostile_files.py::test_hostile_files_are_refused_in_bounded_memory"
HOSTILE_SPECS = (
    "tests/acceptance/test_hostile_files.py::test_hostile_specs_and_batches_are_refused_in_bounded_memory"
)
PROVIDER_WITHDRAWN = "tests/unit/coordinator/provider_batches/test_canceller.py"

REDACTION = "tests/unit/eventlog/test_redaction.py"
SPEC_SECRETS = "tests/unit/scoreline/submit/spec/test_secrets.py"
SECRETS = "tests/acceptance/test_secrets.py"
STORED_SECRETS = f"{SECRETS}::test_nothing_of_a_secret_is_stored_logged_shown_or_exported"
HTTP_SECRET = "tests/integration/executor/targets/test_http.py::test_a_secret_is_sent_and_never_reported"

PROMISES = "tests/acceptance/test_promises.py"


class Mutant(NamedTuple):
    """One mechanism, where it is, and the tests that must notice its loss."""

    mechanism: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    # Applied once, whatever is redelivered, duplicated or raced.
    Mutant(
        "the unique key of events",
        CORE,
        "    PRIMARY KEY (month, evaluation_id, attempt, sequence)\n) PARTITION",
        "    CHECK (sequence >= 0)\n) PARTITION",
        (TABLES,),
    ),
    Mutant(
        "compare-and-set in Postgres",
        MOVE,
        "\n  AND l.attempt = s.from_attempt AND l.sequence = s.from_sequence",
        "",
        (TABLES,),
    ),
    Mutant(
        "compare-and-set in memory",
        "projections/store/memory.py",
        "return (held.row.cursor if held else None) == change.before",
        "return True",
        (PERMUTATIONS, SIMULATION),
    ),
    Mutant(
        "the loser of a race is read again",
        "storage_worker/storage.py",
        "waiting = [*waiting[size:], *sorted(lost)]",
        "waiting = waiting[size:]",
        (STORAGE_FAULTS,),
    ),
    Mutant(
        "losers of a race count nothing",
        "projections/store/postgres.py",
        "    for change in winners:\n        progress[",
        "    for change in moving:\n        progress[",
        (TABLES,),
    ),
    Mutant(
        "a side event is counted by the worker that inserts it",
        "projections/store/postgres.py",
        "    for evaluation_id, attempt, sequence in await cursor.fetchall():\n",
        "    await cursor.fetchall()\n    for _, evaluation_id, attempt, sequence, *_ in rows:\n",
        (TABLES,),
    ),
    # Acknowledged after the commit, always.
    Mutant(
        "acknowledgement after the commit",
        "storage_worker/consumer.py",
        "await self._storage.process(batch)\n",
        "await self._acknowledge(stream, wake_ups)\n            await self._storage.process(batch)\n",
        (f"{WORKER}::test_health_reports_counts_and_the_server_it_waits_for",),
    ),
    Mutant(
        "groups that begin at the beginning",
        "storage_worker/consumer.py",
        'await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)',
        'await self._redis.xgroup_create(stream, GROUP, id="$", mkstream=True)',
        (f"{WORKER}::test_wake_ups_from_before_the_group_are_processed",),
    ),
    Mutant(
        "a worker's drain of its pending wake-ups",
        "storage_worker/app.py",
        "redelivered = await consumer.redeliver_pending(count=settings.batch_size)",
        "redelivered = 0",
        (f"{WORKER}::test_a_restarted_worker_processes_its_pending_wake_ups",),
    ),
    Mutant(
        "taking over from dead workers",
        "storage_worker/maintenance.py",
        "            await consumer.claim_stalled(",
        "            await asyncio.sleep(0) or consumer.lag(",
        (f"{WORKER}::test_wake_ups_of_a_dead_worker_are_claimed",),
    ),
    Mutant(
        "the sweep",
        "storage_worker/storage.py",
        "            await self._sweep_page(ids)\n            after",
        "            after",
        (f"{WORKER}::test_the_sweep_finds_an_event_whose_wake_up_was_lost",),
    ),
    # Only contiguous, legal histories move a projection; bridged ones are marked.
    Mutant(
        "contiguity",
        "eventlog/timeline.py",
        "if self.place.get(key, before) >= before or key not in self.open:\n                return",
        "if self.place.get(key, before) >= before or key not in self.open:\n"
        "                ahead = [k for k in self.open if k[0] == key[0] and k[1] > key[1]]\n"
        "                if not ahead:\n                    return\n                key = min(ahead)",
        (TIMELINE,),
    ),
    Mutant(
        "provisioning does not complete",
        "eventlog/lifecycle.py",
        "    Phase.PROVISIONING: {\n",
        '    Phase.PROVISIONING: {\n        "completed": Phase.COMPLETED,\n',
        (LIFECYCLE,),
    ),
    Mutant(
        "final is final",
        "eventlog/lifecycle.py",
        "if following is None or phase in FINAL:",
        "if following is None:",
        (LIFECYCLE,),
    ),
    Mutant(
        "a settled evaluation is reopened by operators only",
        "eventlog/lifecycle.py",
        "if phase in SETTLED and not _is_operators(event):",
        "if phase in SETTLED and event is None:",
        (LIFECYCLE,),
    ),
    Mutant(
        "a gap is bridged only to a closing event",
        "eventlog/timeline.py",
        "if entry.event.type in life.OWNERS_CLOSING)\n",
        "if entry.event.type)\n",
        (TIMELINE,),
    ),
    Mutant(
        "a gap is waited for",
        "eventlog/timeline.py",
        "ripe = self.bridge_until_ms is not None and gap.since_ms <= self.bridge_until_ms",
        "ripe = True",
        (TIMELINE,),
    ),
    Mutant(
        "a bridge is written down",
        "eventlog/timeline.py",
        "        self.result.bridges.append(Bridge(gap.attempt, missing, closing))\n",
        "",
        (TIMELINE, RETRACE),
    ),
    # A fenced attempt changes nothing; an attempt has one owner.
    Mutant(
        "the fence in Redis",
        APPEND,
        "  if event.attempt < newest then return mode == 'late' and 'OK' or 'FENCED' end\n",
        "",
        (LOG,),
    ),
    Mutant(
        "the fence of the reader",
        "eventlog/timeline.py",
        "            self._dispose_of_rest(before=self.place[opening.key])\n            _apply",
        "            _apply",
        (TIMELINE, PERMUTATIONS, RETRACE),
    ),
    Mutant(
        "a claim needs its opening",
        APPEND,
        "    if not digest_of(0) then return 'FENCED' end\n",
        "",
        (LOG,),
    ),
    Mutant(
        "a claim needs an opening of this epoch",
        APPEND,
        "    if opened_in ~= epoch then return 'EPOCH' end\n",
        "",
        (REDIS_LOG,),
    ),
    Mutant(
        "a refused claim is no claim",
        "eventlog/event_queue.py",
        "        if not result.acknowledged:\n"
        "            telemetry.refused(result)\n"
        "            return AttemptLost(buffer.evaluation_id, buffer.attempt, result)\n",
        "",
        (OWNERSHIP, SIMULATION),
    ),
    Mutant(
        "an attempt that was lost stays lost",
        "eventlog/outbox.py",
        "            buffer.lost = refusal\n",
        "",
        (OUTBOX, QUEUE, OWNERSHIP),
    ),
    # Conflict is never overwrite.
    Mutant(
        "a conflict is distinguished from a duplicate",
        APPEND,
        "return digest == event.digest and 'DUPLICATE' or 'CONFLICT'",
        "return 'DUPLICATE'",
        (LOG,),
    ),
    Mutant(
        "a conflicting body is quarantined",
        "storage_worker/stream_diff.py",
        "    diff.rejected += (_conflict(entry) for entry in result.conflicts)\n",
        "",
        ("tests/unit/storage_worker/test_stream_diff.py", STORAGE),
    ),
    Mutant(
        "nothing beyond the closing event",
        APPEND,
        "    if closing and event.sequence > closing then return 'CLOSED' end\n",
        "",
        (LOG,),
    ),
    # Paid work is not lost; loss of Redis is noticed.
    Mutant(
        "the epoch of an append",
        APPEND,
        "if seen ~= '' and seen ~= epoch then",
        "if false then",
        (LOG,),
    ),
    Mutant(
        "tails are put back",
        "eventlog/event_queue.py",
        "                self.outbox.reappend(other)\n",
        "                pass\n",
        (OWNERSHIP, SIMULATION),
    ),
    Mutant(
        "a tail is put back whole or not at all",
        APPEND,
        "if not (whole and refused) then",
        "if true then",
        (LOG_RETENTION,),
    ),
    Mutant(
        "a tail is kept until Postgres has it",
        "eventlog/event_queue.py",
        "            if buffer.is_committed_by(mark) and (mark or held):\n",
        "            if buffer.acknowledged and (mark or held):\n",
        (OWNERSHIP, SIMULATION),
    ),
    Mutant(
        "a call of unknown fate is repeated",
        "eventlog/event_queue.py",
        "            for buffer in due:\n                self.outbox.requeue(buffer)\n            raise",
        "            raise",
        (QUEUE, SIMULATION),
    ),
    Mutant(
        "a stream with a higher attempt does not expire",
        SETTLE,
        "elseif newest_attempt(stream, fence) <= attempt then",
        "else",
        (LOG_RETENTION,),
    ),
    Mutant(
        "an opening makes a stream last again",
        APPEND,
        "    if begins and not empty then redis.call('PERSIST', stream) end\n",
        "",
        (LOG_RETENTION,),
    ),
    # One bad event stops only itself.
    Mutant(
        "a refused batch is halved until the culprit is alone",
        "storage_worker/storage.py",
        "            if len(changes) == 1:\n",
        "            if changes:\n",
        (STORAGE_FAULTS, "tests/integration/storage_worker/test_storage_bad_input.py"),
    ),
    Mutant(
        "events can't be altered",
        ROLES,
        "REVOKE UPDATE, DELETE, TRUNCATE ON events, gap_bridges, quarantine FROM scoreline_migrator;",
        "",
        ("tests/integration/projections/database/test_migrations_roles.py",),
    ),
    # Rebuild equals live, and the checker can fail.
    Mutant(
        "the checker looks at the log's order",
        "projections/folds/refold.py",
        'self._break_rule(event, f"was applied next after {after}, and no bridge leads there")',
        "pass",
        (RETRACE, VERIFY),
    ),
    Mutant(
        "the checker looks at transitions",
        "projections/folds/refold.py",
        'self._break_rule(event, f"was applied, but {phase} does not accept {event.type} there")',
        "pass",
        (RETRACE, VERIFY),
    ),
    Mutant(
        "the checker looks at scorecards",
        "projections/verification/verify.py",
        '    yield from _compare("scorecards", key, page.scorecards.get(key), retraced.change.scorecard)\n',
        "",
        (VERIFY,),
    ),
    Mutant(
        "the checker looks at evaluations",
        "projections/verification/verify.py",
        '    yield from _compare("evaluations", key, page.evaluations.get(key), expected_row(retraced))\n',
        "",
        (VERIFY,),
    ),
    Mutant(
        "the checker counts again",
        "projections/verification/verify.py",
        "            if is_now[column] != value:\n",
        "            if is_now is value:\n",
        (VERIFY,),
    ),
    Mutant(
        "the checker finds rows that are gone",
        "projections/verification/pages.py",
        "    for first in range(0, len(strays), size):\n",
        "    for first in range(0):\n",
        (VERIFY,),
    ),
    Mutant(
        "writers wait for a rebuild's swap",
        "projections/verification/rebuild.py",
        '            await self._conn.execute(query("lock_rebuilt"))\n',
        "",
        (REBUILD,),
    ),
    Mutant(
        "a rebuild catches up before it swaps",
        "projections/verification/rebuild.py",
        'query("lock_rebuilt"))\n            await self._catch_up()\n',
        'query("lock_rebuilt"))\n',
        (f"{REBUILD}::test_events_written_during_a_rebuild_are_part_of_it",),
    ),
    Mutant(
        "a rebuild trusts no broken log",
        "projections/verification/rebuild.py",
        "        if folded.broken:\n",
        "        if folded is None:\n",
        (VERIFY,),
    ),
    # What the proofs themselves have found.
    Mutant(
        "a claim of unknown fate is asked again",
        "eventlog/event_queue.py",
        "if pending.response.results[0] is not AppendResult.EPOCH or not pending.outcome_unknown:",
        "if asked.reply:",
        (OWNERSHIP,),
    ),
    Mutant(
        "lower attempts are put back first",
        "eventlog/outbox.py",
        " and d.attempt == lowest[d.evaluation_id]",
        "",
        (OUTBOX,),
    ),
    Mutant(
        "a finished attempt is kept until Postgres has it",
        "eventlog/outbox.py",
        "elif refusal and not (refusal is AppendResult.FENCED and buffer.finished):",
        "elif refusal:",
        (OUTBOX,),
    ),
    Mutant(
        "an outdated commit mark has no effect",
        SETTLE,
        " and not is_outdated(fence, attempt, sequence)",
        "",
        (LOG_RETENTION,),
    ),
    Mutant(
        "what another worker stored meanwhile is no gap",
        "storage_worker/stream_diff.py",
        "if known is None or (diff.row and _is_ahead(diff.row, entry.key, known)):",
        "if known is None:",
        (FOUND,),
    ),
    Mutant(
        "a sweep that broke off is taken up again",
        "storage_worker/storage.py",
        "        await self._sweep_page(self._interrupted)\n",
        "",
        (FOUND,),
    ),
    # The control plane and the data plane.
    Mutant(
        "opening waits until owners had the time to put their attempts back",
        "coordinator/reconcile_decision.py",
        "        return ReconcileAction.LOST if view.may_open else ReconcileAction.WAIT\n",
        "        return ReconcileAction.LOST\n",
        (RECONCILE,),
    ),
    Mutant(
        "a retry waits by the clock of Postgres, not by that of its executor",
        "projections/sql/ledger_evaluations.sql",
        "v.updated_at + greatest(least(retry.due_at - e.occurred_at, interval '1 day'), interval '0')",
        "retry.due_at",
        ("tests/conformance/projections/ledger/test_contract_attempts.py",),
    ),
    Mutant(
        "coordinators read the clock of Postgres, not their own",
        "eventlog/clock.py",
        "        return server_time + timedelta(seconds=self._monotonic() - at)\n",
        "        return utc_now()\n",
        ("tests/unit/eventlog/test_clock.py",),
    ),
    Mutant(
        "what was published in the current epoch waits for no grace",
        "coordinator/reconcile_decision.py",
        "        return self.is_settled or self.published is Published.CURRENT_EPOCH\n",
        "        return self.is_settled\n",
        (RECONCILE,),
    ),
    Mutant(
        "a grace ends early only when every executor has confirmed the epoch",
        "coordinator/grace.py",
        "shard.epoch in confirmed.get(name, ())[number : number + 1] for",
        "True for",
        (GRACE,),
    ),
    Mutant(
        "a loss of Redis's data waits for the whole grace",
        "coordinator/grace.py",
        "        if self._read_at is None or _data_of(before.epoch) != _data_of(epoch):\n",
        "        if self._read_at is None:\n",
        (GRACE,),
    ),
    Mutant(
        "an executor confirms an epoch once its tails are acknowledged in it",
        "eventlog/event_queue.py",
        "        behind = {self._shard(buffer) for buffer in self.outbox if buffer.awaits_reappend}\n",
        "        behind = set[int]()\n",
        (CONFIRMATION,),
    ),
    Mutant(
        "a claim of unknown fate keeps its shard unconfirmed",
        "eventlog/event_queue.py",
        "                behind.add(shard)\n",
        "                pass\n",
        (CONFIRMATION,),
    ),
    Mutant(
        "what was handed back, moved or never started is no retry",
        "projections/folds/change.py",
        "        and not opening.resumed\n",
        "",
        (CHANGE,),
    ),
    Mutant(
        "work that never started uses up no retry",
        "coordinator/attempts.py",
        "        return self.transient + self.lost - self.unstarted\n",
        "        return self.transient + self.lost\n",
        (ATTEMPTS,),
    ),
    Mutant(
        "an epoch survives only a clean stop of the embedded server",
        "scoreline/local/embedded/continuity.py",
        "        if exit_code == 0 and self._run_id:\n",
        "        if self._run_id:\n",
        (CONTINUITY,),
    ),
    Mutant(
        "what the stream knows better is left to storage",
        "coordinator/reconcile_decision.py",
        " or view.is_ahead",
        "",
        (RECONCILE,),
    ),
    Mutant(
        "an answer on record goes along",
        "coordinator/attempts.py",
        "        answer=answer,\n",
        "        answer=None,\n",
        (ATTEMPTS,),
    ),
    Mutant(
        "a case that kills its executors becomes a dead letter",
        "coordinator/attempts.py",
        "charges.lost >= LOST_LIMIT or ",
        "",
        (ATTEMPTS,),
    ),
    Mutant(
        "a window is opened once",
        "projections/sql/ledger_evaluations.sql",
        " AND published_to = %(after)s",
        "",
        (LEDGER,),
    ),
    Mutant(
        "an answer on record is not asked for again",
        "executor/replay.py",
        "    answer, scores = _paid_for(events[key] for key in sorted(events))\n",
        "    answer, scores = None, {}\n",
        (FOLD,),
    ),
    Mutant(
        "an opening appends no wake-up",
        APPEND,
        "mode ~= 'opening' and ",
        "",
        ("tests/conformance/eventlog/test_log_append_modes.py",),
    ),
    Mutant(
        "what was paid for is kept behind a fence",
        "eventlog/outbox.py",
        "            if refusal is AppendResult.FENCED and paid:\n",
        "            if False:\n",
        (OUTBOX,),
    ),
    Mutant(
        "only the holder of a task lets it go",
        "taskqueue/ack.lua",
        "ARGV[i], ARGV[i], 1, consumer)",
        "ARGV[i], ARGV[i], 1)",
        ("tests/conformance/taskqueue/test_tasks.py",),
    ),
    # The fleet stays under the limits of providers.
    Mutant(
        "a lane's rate",
        LANE,
        "{ 'rate', capacity(s.next_request_at, share) },",
        "{ 'rate', UNLIMITED },",
        (LANES,),
    ),
    Mutant(
        "a lane's tokens",
        LANE,
        "{ 'tokens', capacity(s.next_token_at, cost) },",
        "{ 'tokens', UNLIMITED },",
        (LANES,),
    ),
    Mutant(
        "a lane that was lost starts without burst credit",
        LANE,
        "s.next_request_at, s.paced_since = start + min(share, MAX_START_DELAY), now",
        "s.next_request_at, s.paced_since = start - BURST, now",
        (LANES,),
    ),
    Mutant(
        "a reservation is settled to what was used",
        LANE,
        "max(s.next_token_at, now - BURST) + (tokens - reserved) * 60 / tpm",
        "max(s.next_token_at, now - BURST)",
        (LANES, LANES_TRACES),
    ),
    Mutant(
        "Retry-After blocks a lane",
        LANE,
        "{ 'retry_after', now < s.blocked_until and 0 or UNLIMITED },",
        "{ 'retry_after', UNLIMITED },",
        (LANES, LANES_TRACES),
    ),
    Mutant(
        "the strictest limit in force binds every batch on a lane",
        LANE,
        "  policy_rpm, policy_tpm = stricter(policy_rpm, each[1]), stricter(policy_tpm, each[2])\n",
        "",
        (LANES, LANES_TRACES),
    ),
    Mutant(
        "the strictest limit in force binds every batch on a lane, in memory",
        "executor/lanes/limits.py",
        "max_concurrency, gap = int(stricter(max_concurrency, each.max_concurrency)), max(gap, each.gap)\n",
        "pass\n",
        (LANES_LIMITS, "tests/limits/test_limits.py"),
    ),
    Mutant(
        "a limit expires with its lease",
        LANE,
        "  if each[5] <= now then\n    limits[origin] = nil\n",
        "  if false then\n    limits[origin] = nil\n",
        (LANES, LANES_TRACES),
    ),
    Mutant(
        "limits of running batches are renewed",
        "executor/lanes/client.py",
        "            or now - self._declared_at[lane] >= RENEW\n",
        "",
        (EXECUTOR_LANES,),
    ),
    Mutant(
        "permits from before a stricter limit are not refunded",
        "executor/lanes/gcra.py",
        "    if granted_at < state.slowed_at + REFUND_MARGIN:\n        return state\n",
        "",
        (LANES_LIMITS,),
    ),
    Mutant(
        "calls of a batch are limited overall",
        "executor/batch_runtime.py",
        "return (*found, self.overall) if found and self.overall else found",
        "return found",
        (EXECUTOR_LANES,),
    ),
    Mutant(
        "no connection at first contact uses up no retry",
        "executor/lanes/permits.py",
        "            if use.lane in self.reached:\n                raise\n",
        "            raise\n",
        (EXECUTOR_LANES,),
    ),
    Mutant(
        "an endpoint that has answered is charged as before",
        "executor/lanes/permits.py",
        "            if use.lane in self.reached:\n                raise\n",
        "",
        (EXECUTOR_LANES,),
    ),
    Mutant(
        "an endpoint that never answered pauses its batch",
        "coordinator/auto_pause.py",
        " or await self._contacts.reason_to_pause(batch)",
        "",
        ("tests/acceptance/test_dead_endpoint.py",),
    ),
    Mutant(
        "faults from before a pause do not pause the batch again",
        "coordinator/first_contact.py",
        " - self.before - self.seen",
        " - self.seen",
        ("tests/unit/coordinator/test_first_contact.py",),
    ),
    Mutant(
        "one probe of all executors",
        LANE,
        "return (now < s.open_until or now < s.probe_until) and 0 or 1",
        "return now < s.open_until and 0 or 1",
        (LANES, LANES_TRACES),
    ),
    Mutant(
        "one probe of all executors, in memory",
        "executor/lanes/lane.py",
        "now < state.open_until or now < state.probe_until",
        "now < state.open_until",
        (LANES_ARITHMETIC,),
    ),
    Mutant(
        "no thundering herd after an outage",
        "executor/lanes/breaker.py",
        "        next_request_at=max(state.next_request_at, now) if state.next_request_at else 0.0,\n",
        "",
        (LANES_ARITHMETIC,),
    ),
    Mutant(
        "a 429 decreases concurrency once for all calls in flight",
        "executor/lanes/lane.py",
        "    if now - settlement.age < state.cut_at:\n        return state\n    state = aimd.decrease",
        "    state = aimd.decrease",
        (LANES_ARITHMETIC,),
    ),
    Mutant(
        "unused permits are returned",
        "executor/lanes/permits.py",
        "            self.acquired.popitem()[1].settle(CallOutcome.UNUSED)\n",
        "            self.acquired.popitem()\n",
        (EXECUTOR_LANES, "tests/integration/test_edge_cases.py"),
    ),
    Mutant(
        "an empty queue requests no permit",
        "executor/queue_selector.py",
        "                if queue in metered:\n                    self._make_idle(queue, now)\n",
        "",
        (EXECUTOR_LANES,),
    ),
    # Budgets, and what is asked through provider batches.
    Mutant(
        "a spent budget pauses its batch",
        "coordinator/auto_pause.py",
        "return await self._overspent(batch) or await self._streak_reason(batch)",
        "return await self._streak_reason(batch)",
        (BUDGETS,),
    ),
    Mutant(
        "a task is taken only with a reservation",
        "executor/budget/admission.py",
        "        if not wanted:\n            return await self._admission.admit(turns)\n",
        "        return await self._admission.admit(turns)\n",
        (EXECUTOR_BUDGET,),
    ),
    Mutant(
        "what a call cost is settled",
        "executor/budget/client.py",
        "        spend.settled += actual\n",
        "",
        (EXECUTOR_BUDGET,),
    ),
    Mutant(
        "a settlement is declared before its event is appended",
        "executor/budget/task_budget.py",
        "        await _declare(client)\n        return got\n",
        "        return got\n",
        (EXECUTOR_BUDGET,),
    ),
    Mutant(
        "storage lag is not taken for lost spend",
        "coordinator/budget_keeper.py",
        "if wait is None or (wait.spent, wait.recorded) != (view.spent, recorded):",
        "if wait is None:",
        (BUDGET_KEEPER,),
    ),
    Mutant(
        "a pause waits for the events of each executor",
        "coordinator/budget_keeper.py",
        "        return not any(\n            _exceeds(settled, recorded.get(holder, NOTHING))",
        "        return True or not any(\n            _exceeds(settled, recorded.get(holder, NOTHING))",
        (BUDGET_KEEPER,),
    ),
    Mutant(
        "an account is frozen before its batch pauses",
        "coordinator/budget_keeper.py",
        "return reason if reason and await self._is_final(batch, view) else None",
        "return reason",
        (BUDGET_KEEPER,),
    ),
    Mutant(
        "an executor that ends in good order leaves no reservation",
        "executor/budget/client.py",
        "            spend.held = spend.at_risk = NOTHING\n",
        "            pass\n",
        (EXECUTOR_BUDGET,),
    ),
    Mutant(
        "an executor holds a batch that fails in a row",
        "executor/scheduler.py",
        "        return self.streaks.held(now)\n",
        "        return set()\n",
        (FAILURE_STREAK,),
    ),
    Mutant(
        "a judge is reserved for",
        "executor/scoring.py",
        "score = await self._permits.budget.pay_for(describe, call, _amount_paid)",
        "score = await call()",
        (EXECUTOR_BUDGET,),
    ),
    Mutant(
        "a lost budget account grants nothing",
        "taskqueue/budget/account.py",
        "    if account is None:\n        return None, NO_ACCOUNT\n",
        "    account = account or BudgetAccount(None, None)\n",
        (BUDGET_ACCOUNTS, EXECUTOR_BUDGET),
    ),
    Mutant(
        "a re-created budget account waits for declarations",
        "taskqueue/budget/budget.lua",
        "ready_at = recovery > 0 and now + recovery or 0",
        "ready_at = 0",
        (BUDGET_ACCOUNTS,),
    ),
    Mutant(
        "reservations and spend stay within the limit",
        "taskqueue/budget/budget.lua",
        "granted = min(granted, floor(max(0, l[1] - l[2] - l[3]) / l[4]))",
        "granted = min(granted, floor(max(0, l[1] - l[2]) / l[4]))",
        (BUDGET_ACCOUNTS,),
    ),
    Mutant(
        "the calls of a dead executor count as spent",
        "taskqueue/budget/budget.lua",
        "        s.spent_cost, s.spent_tokens = add(s.spent_cost, cost), add(s.spent_tokens, tokens)\n",
        "",
        (BUDGET_ACCOUNTS,),
    ),
    Mutant(
        "a provider batch is as large as what can be reserved",
        "coordinator/provider_batches/builder.py",
        "if not self._fits_budget(draft, asked, spec):",
        "if False:",
        (PROVIDER_BATCH_BUDGETS,),
    ),
    Mutant(
        "a provider batch is written down before it is submitted",
        "coordinator/provider_batches/builder.py",
        "is_recorded = await self._context.repository.record_intent(provider_batch, draft.ids)",
        "is_recorded = True",
        (PROVIDER_BATCHES, PROVIDER_CRASH),
    ),
    Mutant(
        "a submission of unknown fate is looked for before it is paid again",
        "coordinator/provider_batches/recovery.py",
        "for seen in await self._candidates(provider_batch, provider):",
        "for seen in ():",
        (PROVIDER_CRASH,),
    ),
    Mutant(
        "a submission of unknown fate has time to appear",
        "coordinator/provider_batches/recovery.py",
        "if self._context.now() < too_late:",
        "if False:",
        (PROVIDER_BATCHES, PROVIDER_CRASH),
    ),
    Mutant(
        "a foreign provider batch is not adopted",
        "coordinator/provider_batches/recovery.py",
        "return number_in(provider_batch, result.custom_id) is not None",
        "return True",
        (PROVIDER_BATCHES,),
    ),
    Mutant(
        "what `completed` leaves out is folded from the attempt's stored events",
        "storage_worker/stream_diff.py",
        "_totals(row.cursor, stored) if diff.needs_totals else None",
        "None",
        (TOTALS,),
    ),
    Mutant(
        "the first readable entry of a key is the event",
        "eventlog/timeline.py",
        "        if first.setdefault(entry.key, entry) is not entry and repeated is not None:\n",
        "        first[entry.key] = entry\n        if repeated is None:\n",
        (TIMELINE,),
    ),
    Mutant(
        "an ended evaluation without a mark is found by the scan",
        "storage_worker/storage.py",
        "key not in rows or _is_unmarked(rows[key], marks.get(key))",
        "key not in rows",
        ("tests/integration/storage_worker/test_stream_scan.py",),
    ),
    Mutant(
        "streams that no wake-up leads to are found by a scan",
        "storage_worker/maintenance.py",
        "await consumer.scan.run_if_due(settings.scan_interval)",
        "pass",
        (FOREIGN,),
    ),
    Mutant(
        "a lower attempt's event after the fence is stale",
        "eventlog/timeline.py",
        "self._apply_contiguous(before=self.place[opening.key])",
        "self._apply_contiguous(before=len(self.place))",
        (ACROSS_ATTEMPTS,),
    ),
    Mutant(
        "a Redis Cluster is refused at start",
        "scoreline/servers/availability.py",
        'case "cluster":',
        'case "no cluster":',
        (SERVER_ERRORS,),
    ),
    Mutant(
        "missing privileges are named at start",
        "scoreline/servers/availability.py",
        "    if lacking:\n",
        "    if False:\n",
        (SERVER_ERRORS,),
    ),
    Mutant(
        "executors load no scripts",
        "deploy/redis/users.acl",
        "+info +time +evalsha\n  %RW~eval:{*}:events:*",
        "+info +time +evalsha +script|load\n  %RW~eval:{*}:events:*",
        (ACL,),
    ),
    Mutant(
        "executors delete no streams",
        "deploy/redis/users.acl",
        "(%RW~eval:{*}:fence:* +del +pexpire)",
        "+del +unlink +pexpire",
        (ACL,),
    ),
    Mutant(
        "the migrator makes no roles",
        "deploy/postgres/init.sql",
        "ALTER ROLE migrator NOCREATEROLE",
        "ALTER ROLE migrator CREATEROLE",
        (LEAST_PRIVILEGE,),
    ),
    Mutant(
        "only one may submit again",
        "projections/sql/provider_batches.sql",
        " AND claimed_at = %(claimed_at)s",
        "",
        (PROVIDER_BOOKS,),
    ),
    Mutant(
        "a result that is read again changes nothing",
        "coordinator/provider_batches/outcomes.py",
        "if standing.epoch or row.cursor != (asked, 0, Phase.QUEUED):",
        "if standing.epoch:",
        (PROVIDER_BATCHES, PROVIDER_CRASH),
    ),
    Mutant(
        "a withdrawal does not end an attempt that another owner has claimed",
        APPEND,
        "local whole = mode == 'tail' or mode == 'withdrawal'",
        "local whole = mode == 'tail'",
        (LOG_MODES,),
    ),
    Mutant(
        "what was withdrawn is opened for a provider, and nothing else is",
        "coordinator/decisions.py",
        "_is_to_begin(row, logged) and is_asked(events[0].data)",
        "is_asked(events[0].data)",
        (PROVIDER_WITHDRAWN,),
    ),
    # What a target does with its input is its own affair.
    Mutant(
        "a closed standard input is no error",
        "executor/sandbox/process.py",
        "with suppress(OSError, RuntimeError):\n                writer.write(stdin)",
        "if True:\n                writer.write(stdin)",
        (SANDBOX,),
    ),
    # What can't run is refused before anything starts.
    Mutant(
        "a batch that can't run is refused before anything starts",
        "scoreline/submit/preflight.py",
        "        _report(_findings(plan, wanted), console)\n",
        "        list(_findings(plan, wanted))\n",
        (PREFLIGHT,),
    ),
    # Python functions run in the user's world, and in no other.
    Mutant(
        "a function runs under the interpreter that was named",
        "executor/python_host/host.py",
        "python = interpreter_path(interpreter, workdir=workdir, environ=environ)",
        "python = sys.executable",
        (PYTHON_TARGET,),
    ),
    Mutant(
        "what the standard library loads late is loaded before the user's folder is on the path",
        "executor/python_host/function_server.py",
        "    importlib.import_module(_name)\n",
        "    pass\n",
        (PYTHON_TARGET,),
    ),
    Mutant(
        "None is no answer",
        "executor/targets/python.py",
        "        if value is None:\n",
        "        if False:\n",
        (PYTHON_TARGET,),
    ),
    # Scores on record stay, whatever became of the other evaluators.
    Mutant(
        "a time-out of an evaluator is transient",
        "executor/outcome.py",
        "case TargetTimedOut() | EvaluatorTimedOut() if retries > 0:",
        "case TargetTimedOut() if retries > 0:",
        (FAULTS,),
    ),
    Mutant(
        "scores are put on record before a fault of another evaluator closes the attempt",
        "executor/scoring.py",
        "            self._record_unpaid(new)\n",
        "",
        (EXECUTOR_RUN,),
    ),
    Mutant(
        "a failed evaluation keeps its scores",
        "projections/folds/scorecard.py",
        'scores=to_json(failed.scores) if failed.scores else b"[]"',
        'scores=b"[]"',
        (SCORECARD,),
    ),
    # A dry run calls nothing.
    Mutant(
        "--mode simulated replaces every target that makes calls",
        "scoreline/submit/spec/simulation.py",
        'IN_PROCESS_TARGETS = frozenset({"simulated", "recorded"})',
        'IN_PROCESS_TARGETS = frozenset({"simulated", "recorded", "anthropic"})',
        (SIMULATION_MODE,),
    ),
    Mutant(
        "--mode simulated replaces every evaluator that makes calls",
        "scoreline/submit/spec/builder.py",
        "evaluators = simulate_evaluators(given)",
        "evaluators = given",
        (SIMULATION_MODE,),
    ),
    Mutant(
        "a target beside --mode simulated is refused",
        "scoreline/submit/spec/builder.py",
        "        typed.refuse_calls()\n",
        "",
        (SIMULATION_MODE,),
    ),
    # Values that PostgreSQL or a reader cannot represent.
    Mutant(
        "an event time at an end of the calendar is refused on intake",
        "eventlog/codec.py",
        "    if not is_in_range(event.occurred_at):\n        return",
        "    if False:\n        return",
        (EXTREMES,),
    ),
    Mutant(
        "a stored time that Python cannot represent is clamped",
        "projections/sql/__init__.py",
        "from projections.sql import timestamps  #",
        "#",
        (EXTREMES,),
    ),
    # What the command line shows is true.
    Mutant(
        "dead letters are not progress",
        "scoreline/reports/progress_line.py",
        'counts = f"{snapshot.completed:,} of',
        'counts = f"{snapshot.done:,} of',
        (BATCH_STATUS,),
    ),
    Mutant(
        "a regression ends a comparison with its exit code",
        "scoreline/reports/compare.py",
        "return worse > 0",
        "return False",
        (COMPARE,),
    ),
    Mutant(
        "a printed command can be typed as printed",
        "scoreline/invocation.py",
        "return NAME if found and started.exists()",
        "return NAME if started.exists()",
        (INVOCATION,),
    ),
    Mutant(
        "a gate without an evaluator is refused",
        "scoreline/submit/spec/builder.py",
        'if keys.get("min_pass_rate") is not None and not evaluators:',
        'if keys.get("min_pass_rate") == 2.0 and not evaluators:',
        (PASS_RATE,),
    ),
    Mutant(
        "the pass rate counts dead letters as not passed",
        "scoreline/reports/pass_rate.py",
        "PassRate(snapshot.passed, snapshot.done,",
        "PassRate(snapshot.passed, snapshot.completed,",
        (PASS_RATE,),
    ),
    Mutant(
        "a batch without an evaluator has no pass rate",
        "scoreline/reports/pass_rate.py",
        'return spec is None or bool(from_json(spec).get("evaluators"))',
        "return spec is None or bool(from_json(spec))",
        (PASS_RATE,),
    ),
    # Promises at the command line.
    Mutant(
        "a batch is accepted in one transaction",
        "projections/ledger/postgres.py",
        "                await _insert_chunk(conn, month, batch.batch_id, chunk)\n",
        "                async with transaction(self._pool) as other:\n"
        "                    await _insert_chunk(other, month, batch.batch_id, chunk)\n",
        (f"{PROMISES}::test_a_batch_is_accepted_whole_or_not_at_all",),
    ),
    Mutant(
        "a sandboxed program has no network",
        "executor/sandbox/bubblewrap_options.py",
        '"--unshare-net", ',
        "",
        (f"{PROMISES}::test_untrusted_code_reaches_nothing",),
    ),
    # The `code` evaluator passes programs that ran to their end.
    Mutant(
        "a program passes only with its sentinel",
        "executor/evaluators/code.py",
        "outcome.killed_by is None and is_complete",
        "outcome.killed_by is None",
        (CODE_VERDICTS,),
    ),
    Mutant(
        "a request alone is no proof of a program's end",
        "executor/evaluators/completion.py",
        "return self._received == self._ticket + self._sentinel",
        "return self._received.startswith(self._ticket)",
        (COMPLETION, CODE_VERDICTS),
    ),
    Mutant(
        "a forked process reports no end",
        "executor/evaluators/code_driver.py",
        "    if getpid() == pid:\n",
        "    if getpid():\n",
        (CODE_VERDICTS,),
    ),
    Mutant(
        "no variable of the driver holds its ticket while the program runs",
        "executor/evaluators/code_driver.py",
        "        _report(channel, pid, read(channel, TICKET_BYTES), exec(code, module.__dict__))",
        "        ticket = read(channel, TICKET_BYTES)\n"
        "        _report(channel, pid, ticket, exec(code, module.__dict__))",
        (CODE_VERDICTS,),
    ),
    Mutant(
        "a request without the ticket is answered with nothing",
        "executor/evaluators/completion.py",
        "                if self._received == self._ticket:\n",
        "                if len(self._received) == TICKET_BYTES:\n",
        (COMPLETION,),
    ),
    # Directories of sandboxed runs.
    Mutant(
        "directories of killed executors are removed at the next start",
        "executor/app.py",
        "if removed := await asyncio.to_thread(remove_abandoned):",
        "if removed := 0:",
        (RUN_DIRECTORIES,),
    ),
    Mutant(
        "directories of live executors are left alone",
        "executor/sandbox/run_directories.py",
        "        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        ("tests/unit/executor/sandbox/test_run_directories.py",),
    ),
    Mutant(
        "the first process of a sandbox can't be traced",
        "executor/sandbox/bubblewrap_options.py",
        '"--perms", "0111"',
        '"--perms", "0555"',
        (f"{WALLS}::test_the_first_process_is_executable_and_not_readable",),
    ),
    Mutant(
        "the self-test refuses a first process that can be traced",
        "executor/sandbox/isolation_checks.py",
        "(: < /proc/1/environ) 2>/dev/null || exit 0",
        "exit 0",
        (f"{FIRST_PROCESS}::test_the_self_test_refuses_a_first_process_that_can_be_traced",),
    ),
    Mutant(
        "pidfd_getfd is refused",
        "executor/sandbox/seccomp.py",
        '"pidfd_getfd": (438, 438), ',
        "",
        (f"{SECCOMP}::test_dangerous_calls_are_refused",),
    ),
    Mutant(
        "address families other than AF_UNIX and AF_INET are refused",
        "executor/sandbox/seccomp.py",
        "yield _refused(_EAFNOSUPPORT)",
        "yield _step(_RETURN, _ALLOW)",
        (f"{SECCOMP}::test_only_two_address_families_are_allowed",),
    ),
    Mutant(
        "variables of the user reach no privileged tool",
        "executor/sandbox/bubblewrap_options.py",
        "return [*command, *with_variables(job.argv, variables)]",
        "return with_variables((*command, *job.argv), variables)",
        (f"{WALLS}::test_limits_come_before_the_change_of_user_and_that_before_variables_and_the_program",),
    ),
    Mutant(
        "a folder with a live socket is not bound",
        "executor/targets/host_files.py",
        "        if _is_live(place):\n",
        "        if not place:\n",
        (HOST_FILES,),
    ),
    Mutant(
        "the data directory is not bound",
        "executor/targets/host_files.py",
        "    _refuse_data_directory(found, data_dir)\n",
        "",
        (HOST_FILES,),
    ),
    Mutant(
        "shared anonymous memory is refused where no cgroup counts it",
        "executor/sandbox/seccomp.py",
        "*([] if shared_memory else _shared_anonymous(_MMAP[column])),",
        "",
        (f"{SANDBOX_MEMORY}::test_memory_that_outlives_its_mapping_is_refused",),
    ),
    Mutant(
        "/dev/zero can't be mapped",
        "executor/sandbox/bubblewrap_options.py",
        '    yield from ("--dev-bind", "/dev/full", "/dev/zero")\n',
        "",
        (f"{SANDBOX_MEMORY}::test_memory_that_outlives_its_mapping_is_refused",),
    ),
    Mutant(
        "files of a sandbox are counted",
        "executor/sandbox/resource_monitor.py",
        'return "disk" if now.files > limits.files else None',
        "return None",
        (f"{SANDBOX_MEMORY}::test_empty_files_are_counted",),
    ),
    Mutant(
        "the first process joins the cgroup of its run",
        "executor/sandbox/pid_namespace.py",
        "self._cgroup.add(self.first)",
        "pass",
        (f"{SANDBOX_CGROUP}::test_shared_memory_is_allowed_up_to_the_limit_and_not_beyond",),
    ),
    Mutant(
        "a run that the kernel killed for memory has exceeded its memory limit",
        "executor/sandbox/sandbox.py",
        "if cgroup and cgroup.ran_out():",
        "if cgroup and False:",
        (f"{SANDBOX_CGROUP}::test_the_kernel_keeps_the_limit_where_no_sample_does",),
    ),
    Mutant(
        "a sandbox is killed through the pidfd of its first process",
        "executor/sandbox/pid_namespace.py",
        "signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)",
        "pass",
        (f"{FIRST_PROCESS}::test_a_namespace_that_is_not_empty_is_reported",),
    ),
    Mutant(
        "an outcome is given only of an empty namespace",
        "executor/sandbox/sandbox.py",
        "is_empty = await namespace.emptied(_SECONDS_TO_DIE)",
        "is_empty = await namespace.emptied(_SECONDS_TO_DIE) or True",
        (f"{FIRST_PROCESS}::test_an_outcome_is_given_only_of_a_namespace_that_is_empty",),
    ),
    Mutant(
        "no program starts without the executor's word",
        "executor/sandbox/init.py",
        "read -r go || exit 1;",
        "read -r go;",
        (f"{FIRST_PROCESS}::test_no_program_starts_without_the_executors_confirmation",),
    ),
    Mutant(
        "what a killed executor left unbuilt is ended by the next",
        "executor/sandbox/orphans.py",
        "signal.pidfd_send_signal(pidfd, signal.SIGKILL)",
        "pass",
        (f"{FIRST_PROCESS}::test_a_sandbox_that_was_never_built_is_ended_by_the_next",),
    ),
    # Each wall of the sandbox, missed by programs of the escape corpus.
    Mutant(
        "the seccomp filter of a sandbox",
        "executor/sandbox/assembly.py",
        "if calls := _FILTERS[shared_memory]:",
        "if (calls := _FILTERS[shared_memory]) and False:",
        (ESCAPES,),
    ),
    Mutant(
        "a sandboxed program has a user id of its own",
        "executor/sandbox/assembly.py",
        "secrets.randbelow(_UIDS) if privilege_mode is PrivilegeMode.OWN_UID else None",
        "secrets.randbelow(_UIDS) if privilege_mode is not PrivilegeMode.OWN_UID else None",
        (ESCAPES,),
    ),
    Mutant(
        "a sandbox has a network namespace",
        "executor/sandbox/bubblewrap_options.py",
        '"--unshare-net", ',
        "",
        (ESCAPES,),
    ),
    Mutant(
        "a sandbox has a pid namespace",
        "executor/sandbox/bubblewrap_options.py",
        '("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")\n'
        '    yield from (\n        "--as-pid-1",\n',
        '("--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")\n    yield from (\n',
        (ESCAPES,),
    ),
    Mutant(
        "the size of a sandbox's file systems",
        "executor/sandbox/bubblewrap_options.py",
        '"--size", str(limits.disk_mb * MEGABYTE), ',
        "",
        (ESCAPES,),
    ),
    Mutant(
        "RLIMIT_NPROC of a sandboxed program",
        "executor/sandbox/bubblewrap_options.py",
        'f"--nproc={job.limits.processes}", ',
        "",
        (ESCAPES,),
    ),
    Mutant(
        "the time limit of a sandboxed program",
        "executor/sandbox/process.py",
        'call_later(seconds, self.kill, "time")',
        'call_later(seconds + 60, self.kill, "time")',
        (ESCAPES,),
    ),
    Mutant(
        "socket buffers count as memory of a run",
        "executor/sandbox/resource_monitor.py",
        'socket_buffers(Path(f"/proc/{first}/net"))',
        "0 and socket_buffers(_HOST)",
        (ESCAPES,),
    ),
    Mutant(
        "huge pages can't be pinned in pipes",
        "executor/sandbox/seccomp.py",
        '"vmsplice": (278, 75), ',
        "",
        (ESCAPES,),
    ),
    Mutant(
        "sizes of socket buffers are ignored",
        "executor/sandbox/seccomp.py",
        "_IGNORE = _REFUSE\n",
        "_IGNORE = _ALLOW\n",
        (ESCAPES,),
    ),
    Mutant(
        "threads count as processes",
        "executor/sandbox/resource_monitor.py",
        'return _ProcessUsage(found.get("Threads", 0), ',
        "return _ProcessUsage(1, ",
        (ESCAPES,),
    ),
    Mutant(
        "keys and tables of the kernel are hidden",
        "executor/sandbox/bubblewrap_options.py",
        'yield from ("--ro-bind", "/dev/null", listing)',
        "pass",
        (ESCAPES,),
    ),
    Mutant(
        "the output cap of a sandboxed program",
        "executor/sandbox/process.py",
        '            self.kill("output")\n',
        "            pass\n",
        (ESCAPES,),
    ),
    # A Python function shares its process with the host's protocol.
    Mutant(
        "replies without the key of their host end it",
        "executor/python_host/host.py",
        "if not secrets.compare_digest(header[:KEY_BYTES], self._key) or length > MAX_REPLY:",
        "if length > MAX_REPLY:",
        (PROTOCOL_DESCRIPTORS,),
    ),
    Mutant(
        "calls that lost their host to another call are made again",
        "executor/python_host/pool.py",
        "            except SharedHostLost:\n                return await self._call_alone(call)\n",
        "            except SharedHostLost:\n                raise\n",
        (PROTOCOL_DESCRIPTORS,),
    ),
    Mutant(
        "a call that had not started is not the cause of its host's end",
        "executor/python_host/host.py",
        "return number in self._started and is_alone",
        "return is_alone",
        (PYTHON_TARGET,),
    ),
    # The self-test of the sandbox.
    Mutant(
        "a sandbox with an open wall is refused",
        "executor/sandbox/probe.py",
        "for wall in walls if not wall.held)",
        "for wall in walls if False)",
        (WALL_CHECKS,),
    ),
    Mutant(
        "the self-test tries to connect to the host",
        "executor/sandbox/isolation_probe.py",
        '    "network": _network,\n',
        "",
        (WALL_CHECKS,),
    ),
    Mutant(
        "a limit that did not stop its program is reported",
        "executor/sandbox/limit_checks.py",
        "        if outcome.exit_code == REFUSED or",
        "        if outcome.exit_code == 0 or outcome.exit_code == REFUSED or",
        (WALL_CHECKS,),
    ),
    Mutant(
        "an executor tests its sandbox at its start",
        "executor/app.py",
        "asyncio.create_task(_log_self_test(environment))",
        "asyncio.create_task(asyncio.sleep(0))",
        (f"{SANDBOX_CHECK}::test_an_executor_tests_its_sandbox_at_its_start",),
    ),
    # Local runs: scoped to their batch, interrupted on record, with a safe path.
    Mutant(
        "an executor serves only the batches of its run",
        "domain/eligibility.py",
        "run_id == self.run_id and self.project",
        "self.project",
        (EXECUTOR_CONTROL,),
    ),
    Mutant(
        "an executor serves a batch only if it declares its labels",
        "domain/eligibility.py",
        " and self.labels.issuperset(requires)",
        "",
        (EXECUTOR_CONTROL,),
    ),
    Mutant(
        "a coordinator leads only the batches of its run",
        "projections/sql/ledger_batches.sql",
        "b.finished_at IS NULL AND b.run_id = %(run_id)s ELSE",
        "b.finished_at IS NULL ELSE",
        (LEDGER,),
    ),
    Mutant(
        "a run that was replaced pauses nothing",
        "projections/sql/ledger_batches.sql",
        "      AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)\n",
        "",
        (LEDGER,),
    ),
    Mutant(
        "provider batches of another run are left to it",
        "coordinator/provider_batches/driver.py",
        "if provider_batch.batch_id not in elsewhere",
        "if provider_batch.batch_id",
        (PROVIDER_BATCHES,),
    ),
    Mutant(
        "a redirect of a provider is refused",
        "providers/bounded_replies.py",
        "if 300 <= response.status_code < 400:",
        "if response.status_code < 0:",
        (BOUNDED_REPLIES, HOSTILE_REPLIES),
    ),
    Mutant(
        "a client sends to its own origin only",
        "providers/bounded_replies.py",
        "if _origin(request.url) != own:",
        "if not own:",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "decompression stops at the limit",
        "providers/decompression.py",
        "if self._size > self._limit:",
        "if self._size < 0:",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "a body is counted after its decompression",
        "providers/bounded_replies.py",
        "limiter.bound(response, _limit_of(response))",
        "_ = limiter",
        (BOUNDED_REPLIES, HOSTILE_REPLIES),
    ),
    Mutant(
        "few large replies are held at the same time",
        "providers/bounded_replies.py",
        "self._size > BUFFERED_FREELY and not",
        "self._size < 0 and not",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "an event of a stream is bounded",
        "providers/bounded_replies.py",
        "if self._since_blank > self._limit.event:",
        "if self._since_blank < 0:",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "the values of JSON are counted before they are made",
        "providers/json_reader.py",
        "    check_values(text)\n",
        "",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "JSON that is nested too deep is no reply",
        "providers/json_reader.py",
        "except RecursionError:",
        "except MemoryError:",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "a charset of a reply is an encoding of text",
        "executor/targets/http_replies.py",
        "return found.name if found.name in _TEXT_ENCODINGS else",
        "return found.name if found else",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "a file of results has a least rate",
        "coordinator/provider_batches/result_file.py",
        "asyncio.timeout(FIRST_WAIT + size / LEAST_RATE - waited)",
        "asyncio.timeout(FIRST_WAIT)",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "a line of results that is too long is not held",
        "coordinator/provider_batches/result_file.py",
        "if held is None or len(held) + len(more) > longest:",
        "if held is None:",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "deny_private refuses special-purpose addresses",
        "executor/targets/special_addresses.py",
        "address not in GLOBAL_V6 or any(",
        "not address.is_global or any(",
        (HTTP_TARGET,),
    ),
    Mutant(
        "the address inside of an IPv6 address is judged",
        "executor/targets/special_addresses.py",
        "return is_special(inside)",
        "return False",
        (HTTP_TARGET,),
    ),
    Mutant(
        "a damaged append-only file is moved aside",
        "scoreline/local/embedded/valkey.py",
        "if not damage or not any(",
        "if True or not any(",
        (f"{DAMAGED_FILE}::test_damaged_files_are_moved_aside_and_the_server_starts",),
    ),
    Mutant(
        "files without a manifest are moved aside",
        "scoreline/local/embedded/valkey.py",
        "if has_lost_manifest(data):",
        "if False:",
        (f"{DAMAGED_FILE}::test_damaged_files_are_moved_aside_and_the_server_starts",),
    ),
    Mutant(
        "a full disk is no damage",
        "scoreline/local/embedded/damage.py",
        "if any(other in log for other in _NO_DAMAGE):",
        "if False:",
        (f"{DAMAGED_FILE}::test_other_failures_do_not_count_as_damage",),
    ),
    Mutant(
        "a log that was changed after a clean stop keeps no epoch",
        "scoreline/local/embedded/continuity.py",
        "[2] != self._log_files()",
        '[2] == "never"',
        (f"{DAMAGED_FILE}::test_a_log_that_was_changed_after_a_clean_stop_keeps_no_epoch",),
    ),
    Mutant(
        "a command that Redis rejects for good is not taken for an outage",
        "eventlog/redis_errors.py",
        "    if isinstance(error, _TRANSIENT):\n",
        "    if isinstance(error, (*_TRANSIENT, ResponseError)):\n",
        ("tests/unit/eventlog/test_redis_errors.py",),
    ),
    Mutant(
        "a writer logs what Redis rejects, and keeps its events",
        "eventlog/event_queue.py",
        "self._note_rejection(error)\n                await asyncio",
        "return\n                await asyncio",
        (QUEUE,),
    ),
    Mutant(
        "a key of the wrong type is moved out of the way",
        "eventlog/scripts.py",
        "if places and await quarantine(",
        "if not places and await quarantine(",
        (REDIS_LOG, REDIS_QUEUE),
    ),
    Mutant(
        "a fence of the wrong type does not stop marks",
        "eventlog/key_quarantine.py",
        "if not is_wrong_type(error) or not await quarantine(redis, names):",
        "if True:",
        (REDIS_LOG,),
    ),
    Mutant(
        "a lost stream changes the epoch of its shard",
        "eventlog/quarantine.lua",
        "if shard then redis.call('DEL', shard .. ':epoch') end",
        "",
        (REDIS_LOG,),
    ),
    Mutant(
        "a key in quarantine is kept",
        "eventlog/quarantine.lua",
        "redis.call('RENAME', key, name)",
        "redis.call('DEL', key)",
        (REDIS_LOG,),
    ),
    Mutant(
        "an interrupt pauses the batch on record",
        "scoreline/local/supervisor.py",
        "self._stop(Stop(reason, INTERRUPTED, pauses=self._serves))",
        "self._stop(Stop(reason, INTERRUPTED, pauses=False))",
        (INTERRUPTION,),
    ),
    Mutant(
        "a batch that is over is reported, though its run was interrupted",
        "scoreline/local/supervisor.py",
        "if self.stop is None or (outcome and outcome.is_over):",
        "if self.stop is None:",
        (f"{INTERRUPTION}::test_a_batch_that_completed_before_its_pause_is_reported",),
    ),
    Mutant(
        "watching ends once no process of a local run serves its batch",
        "scoreline/reports/batch_poller.py",
        "if is_over(view.snapshot) or self._is_abandoned(view):",
        "if is_over(view.snapshot):",
        (f"{BATCH_STATUS}::test_watching_ends_when_its_local_run_is_gone",),
    ),
    Mutant(
        "a cancelled watch is not taken for an outage",
        "scoreline/reports/batch_poller.py",
        "                _raise_if_cancelled(error)\n",
        "",
        (INTERRUPTION,),
    ),
    Mutant(
        "a process that can't start is not restarted",
        "scoreline/local/processes.py",
        "return child.failed_starts >= START_ATTEMPTS",
        "return False",
        (PROCESSES,),
    ),
    # Hostile files: limits hold while they are read.
    Mutant(
        "a token is bounded before the parser has it whole",
        "scoreline/submit/datasets/metered_stream.py",
        "if self._unyielded > MAX_ROW_BYTES + READ_AHEAD:",
        "if False:",
        (DATASET_LIMITS, DATASET_FORMATS),
    ),
    Mutant(
        "a document is parsed without paths that grow with its depth",
        "scoreline/submit/datasets/json_document.py",
        "            refuse_depth(depth, MAX_DOCUMENT_DEPTH)\n",
        "",
        (DATASET_LIMITS,),
    ),
    Mutant(
        "nodes passed over in YAML have a limit of depth",
        "scoreline/submit/datasets/yaml_document.py",
        "        refuse_depth(depth, MAX_DOCUMENT_DEPTH)\n",
        "",
        (DATASET_LIMITS,),
    ),
    Mutant(
        "a record of a document has a limit of depth",
        "scoreline/submit/datasets/json_document.py",
        "        refuse_depth(depth)\n",
        "",
        (HOSTILE_FILES, DATASET_FORMATS),
    ),
    Mutant(
        "a row of a table ends at its limit",
        "scoreline/submit/datasets/line_formats.py",
        "            refuse_too_long(self.size)  # quoted",
        "            # quoted",
        (DATASET_LIMITS,),
    ),
    Mutant(
        "gzip that unfolds without measure is refused",
        "scoreline/submit/datasets/file_formats.py",
        "if self._count > max(ALWAYS_UNPACKED, MAX_RATIO * self._file.count):",
        "if False:",
        (DATASET_LIMITS,),
    ),
    Mutant(
        "ids of a dataset are moved to disk",
        "scoreline/submit/datasets/id_index.py",
        "if len(self._newest) >= MAX_IN_MEMORY:",
        "if False:",
        (DATASET_LIMITS,),
    ),
    Mutant(
        "aliases are refused where a value is built",
        "scoreline/submit/datasets/plain_yaml.py",
        "            case yaml.AliasEvent():\n                raise _alias()\n",
        "            case yaml.AliasEvent():\n                return None\n",
        (HOSTILE_FILES, DATASET_FORMATS),
    ),
    Mutant(
        "a spec has a limit of values",
        "scoreline/submit/datasets/plain_yaml.py",
        "if self._nodes > MAX_NODES:",
        "if False:",
        (HOSTILE_SPECS,),
    ),
    Mutant(
        "a spec has a limit of size",
        "scoreline/submit/datasets/plain_yaml.py",
        "if self._metered.offset > MAX_COMPOSED_BYTES:",
        "if False:",
        (HOSTILE_SPECS,),
    ),
    Mutant(
        "turns of a conversation are limited",
        "scoreline/submit/groups.py",
        "if len(turns) == MAX_TURNS:",
        "if False:",
        (DATASET_LIMITS,),
    ),
    Mutant(
        "half characters of a fault are replaced before it is recorded",
        "executor/outcome.py",
        "whole = without_half_characters(redact_head(message, MAX_MESSAGE))",
        "whole = redact_head(message, MAX_MESSAGE)",
        (FUZZ,),
    ),
    Mutant(
        "what a provider names an error is made fit for an event",
        "coordinator/provider_batches/result_reader.py",
        'name = _CONTROL.sub(" ", without_half_characters(redact_head(kind, MAX_KIND))).strip()',
        "name = kind",
        (FUZZ,),
    ),
    Mutant(
        "the text of a stream event is a text",
        "providers/streams.py",
        "if not isinstance(value, str):",
        "if False:",
        (FUZZ,),
    ),
    Mutant(
        "the text of a stream is bounded while it comes",
        "providers/streams.py",
        "    if size > MAX_TEXT:\n",
        "    if False:\n",
        ("tests/unit/providers/test_requests.py",),
    ),
    Mutant(
        "JSON is counted and read in the same encoding",
        "providers/json_reader.py",
        'json.loads(text.decode("utf-8-sig", "surrogatepass"))',
        "json.loads(text)",
        (BOUNDED_REPLIES,),
    ),
    Mutant(
        "YAML that no value can be made of is a bad row",
        "scoreline/submit/datasets/plain_yaml.py",
        "except (ValueError, LookupError, OverflowError):  # the patterns",
        "except ArithmeticError:  # the patterns",
        (FUZZ,),
    ),
    Mutant(
        "a price is a finite amount",
        "providers/prices.py",
        "Field(ge=0, le=1e9)",
        "Field()",
        (PROVIDER_PRICES,),
    ),
    Mutant(
        "questions are looked up in pages of bounded size",
        "coordinator/acceptance.py",
        "if len(waiting) >= LOOK_UP or held >= LOOK_UP_BYTES:",
        "if len(waiting) >= LOOK_UP:",
        (ACCEPTING,),
    ),
    Mutant(
        "evaluations are accepted in chunks of bounded size",
        "projections/ledger/postgres.py",
        "if len(chunk) == size or held >= ACCEPT_BYTES:",
        "if len(chunk) == size:",
        (ACCEPTING,),
    ),
    Mutant(
        "service processes import nothing from the working directory",
        "scoreline/local/processes.py",
        '"-P", "-m", "scoreline"',
        '"-m", "scoreline"',
        (f"{RUNS}::test_modules_of_the_user_do_not_take_the_place_of_ours",),
    ),
    Mutant(
        "results have a row for each evaluator of the spec",
        "scoreline/reports/report.py",
        "dict.fromkeys([*listed, *by_name])",
        "dict.fromkeys(by_name)",
        (REPORT,),
    ),
    Mutant(
        "the reason of a failed case is that of the evaluators that failed it",
        "scoreline/reports/export_record.py",
        "for each in failed or reasons)",
        "for each in reasons)",
        (EXPORT,),
    ),
    # Secrets: redacted in every form, before a text is cut, wherever it is written; refused in specs.
    Mutant(
        "secrets are redacted in every event",
        "eventlog/codec.py",
        "    payload = redact_payload(payload)\n",
        "",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted in an answer before it is judged",
        "executor/target_call.py",
        "return replace(reply, answer=redact_answer(reply.answer))",
        "return reply",
        (STORED_SECRETS,),
    ),
    Mutant(
        "secrets are redacted before a text is cut",
        "eventlog/redaction.py",
        "return self.redact(text[: self._window(limit)])[:limit]",
        "return self.redact(text[:limit])",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted beneath escapes",
        "eventlog/redaction.py",
        "LAYERS = 3",
        "LAYERS = 0",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted at each alignment of base64",
        "eventlog/redaction.py",
        "for offset in range(3):",
        "for offset in range(1):",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted at the edge of a text",
        "eventlog/redaction.py",
        "        if len(text) < size or not joined:\n",
        "        if True:\n",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted in log lines",
        "scoreline/observability/logs.py",
        "redact(json.dumps(line, default=str))",
        "json.dumps(line, default=str)",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted in spans",
        "eventlog/tracing.py",
        "redact(value) if isinstance(value, str) else value",
        "value",
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted in uncaught exceptions",
        "scoreline/observability/logs.py",
        'redact("".join(traceback.format_exception(kind, error, where)))',
        '"".join(traceback.format_exception(kind, error, where))',
        (REDACTION,),
    ),
    Mutant(
        "secrets are redacted in trouble of a provider batch",
        "coordinator/provider_batches/provider.py",
        "super().__init__(redact(message))",
        "super().__init__(message)",
        (REDACTION,),
    ),
    Mutant(
        "what $NAME stands for is known as a secret",
        "providers/headers.py",
        "    KNOWN.add(secrets_of(headers, environ))\n",
        "",
        (HTTP_SECRET,),
    ),
    Mutant(
        "libraries log no headers",
        "scoreline/observability/logs.py",
        "return record.levelno >= logging.WARNING or",
        "return True or",
        (REDACTION,),
    ),
    Mutant(
        "$NAME headers are filled in for provider batches",
        "coordinator/provider_batches/anthropic_batches.py",
        "filled = fill_in(headers, self._environ)",
        "filled = headers",
        (f"{SECRETS}::test_headers_name_variables_for_provider_batches_too",),
    ),
    Mutant(
        "keys in the query of a URL are refused",
        "executor/targets/http.py",
        "        check_query(url)\n",
        "",
        (SPEC_SECRETS,),
    ),
    Mutant(
        "keys in headers are refused",
        "executor/targets/headers.py",
        "if SECRET_NAME.search(name) and not",
        "if False and not",
        (SPEC_SECRETS,),
    ),
    Mutant(
        "embedded servers create private files",
        "scoreline/private_files.py",
        "PRIVATE_UMASK = 0o077",
        "PRIVATE_UMASK = 0",
        (f"{SECRETS}::test_data_that_others_could_read_is_closed_to_them",),
    ),
    Mutant(
        "data that others could read is repaired",
        "scoreline/private_files.py",
        "    if is_ours and stat",
        "    if False and stat",
        (f"{SECRETS}::test_data_that_others_could_read_is_closed_to_them",),
    ),
)
