-- Events that arrived after one of their successors, and the evaluations this happened to.
WITH arrivals AS (
    SELECT e.evaluation_id, e.attempt, e.sequence,
           split_part(e.entry_id, '-', 1)::numeric * 1000000 + split_part(e.entry_id, '-', 2)::numeric AS arrival
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    -- Openings that were committed first bear the time of another clock.
    WHERE v.batch_id = %s AND split_part(e.entry_id, '-', 2)::numeric < 1000000
), compared AS (
    SELECT evaluation_id, arrival,
           min(arrival) OVER (
               PARTITION BY evaluation_id, attempt ORDER BY sequence
               ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
           ) AS first_successor
    FROM arrivals
)
SELECT count(*), count(DISTINCT evaluation_id)
FROM compared
WHERE first_successor < arrival;
