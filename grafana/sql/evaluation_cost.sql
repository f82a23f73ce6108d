-- What every attempt paid for, and not only the last.
SELECT coalesce(sum((e.event #>> '{data,cost_usd}')::double precision), 0) AS cost
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.evaluation_id = ${evaluation:sqlstring}
  AND e.type IN ('responded', 'scored') AND NOT coalesce((e.event #>> '{data,cached}')::boolean, false);
