-- The type of a batch's targets, where they are of one; nobody knows those of an external batch.
SELECT b.batch_id,
       CASE WHEN b.spec IS NULL THEN 'external'
            ELSE (SELECT CASE WHEN min(t ->> 'type') = max(t ->> 'type') THEN min(t ->> 'type') ELSE 'mixed' END
                  FROM json_array_elements(b.spec -> 'targets') t) END
FROM batches b
WHERE b.batch_id = ANY(%s);
