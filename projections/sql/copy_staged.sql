COPY staged FROM STDIN (FORMAT binary)
