DELETE FROM scorecards s
WHERE s.batch_id = %s
  AND NOT EXISTS (SELECT FROM scoreline_rebuild.scorecards r WHERE r.evaluation_id = s.evaluation_id);
