-- One batch's budget account: publish what Postgres has on record, or declare, settle and reserve.
--
-- KEYS: the account's hash
-- ARGV: operation; now, or '' for the server's; how long the hash stays, in seconds; then for
--   request: holder; held, settled, unrecorded, at risk (cost and tokens each); wanted;
--            unit, least, own, likely (the same); then four for each kind of call: its name, calls, largest cost, largest tokens
--   publish: limits ('' for none), recorded, unrecorded (cost and tokens each); 1 to freeze the account, 0 to
--            thaw it, or '' to leave it; seconds of recovery, or '' not to create a missing account; how many holders are dead, and their names;
--            then seven for each holder of a new account: its name; settled, held, at risk
-- Returns an empty list where the account is missing.
--
-- The rules are those of account.py, operation by operation; all amounts are whole numbers below 2^53.

local LEASE, UNKNOWN, PROVIDER_BATCH = 60, 1e15, 'provider-batch:'
local max, min, floor = math.max, math.min, math.floor
local key, operation, now, stays = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end

local function whole(number)
  return string.format('%.0f', number)
end

local function add(one, other)
  return min(UNKNOWN, one + other)
end

-- Reading. A holder: held, settled, unrecorded, at risk (cost and tokens each), until.

local s, holders, maxima, exists = {}, {}, {}, false
local found = redis.call('HGETALL', key)
for at = 1, #found, 2 do
  local name, text = found[at], found[at + 1]
  local prefix, rest = string.sub(name, 1, 2), string.sub(name, 3)
  if prefix == 'h:' or prefix == 'm:' then
    local numbers = {}
    for number in string.gmatch(text, '%S+') do
      numbers[#numbers + 1] = tonumber(number)
    end
    if prefix == 'h:' then
      holders[rest] = numbers
    else
      maxima[rest] = numbers
    end
  else
    exists = true
    s[name] = tonumber(text)
  end
end

local changed = {}

local function lapse(dead)
  for name, h in pairs(holders) do
    if (h[1] > 0 or h[2] > 0) and (h[9] <= now or dead[name]) then
      if string.sub(name, 1, #PROVIDER_BATCH) ~= PROVIDER_BATCH then
        local cost = s.limit_cost >= 0 and min(h[7], h[1]) or h[7]
        local tokens = s.limit_tokens >= 0 and min(h[8], h[2]) or h[8]
        s.spent_cost, s.spent_tokens = add(s.spent_cost, cost), add(s.spent_tokens, tokens)
        s.unrecorded_cost = add(s.unrecorded_cost, cost)
        s.unrecorded_tokens = add(s.unrecorded_tokens, tokens)
        h[3], h[4], h[5], h[6] = add(h[3], cost), add(h[4], tokens), add(h[5], cost), add(h[6], tokens)
      end
      h[1], h[2], h[7], h[8] = 0, 0, 0, 0
      changed[name] = true
    end
  end
end

local function held()
  local cost, tokens = 0, 0
  for _, h in pairs(holders) do
    cost, tokens = add(cost, h[1]), add(tokens, h[2])
  end
  return cost, tokens
end

local function write()
  local put = {}
  for name, value in pairs(s) do
    put[#put + 1] = name
    put[#put + 1] = string.format('%.17g', value)
  end
  for name in pairs(changed) do
    local h, texts = holders[name], {}
    for at = 1, 8 do
      texts[at] = whole(h[at])
    end
    texts[9] = string.format('%.17g', h[9])
    put[#put + 1] = 'h:' .. name
    put[#put + 1] = table.concat(texts, ' ')
  end
  redis.call('HSET', key, unpack(put))
  redis.call('EXPIRE', key, stays)
end

local function add_maxima(reply)
  for name, m in pairs(maxima) do
    reply[#reply + 1] = name
    for at = 1, 3 do
      reply[#reply + 1] = whole(m[at])
    end
  end
  return reply
end

if operation == 'publish' then
  local recovery = tonumber(ARGV[11])
  local count = tonumber(ARGV[12])
  if not exists then
    if not recovery then
      return {}
    end
    s = { spent_cost = 0, spent_tokens = 0, unrecorded_cost = 0, unrecorded_tokens = 0,
          needed_cost = 0, needed_tokens = 0, ready_at = recovery > 0 and now + recovery or 0 }
    for at = 13 + count, #ARGV, 7 do
      local n = {}
      for each = 1, 6 do
        n[each] = tonumber(ARGV[at + each])
      end
      local til = (n[3] > 0 or n[4] > 0) and now + LEASE or 0
      holders[ARGV[at]] = { n[3], n[4], n[1], n[2], 0, 0, n[5], n[6], til }
      changed[ARGV[at]] = true
    end
  end
  s.limit_cost, s.limit_tokens = tonumber(ARGV[4]) or -1, tonumber(ARGV[5]) or -1
  local dead = {}
  for at = 13, 12 + count do
    dead[ARGV[at]] = true
  end
  lapse(dead)
  s.frozen = tonumber(ARGV[10]) or s.frozen or 0
  s.unrecorded_cost = max(s.unrecorded_cost, tonumber(ARGV[8]))
  s.unrecorded_tokens = max(s.unrecorded_tokens, tonumber(ARGV[9]))
  s.spent_cost = max(s.spent_cost, add(tonumber(ARGV[6]), s.unrecorded_cost))
  s.spent_tokens = max(s.spent_tokens, add(tonumber(ARGV[7]), s.unrecorded_tokens))
  write()
  local held_cost, held_tokens = held()
  local holding, settled = {}, {}
  for name, h in pairs(holders) do
    settled[#settled + 1] = name
    settled[#settled + 1] = whole(max(0, h[3] - h[5]))
    settled[#settled + 1] = whole(max(0, h[4] - h[6]))
    if h[1] > 0 or h[2] > 0 then
      holding[#holding + 1] = name
      for _, figure in ipairs({ h[1], h[2], h[7], h[8] }) do
        holding[#holding + 1] = whole(figure)
      end
    end
  end
  return {
    whole(s.spent_cost), whole(s.spent_tokens), whole(held_cost), whole(held_tokens),
    whole(s.unrecorded_cost), whole(s.unrecorded_tokens), whole(s.needed_cost), whole(s.needed_tokens),
    holding, add_maxima({}), settled,
  }
end

-- A request: declaring.

if not exists then
  return {}
end
lapse({})
local holder = ARGV[4]
local h = holders[holder] or { 0, 0, 0, 0, 0, 0, 0, 0, 0 }
local settled_cost, settled_tokens = max(h[3], tonumber(ARGV[7])), max(h[4], tonumber(ARGV[8]))
local lost_cost, lost_tokens = max(h[5], tonumber(ARGV[9])), max(h[6], tonumber(ARGV[10]))
s.spent_cost = add(s.spent_cost, settled_cost - h[3])
s.spent_tokens = add(s.spent_tokens, settled_tokens - h[4])
s.unrecorded_cost = add(s.unrecorded_cost, lost_cost - h[5])
s.unrecorded_tokens = add(s.unrecorded_tokens, lost_tokens - h[6])
holders[holder] = {
  tonumber(ARGV[5]), tonumber(ARGV[6]), settled_cost, settled_tokens, lost_cost, lost_tokens,
  tonumber(ARGV[11]), tonumber(ARGV[12]), now + LEASE,
}
changed[holder] = true
for at = 22, #ARGV, 4 do
  local was = maxima[ARGV[at]] or { 0, 0, 0 }
  local is = {}
  for each = 1, 3 do
    is[each] = max(was[each], tonumber(ARGV[at + each]))
  end
  maxima[ARGV[at]] = is
  redis.call('HSET', key, 'm:' .. ARGV[at], whole(is[1]) .. ' ' .. whole(is[2]) .. ' ' .. whole(is[3]))
end

-- A request: reserving.

local wanted = tonumber(ARGV[13])
local held_cost, held_tokens = held()
local used_cost, used_tokens = add(s.spent_cost, held_cost), add(s.spent_tokens, held_tokens)
local limits = {}
if s.limit_cost >= 0 then
  limits[1] = { s.limit_cost, s.spent_cost, held_cost, tonumber(ARGV[14]), tonumber(ARGV[16]) }
end
if s.limit_tokens >= 0 then
  limits[#limits + 1] = { s.limit_tokens, s.spent_tokens, held_tokens, tonumber(ARGV[15]), tonumber(ARGV[17]) }
end

local function fits_alone()
  for _, l in ipairs(limits) do
    if l[1] - l[2] < max(1, l[5]) then
      return false
    end
  end
  return true
end

local granted, reserved_cost, reserved_tokens = 0, 0, 0
if wanted > 0 and s.frozen ~= 1 and now >= s.ready_at then
  granted = wanted
  for _, l in ipairs(limits) do
    if l[4] > 0 then
      granted = min(granted, floor(max(0, l[1] - l[2] - l[3]) / l[4]))
    end
  end
  if granted > 0 then
    reserved_cost = s.limit_cost >= 0 and tonumber(ARGV[14]) or 0
    reserved_tokens = s.limit_tokens >= 0 and tonumber(ARGV[15]) or 0
  elseif held_cost == tonumber(ARGV[18]) and held_tokens == tonumber(ARGV[19]) and fits_alone() then
    granted = 1
    reserved_cost = max(0, max(0, max(0, s.limit_cost) - s.spent_cost) - held_cost)
    reserved_tokens = max(0, max(0, max(0, s.limit_tokens) - s.spent_tokens) - held_tokens)
  end
end
if granted > 0 then
  local mine = holders[holder]
  mine[1] = add(mine[1], reserved_cost * granted)
  mine[2] = add(mine[2], reserved_tokens * granted)
  mine[7] = add(mine[7], tonumber(ARGV[20]) * granted)
  mine[8] = add(mine[8], tonumber(ARGV[21]) * granted)
  if tonumber(ARGV[16]) >= s.needed_cost and tonumber(ARGV[17]) >= s.needed_tokens then
    s.needed_cost, s.needed_tokens = 0, 0
  end
elseif wanted > 0 and not fits_alone() then
  s.needed_cost, s.needed_tokens = max(1, tonumber(ARGV[16])), max(1, tonumber(ARGV[17]))
end
write()
return {
  granted, whole(reserved_cost), whole(reserved_tokens), whole(used_cost), whole(used_tokens),
  s.limit_cost >= 0 and 1 or 0, s.limit_tokens >= 0 and 1 or 0, add_maxima({}),
}
