"""Datasets: files and imported tables of cases, read one row at a time."""
