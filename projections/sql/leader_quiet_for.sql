-- How long ago the connection that holds an advisory lock last finished something; no row if none holds it.
-- Who may not look at that connection's doings sees that it is there, and no more.
SELECT coalesce(clock_timestamp() - activity.state_change, interval '0')
FROM pg_locks AS held
JOIN pg_stat_activity AS activity USING (pid)
WHERE held.locktype = 'advisory' AND held.granted
  AND held.classid = ((%(lock)s::bigint >> 32) & 4294967295)::oid AND held.objid = (%(lock)s::bigint & 4294967295)::oid
  AND held.objsubid = 1
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
