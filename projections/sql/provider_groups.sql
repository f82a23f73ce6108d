SELECT EXISTS (SELECT FROM serial_links WHERE batch_id = %s);
