-- Renew the lease of tasks of one queue, those that the consumer still owns.
--
-- KEYS: the queue's stream of tasks
-- ARGV: group, consumer, then the ids of the messages
-- Returns the ids of those that are owned.

local tasks, group, consumer = KEYS[1], ARGV[1], ARGV[2]
local held = {}

for i = 3, #ARGV do
  local pending = redis.pcall('XPENDING', tasks, group, ARGV[i], ARGV[i], 1, consumer)
  if pending.err then
    return string.find(pending.err, 'NOGROUP', 1, true) and {} or pending
  end
  if pending[1] then
    held[#held + 1] = ARGV[i]
  end
end

for _, message in ipairs(held) do
  redis.call('XCLAIM', tasks, group, consumer, 0, message, 'JUSTID') -- JUSTID: no further delivery
end
return held
