-- Make ready what is due, then hand out tasks of one batch.
--
-- KEYS: the batch's stream of tasks, its delayed tasks
-- ARGV: group, consumer, how many, how many to make ready at most, seconds an empty stream stays
-- Returns the entries, and in how many ms the next delayed task is due, or -1.

local tasks, delayed = KEYS[1], KEYS[2]
local group, consumer, limit, at_once, empty_stays = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function is_missing(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'NOGROUP', 1, true)
end

local function read()
  return redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', limit, 'STREAMS', tasks, '>')
end

local due = redis.call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, at_once)
for _, member in ipairs(due) do
  local attempt, id = string.match(member, '^(%d+):[^:]*:(.*)$')
  if attempt then
    redis.call('XADD', tasks, '*', 'id', id, 'attempt', attempt)
  end
  redis.call('ZREM', delayed, member)
end
if #due > 0 then
  redis.call('PERSIST', tasks)
end

local found = read()
if is_missing(found) then
  redis.call('XGROUP', 'CREATE', tasks, group, '0', 'MKSTREAM')
  if redis.call('XLEN', tasks) == 0 then
    redis.call('EXPIRE', tasks, empty_stays) -- the batch may be gone for good
  end
  found = read()
end
if found and found.err then
  return found
end

local next_due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
local wait = next_due[2] and math.max(0, next_due[2] - now) or -1
return { found and found[1][2] or {}, wait }
