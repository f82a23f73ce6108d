"""Redaction, tried at random: secrets, encodings, positions, cuts, and the places where texts end up."""
