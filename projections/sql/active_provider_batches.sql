SELECT count(*) FROM provider_batches WHERE state = 'submitted';
