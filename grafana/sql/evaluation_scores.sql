SELECT one ->> 'evaluator' AS evaluator, (one ->> 'score')::double precision AS score, one ->> 'passed' AS passed,
       left(one ->> 'reason', 300) AS reason, (one ->> 'cost_usd')::double precision AS cost
FROM scorecards s, json_array_elements(s.scores) AS one
WHERE s.evaluation_id = ${evaluation:sqlstring};
