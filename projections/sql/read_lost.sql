-- Those whose row was not written by this transaction.
SELECT s.evaluation_id
FROM staged s
LEFT JOIN evaluations e ON e.evaluation_id = s.evaluation_id AND e.xmin = pg_current_xact_id()::xid
WHERE e.evaluation_id IS NULL;
