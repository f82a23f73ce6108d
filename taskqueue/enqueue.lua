-- Add tasks, all at once.
--
-- KEYS: the batch's stream of tasks, its delayed tasks
-- ARGV: delay in ms, a name no other delayed task has, then for each task: evaluation id, attempt
-- Returns the ids of the messages.

local tasks, delayed = KEYS[1], KEYS[2]
local delay, unique = tonumber(ARGV[1]), ARGV[2]

if not delay or #ARGV % 2 ~= 0 then
  return redis.error_reply('ERR enqueue: a delay, a name, then an id and an attempt for each task')
end
for i = 4, #ARGV, 2 do
  if not string.match(ARGV[i], '^%d+$') then
    return redis.error_reply('ERR enqueue: each attempt is a number')
  end
end

local ids = {}
if delay > 0 then
  local time = redis.call('TIME')
  local due = time[1] * 1000 + math.floor(time[2] / 1000) + delay
  for i = 3, #ARGV, 2 do
    local member = ARGV[i + 1] .. ':' .. unique .. '-' .. i .. ':' .. ARGV[i]
    redis.call('ZADD', delayed, due, member)
    ids[#ids + 1] = unique .. '-' .. i
  end
else
  for i = 3, #ARGV, 2 do
    ids[#ids + 1] = redis.call('XADD', tasks, '*', 'id', ARGV[i], 'attempt', ARGV[i + 1])
  end
  redis.call('PERSIST', tasks) -- an empty one, made by whoever waits on it, would expire
end
return ids
