-- The neighbours of some places in the order of ids: two short walks along the primary key for each.
SELECT DISTINCT near.evaluation_id
FROM unnest(%(probes)s::text[]) AS probe (place)
CROSS JOIN LATERAL (
    (SELECT evaluation_id FROM evaluations
     WHERE evaluation_id >= probe.place COLLATE "C"
     ORDER BY evaluation_id LIMIT %(limit)s)
    UNION ALL
    (SELECT evaluation_id FROM evaluations
     WHERE evaluation_id < probe.place COLLATE "C"
     ORDER BY evaluation_id DESC LIMIT %(limit)s)
) AS near;
