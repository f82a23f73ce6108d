SELECT count(*), coalesce(sum(events), 0) FROM scoreline_rebuild.evaluations;
