SELECT evaluation_id, follows, recalls::text FROM serial_links WHERE evaluation_id = ANY(%s);
