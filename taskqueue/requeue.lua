-- Give a task back, if the consumer still holds it.
--
-- KEYS: the batch's stream of tasks, its delayed tasks
-- ARGV: group, consumer, id of the message, evaluation id, attempt, delay in ms
-- Returns 1, or 0 if it was not held.

local tasks, delayed = KEYS[1], KEYS[2]
local group, consumer, message, id, attempt = unpack(ARGV, 1, 5)
local delay = tonumber(ARGV[6])

local pending = redis.pcall('XPENDING', tasks, group, message, message, 1, consumer)
if pending.err then
  return string.find(pending.err, 'NOGROUP', 1, true) and 0 or pending
end
if not pending[1] then
  return 0
end

-- Added before it is let go: a full server refuses the first and allows the second.
if delay > 0 then
  local time = redis.call('TIME')
  local due = time[1] * 1000 + math.floor(time[2] / 1000) + delay
  redis.call('ZADD', delayed, due, attempt .. ':' .. message .. ':' .. id)
else
  redis.call('XADD', tasks, '*', 'id', id, 'attempt', attempt)
end
redis.call('XACK', tasks, group, message)
redis.call('XDEL', tasks, message)
return 1
