"""Commands on whole batches: verify the tables against the log, rebuild them, summarise them."""
