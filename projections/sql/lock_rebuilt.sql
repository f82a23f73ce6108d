-- Writers wait, readers do not. In the order in which a storage worker locks them.
LOCK TABLE evaluations, scorecards, batch_progress IN SHARE ROW EXCLUSIVE MODE;
