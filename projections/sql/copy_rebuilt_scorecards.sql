COPY scoreline_rebuild.scorecards FROM STDIN (FORMAT binary)
