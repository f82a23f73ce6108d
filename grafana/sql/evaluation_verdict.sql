SELECT coalesce(verdict, status) AS verdict FROM scorecards WHERE evaluation_id = ${evaluation:sqlstring};
