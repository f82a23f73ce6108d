UPDATE provider_batches SET called_off = true WHERE id = %s;
