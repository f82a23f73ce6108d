-- How long events lay in Redis before they were stored; two clocks, so less than nothing counts as nothing.
WITH delays AS (
    SELECT greatest(
        0, extract(epoch FROM e.recorded_at)::double precision
           - split_part(e.entry_id, '-', 1)::double precision / 1000
    ) AS seconds
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    -- Openings that were committed first lay nowhere.
    WHERE v.batch_id = %s AND e.entry_id ~ '^[0-9]+-' AND split_part(e.entry_id, '-', 2)::numeric < 1000000
)
SELECT 'arrived → stored', count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds),
       max(seconds)
FROM delays
HAVING count(*) > 0;
