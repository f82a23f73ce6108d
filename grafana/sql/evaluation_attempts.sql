SELECT attempt FROM evaluations WHERE evaluation_id = ${evaluation:sqlstring};
