SELECT pending, passed, completed - passed AS "not passed", failed, timed_out AS "timed out", cancelled
FROM batch_status
WHERE batch_id = ${batch:sqlstring};
