"""The demo: a batch of recorded answers, an executor killed in the middle of it, and the proof."""
