-- Neighbours in the order of the index: what shares the longest beginning stands closest.
(SELECT batch_id FROM batches WHERE batch_id >= %(wanted)s ORDER BY batch_id LIMIT %(limit)s)
UNION
(SELECT batch_id FROM batches WHERE batch_id < %(wanted)s ORDER BY batch_id DESC LIMIT %(limit)s);
