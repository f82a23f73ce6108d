-- Those of a serial group whose predecessor has ended, and of whom nobody has been told.
SELECT l.evaluation_id, l.follows, l.recalls::text
FROM serial_links l
JOIN evaluations v ON v.evaluation_id = l.evaluation_id
JOIN evaluations before ON before.evaluation_id = l.follows
WHERE l.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.epoch = '' AND v.attempt = 1
  AND before.ended_at IS NOT NULL
ORDER BY l.evaluation_id
LIMIT %(limit)s;
