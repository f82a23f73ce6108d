-- Move keys of the wrong type out of the way, under a quarantine name: nothing is deleted.
--
-- KEYS   keys that a caller depends on
-- ARGV   seconds to keep what is moved, then the type that each key has to have
-- Reply  for each moved key: its name, the type found, its new name
--
-- Without its stream an evaluation has lost events: the shard's epoch is made anew, so that writers put them
-- back. A fence is learnt from its stream; wake-ups and tasks are found again by the sweep and the coordinator.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local moved = {}

for i, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= ARGV[i + 1] then
    local name = 'eval:quarantine:' .. string.format('%.0f', now) .. ':' .. key
    redis.call('RENAME', key, name)
    redis.call('EXPIRE', name, ARGV[1])
    local shard = string.match(key, '^(eval:{%d+}):events:')
    if shard then redis.call('DEL', shard .. ':epoch') end
    moved[#moved + 1] = {key, found, name}
  end
end
return moved
