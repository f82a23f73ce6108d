SELECT e.attempt, e.sequence, e.type AS event, e.verdict, e.occurred_at AS occurred,
       extract(epoch FROM e.occurred_at - lag(e.occurred_at) OVER (ORDER BY e.attempt, e.sequence)) * 1000 AS "since last",
       extract(epoch FROM e.recorded_at - e.occurred_at) * 1000 AS "stored after",
       e.event ->> 'source' AS source,
       left(coalesce(e.event #>> '{data,error,message}', e.event #>> '{data,output}', e.event #>> '{data,reason}',
                     e.event #>> '{data,executor}', e.event #>> '{data,target}', e.event #>> '{data,verdict}'), 200) AS detail
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.evaluation_id = ${evaluation:sqlstring}
ORDER BY e.attempt, e.sequence
LIMIT 1000;
