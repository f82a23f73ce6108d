-- Count the tasks of one queue.
--
-- KEYS: the queue's stream of tasks
-- ARGV: group
-- Returns how many are ready, and how many are owned by consumers.

local tasks, group = KEYS[1], ARGV[1]

local pending = redis.pcall('XPENDING', tasks, group)
if pending.err and not string.find(pending.err, 'NOGROUP', 1, true) then
  return pending
end

local owned = pending[1] or 0
return { math.max(0, redis.call('XLEN', tasks) - owned), owned }
