-- Say how far Postgres has come, and let what has ended there expire.
--
-- KEYS  stream and fence of each evaluation, all of one shard
-- ARGV  seconds to live, then for each: attempt, sequence, 1 if the evaluation has ended
--
-- A higher attempt in the stream keeps it alive; one opened after this persists it again (append.lua).

local ttl = ARGV[1]

-- Plain XADDs leave no fence; the last entry then tells which attempt is the newest.
local function newest_attempt(stream, fence)
  local newest = redis.call('HGET', fence, 'newest')
  if newest then return tonumber(newest) end
  local fields = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1][2]
  for i = 1, #fields, 2 do
    if fields[i] == 'attempt' then return tonumber(fields[i + 1]) or 0 end
  end
  return 0
end

for i = 1, #KEYS / 2 do
  local stream, fence = KEYS[2 * i - 1], KEYS[2 * i]
  local attempt, sequence, ended = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  if redis.call('XLEN', stream) > 0 then
    redis.call('HSET', fence, 'committed', attempt .. ':' .. sequence)
    if ended == '1' and newest_attempt(stream, fence) <= tonumber(attempt) then
      redis.call('EXPIRE', stream, ttl)
      redis.call('EXPIRE', fence, ttl)
    end
  end
end
return #KEYS / 2
