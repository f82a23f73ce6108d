UPDATE evaluations SET published = true WHERE evaluation_id = ANY(%s) AND NOT published;
