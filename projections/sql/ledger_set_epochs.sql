UPDATE evaluations v
SET epoch = opened.epoch, published = opened.published
FROM unnest(%b::text[], %b::text[], %b::boolean[]) AS opened (evaluation_id, epoch, published)
WHERE v.evaluation_id = opened.evaluation_id;
