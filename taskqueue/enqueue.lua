-- Add tasks to one queue, atomically.
--
-- KEYS: the queue's stream of tasks
-- ARGV: for each task its evaluation id and attempt
-- Returns the ids of the messages.

local tasks = KEYS[1]

if #ARGV == 0 or #ARGV % 2 ~= 0 then
  return redis.error_reply('ERR enqueue: an evaluation id and an attempt for each task')
end
for i = 2, #ARGV, 2 do
  if not string.match(ARGV[i], '^%d+$') then
    return redis.error_reply('ERR enqueue: each attempt is a number')
  end
end

local ids = {}
for i = 1, #ARGV, 2 do
  ids[#ids + 1] = redis.call('XADD', tasks, '*', 'id', ARGV[i], 'attempt', ARGV[i + 1])
end
redis.call('PERSIST', tasks) -- an empty stream that a consumer created has a TTL
return ids
