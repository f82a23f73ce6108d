-- Acknowledge and delete tasks of one queue, those that the consumer still owns.
--
-- KEYS: the queue's stream of tasks
-- ARGV: group, consumer, then the ids of the messages
-- Returns how many were owned.

local tasks, group, consumer = KEYS[1], ARGV[1], ARGV[2]
local held = {}

for i = 3, #ARGV do
  local pending = redis.pcall('XPENDING', tasks, group, ARGV[i], ARGV[i], 1, consumer)
  if pending.err then
    return string.find(pending.err, 'NOGROUP', 1, true) and 0 or pending
  end
  if pending[1] then
    held[#held + 1] = ARGV[i]
  end
end

if #held == 0 then
  return 0
end
redis.call('XDEL', tasks, unpack(held))
return redis.call('XACK', tasks, group, unpack(held))
