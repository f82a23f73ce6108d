SELECT v.batch_id AS batch, v.case_id AS "case", v.variant, v.repetition, v.state, v.attempt AS attempts,
       v.owner AS worker, v.bridged, v.ended_at AS ended
FROM evaluations v
WHERE v.evaluation_id = ${evaluation:sqlstring};
