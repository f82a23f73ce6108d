-- Those of a serial group whose predecessor has ended, and of whom nobody has been told.
SELECT l.evaluation_id, l.follows, l.recalls::text
FROM batches b
JOIN evaluations v ON v.batch_id = b.batch_id AND v.evaluation_id <= b.published_to
JOIN serial_links l ON l.evaluation_id = v.evaluation_id
JOIN evaluations before ON before.evaluation_id = l.follows
WHERE b.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.epoch = '' AND before.ended_at IS NOT NULL
  -- Most batches have no groups, and are asked about in every round.
  AND EXISTS (SELECT FROM serial_links any_link WHERE any_link.batch_id = %(batch_id)s)
ORDER BY l.evaluation_id
LIMIT %(limit)s;
