SELECT score FROM scorecards WHERE evaluation_id = ${evaluation:sqlstring};
