-- The pass rate, for dashboards and lists: the same definition as scoreline/batches/pass_rate.py.

CREATE FUNCTION is_scored(one batches) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT one.spec IS NULL OR coalesce(json_array_length(one.spec -> 'evaluators'), 0) > 0
$$;
COMMENT ON FUNCTION is_scored IS 'Whether a batch has an evaluator; producers of external batches score them by themselves.';

CREATE FUNCTION pass_rate(passed bigint, ended bigint, is_scored boolean) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN is_scored THEN passed::double precision / nullif(ended, 0) END
$$;
COMMENT ON FUNCTION pass_rate IS 'Passed ÷ ended evaluations: dead letters and cancelled ones did not pass. Null where nothing has ended, or where there is no evaluator.';
