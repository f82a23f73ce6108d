COPY events (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
FROM STDIN (FORMAT binary)
