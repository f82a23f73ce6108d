-- Read many streams of one shard in one reply: a command each would cost the client more than the data.
--
-- KEYS  the shard's wake-up stream, which shares its slot with all the shard's keys
-- ARGV  the streams' common prefix, evaluation ids as a JSON array, entries to read of each at most
--
-- The streams are not declared as keys: naming them one by one is what this script saves.

local found = {}
for i, id in ipairs(cjson.decode(ARGV[2])) do
  found[i] = redis.call('XRANGE', ARGV[1] .. id, '-', '+', 'COUNT', ARGV[3])
end
return found
