COPY scoreline_rebuild.evaluations FROM STDIN (FORMAT binary)
