SELECT month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id,
       convert_to(event::text, 'UTF8')
FROM events
WHERE month = %b AND evaluation_id = ANY(%b)
ORDER BY evaluation_id, attempt, sequence;
