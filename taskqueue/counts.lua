-- Count the tasks of one batch; what is due counts as ready, though nobody has asked for it yet.
--
-- KEYS: the batch's stream of tasks, its delayed tasks
-- ARGV: group
-- Returns how many are ready, delayed, owned.

local tasks, delayed, group = KEYS[1], KEYS[2], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local pending = redis.pcall('XPENDING', tasks, group)
if pending.err and not string.find(pending.err, 'NOGROUP', 1, true) then
  return pending
end

local owned = pending[1] or 0
local due = redis.call('ZCOUNT', delayed, '-inf', now)
local ready = math.max(0, redis.call('XLEN', tasks) - owned)
return { ready + due, redis.call('ZCARD', delayed) - due, owned }
