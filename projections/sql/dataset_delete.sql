DELETE FROM datasets WHERE project = %s AND name = %s
