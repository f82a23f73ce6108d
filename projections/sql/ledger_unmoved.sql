-- Published evaluations that have not ended nor moved for a while; those whose owner lives and is within
-- its time are left out, and the queued ones where somebody is sure to come for them.
SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL
  AND v.evaluation_id > %(after)s AND v.evaluation_id <= %(published_to)s
  AND v.asked_in IS NULL
  AND v.updated_at < now() - %(unchanged_for)s::interval
  AND (%(queued)s OR v.state <> 'queued')
  AND v.state <> 'retrying'
  AND NOT (v.owner IS NOT NULL AND v.owner = ANY(%(live)s) AND v.updated_at > now() - %(hung_after)s::interval)
ORDER BY v.evaluation_id
LIMIT %(limit)s;
