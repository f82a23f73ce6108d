-- Give a task up, if the consumer still holds it.
--
-- KEYS: the batch's stream of tasks, its stream of dead letters
-- ARGV: group, consumer, id of the message, evaluation id, attempt, reason, about how many to keep
-- Returns 1, or 0 if it was not held.

local tasks, dead = KEYS[1], KEYS[2]
local group, consumer, message, id, attempt, reason, kept = unpack(ARGV)

local pending = redis.pcall('XPENDING', tasks, group, message, message, 1, consumer)
if pending.err then
  return string.find(pending.err, 'NOGROUP', 1, true) and 0 or pending
end
if not pending[1] then
  return 0
end

-- Added before it is let go: a full server refuses the first and allows the second.
redis.call('XADD', dead, 'MAXLEN', '~', kept, '*', 'id', id, 'attempt', attempt, 'reason', reason)
redis.call('PERSIST', dead) -- the batch lives again
redis.call('XACK', tasks, group, message)
redis.call('XDEL', tasks, message)
return 1
