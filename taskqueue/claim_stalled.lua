-- Claim tasks of one queue that their consumer left idle, oldest first.
--
-- KEYS: the queue's stream of tasks
-- ARGV: group, consumer, ms of idleness, how many
-- Returns for each task: id, fields, how often it has been delivered, the consumer that held it before.

local tasks = KEYS[1]
local group, consumer, idle, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local taken = {}

-- XPENDING before XCLAIM: XAUTOCLAIM does not return the former consumer.
local pending = redis.pcall('XPENDING', tasks, group, 'IDLE', idle, '-', '+', limit)
if pending.err then
  return string.find(pending.err, 'NOGROUP', 1, true) and {} or pending
end
for _, held in ipairs(pending) do
  local entry = redis.call('XCLAIM', tasks, group, consumer, idle, held[1])[1]
  if entry then -- false or absent where the entry was deleted from the stream
    taken[#taken + 1] = { entry[1], entry[2], held[4] + 1, held[2] }
  end
end
return taken
