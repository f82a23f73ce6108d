-- Advisory locks that elect one leader.

-- name: leader_locks
-- Returns the advisory locks, of one number each, that connections to this database hold.
SELECT (classid::bigint << 32) | objid::bigint
FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: leader_quiet_for
-- Returns how long ago the connection that holds an advisory lock last finished a statement; no row if none
-- holds it. Without the right to see that connection's activity: 0.
SELECT coalesce(clock_timestamp() - activity.state_change, interval '0')
FROM pg_locks AS held
JOIN pg_stat_activity AS activity USING (pid)
WHERE held.locktype = 'advisory' AND held.granted
  AND held.classid = ((%(lock)s::bigint >> 32) & 4294967295)::oid AND held.objid = (%(lock)s::bigint & 4294967295)::oid
  AND held.objsubid = 1
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
