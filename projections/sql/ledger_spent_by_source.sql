-- What each writer's events have added to the spend of a batch, as batch_progress counts it.
SELECT e.event ->> 'source',
       sum(coalesce((e.event #>> '{data,cost_usd}')::numeric, 0)),
       sum(coalesce((e.event #>> '{data,usage,input_tokens}')::bigint, 0)
           + coalesce((e.event #>> '{data,usage,output_tokens}')::bigint, 0))::bigint
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %(batch_id)s AND e.type IN ('responded', 'scored') AND e.verdict <> 'rejected'
  AND NOT coalesce((e.event #>> '{data,cached}')::boolean, false)
GROUP BY 1;
