-- The sweep's pages, in order of id: what has not ended and has not moved for a while. Of a batch that
-- was submitted, nobody but its coordinator knows what lies beyond `published_to`.
SELECT e.evaluation_id
FROM batches b
CROSS JOIN LATERAL (
    SELECT v.evaluation_id
    FROM evaluations v
    WHERE v.batch_id = b.batch_id AND v.ended_at IS NULL AND v.evaluation_id > %(after)b
      AND v.asked_in IS NULL
      AND (b.kind = 'external' OR v.evaluation_id <= b.published_to)
      AND v.updated_at < now() - make_interval(secs => %(unchanged_for)b)
    ORDER BY v.evaluation_id
    LIMIT %(limit)b
) e
WHERE b.finished_at IS NULL
ORDER BY e.evaluation_id
LIMIT %(limit)b;
