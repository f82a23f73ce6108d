-- Record how far Postgres has come, and let what has ended there expire.
--
-- KEYS  the shard's wake-up stream, which shares its slot with all the shard's keys
-- ARGV  prefix of the streams, prefix of the fences, seconds to live,
--       a JSON array of {id, attempt, sequence, ended}
--
-- A higher attempt in the stream keeps it alive; one opened later makes it last again, here or in append.lua.
-- Marks of two workers may overtake each other: one that is behind the known mark is ignored.

local streams, fences, ttl = ARGV[1], ARGV[2], ARGV[3]

-- Plain XADDs leave no fence; the last entry then names the newest attempt.
local function newest_attempt(stream, fence)
  local newest = redis.call('HGET', fence, 'newest')
  if newest then return tonumber(newest) end
  local fields = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1][2]
  for i = 1, #fields, 2 do
    if fields[i] == 'attempt' then return tonumber(fields[i + 1]) or 0 end
  end
  return 0
end

local function is_outdated(fence, attempt, sequence)
  local known_attempt, known_sequence = string.match(redis.call('HGET', fence, 'committed') or '', '^(%d+):(%d+)$')
  if not known_attempt then return false end
  if attempt ~= tonumber(known_attempt) then return attempt < tonumber(known_attempt) end
  return sequence < tonumber(known_sequence)
end

for _, mark in ipairs(cjson.decode(ARGV[4])) do
  local id, attempt, sequence, ended = mark[1], mark[2], mark[3], mark[4]
  local stream, fence = streams .. id, fences .. id
  if redis.call('EXISTS', stream) == 1 and not is_outdated(fence, attempt, sequence) then
    redis.call('HSET', fence, 'committed', attempt .. ':' .. sequence)
    if not ended then
      redis.call('PERSIST', stream)
      redis.call('PERSIST', fence)
    elseif newest_attempt(stream, fence) <= attempt then
      redis.call('EXPIRE', stream, ttl)
      redis.call('EXPIRE', fence, ttl)
    end
  end
end
