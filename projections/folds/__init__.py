"""Pure folds: the rows, scorecards and counters that events add up to."""
