UPDATE datasets SET cases = %s WHERE project = %s AND name = %s
