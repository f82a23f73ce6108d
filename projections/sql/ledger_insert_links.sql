INSERT INTO serial_links (evaluation_id, batch_id, follows, needs, recalls)
SELECT evaluation_id, %(batch_id)s, follows,
       ARRAY(SELECT DISTINCT recall ->> 0 FROM json_array_elements(recalls) recall), recalls
FROM unnest(%(evaluation_ids)s::text[], %(follows)s::text[], %(recalls)s::json[])
    AS link (evaluation_id, follows, recalls);
