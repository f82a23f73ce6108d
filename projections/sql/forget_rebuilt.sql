WITH outdated AS (
    DELETE FROM scoreline_rebuild.evaluations WHERE evaluation_id = ANY(%(ids)s)
)
DELETE FROM scoreline_rebuild.scorecards WHERE evaluation_id = ANY(%(ids)s);
