"""PostgreSQL: projections of the event log, the coordinator's ledger, datasets and read models.

sql              named queries, one file per aggregate
database         connections, errors, migrations, readiness
folds            pure folds of events into rows, scorecards and counters
store            the transactional projection that storage workers commit
ledger           the coordinator's store of batches, attempts and provider batches
leader_election  one leader by an advisory lock
datasets         imported datasets
verification     comparison of the tables with the log, and rebuild
queries          read models
"""
