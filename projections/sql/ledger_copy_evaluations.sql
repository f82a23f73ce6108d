COPY evaluations (evaluation_id, batch_id, month, shard, attempt, sequence, state, case_id, variant, repetition)
FROM STDIN (FORMAT binary)
