-- Deliver tasks of one queue to a consumer.
--
-- KEYS: the queue's stream of tasks
-- ARGV: group, consumer, how many, TTL of an empty stream in seconds
-- Returns the entries.

local tasks = KEYS[1]
local group, consumer, limit, empty_ttl = unpack(ARGV)

local function is_missing(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'NOGROUP', 1, true)
end

local function read()
  return redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', limit, 'STREAMS', tasks, '>')
end

local reply = read()
if is_missing(reply) then
  redis.call('XGROUP', 'CREATE', tasks, group, '0', 'MKSTREAM')
  if redis.call('XLEN', tasks) == 0 then
    redis.call('EXPIRE', tasks, empty_ttl) -- the batch may be gone for good
  end
  reply = read()
end
if reply and reply.err then
  return reply
end
return reply and reply[1][2] or {}
