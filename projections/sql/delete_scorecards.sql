DELETE FROM scorecards WHERE evaluation_id = ANY(%b);
