-- How far Postgres has some evaluations of one shard.
--
-- KEYS   wake (it names the shard)
-- ARGV   prefix of streams, prefix of fences, then evaluation ids
-- Reply  for each: "attempt:sequence", or false where the stream is gone

local marks = {}
for at = 3, #ARGV do
  local mark = redis.call('EXISTS', ARGV[1] .. ARGV[at]) == 1
    and (redis.call('HGET', ARGV[2] .. ARGV[at], 'committed') or '0:-1')
  marks[#marks + 1] = mark
end
return marks
