"""Scores for tests of comparisons."""

from hypothesis import strategies as st

scores = st.floats(-1e6, 1e6)
