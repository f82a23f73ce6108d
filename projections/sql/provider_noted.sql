UPDATE provider_batches SET note = %(note)s WHERE id = %(id)s AND note <> %(note)s;
