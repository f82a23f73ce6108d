SELECT event::text, verdict, entry_id, recorded_at
FROM events
WHERE month = %s AND evaluation_id = %s
ORDER BY attempt, sequence;
