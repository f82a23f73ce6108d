SELECT state FROM evaluations WHERE evaluation_id = ${evaluation:sqlstring};
