SELECT provider_id FROM provider_batches WHERE provider_id = ANY(%s);
