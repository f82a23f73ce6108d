SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
             AND e.attempt = v.attempt AND e.sequence = v.sequence
-- A time in another notation, stored by an earlier release, must not fail the query: such a retry is due.
CROSS JOIN LATERAL (
    SELECT CASE WHEN e.event #>> '{data,retry_at}' ~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'
           THEN (e.event #>> '{data,retry_at}')::timestamptz END AS due_at
) retry
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id <= %(published_to)s
  AND v.state = 'retrying'
  -- Both times are of the executor's clock: their difference is how long to wait since it was stored here.
  AND (retry.due_at IS NULL OR
       v.updated_at + greatest(least(retry.due_at - e.occurred_at, interval '1 day'), interval '0') <= %(now)s)
ORDER BY v.evaluation_id
LIMIT %(limit)s;
