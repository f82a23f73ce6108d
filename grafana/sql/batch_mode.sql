-- Executors of a local run are called after their batch.
SELECT CASE
           WHEN count(owner) = 0 THEN 'not begun'
           WHEN bool_and(starts_with(owner, ${batch:sqlstring} || '-')) THEN 'local'
           ELSE 'distributed'
       END
       || CASE WHEN EXISTS (SELECT FROM provider_batches WHERE batch_id = ${batch:sqlstring}) THEN ', provider batches' ELSE '' END
       AS mode
FROM sampled(${batch:sqlstring}, 500);
