-- Return a task to its queue, if the consumer still owns it.
--
-- KEYS: the queue's stream of tasks
-- ARGV: group, consumer, id of the message, evaluation id, attempt
-- Returns 1, or 0 if it was not owned.

local tasks = KEYS[1]
local group, consumer, message, id, attempt = unpack(ARGV, 1, 5)

local pending = redis.pcall('XPENDING', tasks, group, message, message, 1, consumer)
if pending.err then
  return string.find(pending.err, 'NOGROUP', 1, true) and 0 or pending
end
if not pending[1] then
  return 0
end

-- XADD before XACK: a server without memory rejects the first and accepts the second.
redis.call('XADD', tasks, '*', 'id', id, 'attempt', attempt)
redis.call('XACK', tasks, group, message)
redis.call('XDEL', tasks, message)
return 1
