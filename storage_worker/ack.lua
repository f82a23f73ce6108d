-- Acknowledge many entries that travel as one argument: the client packs one string, not thousands.
--
-- KEYS  stream
-- ARGV  group, entry ids separated by spaces

local ids, acknowledged = {}, 0
local function flush()
  if #ids > 0 then acknowledged = acknowledged + redis.call('XACK', KEYS[1], ARGV[1], unpack(ids)) end
  ids = {}
end
for id in string.gmatch(ARGV[2], '%S+') do
  ids[#ids + 1] = id
  if #ids == 500 then flush() end
end
flush()
return acknowledged
