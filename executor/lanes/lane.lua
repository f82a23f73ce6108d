-- Settle what came of permits, then grant others: one executor at one lane.
--
-- KEYS: the lane's hash
-- ARGV: now, or '' for the server's; how long the hash stays, in seconds;
--       executor, held, wanted, estimate;
--       rpm, tpm, most in flight, gap, failures until the breaker opens, seconds until it is probed;
--       1 if calls in flight are also bound by what the lane has learnt; how many limits, how many withdrawn;
--       then five for each limit declared: origin, rpm, tpm, most in flight, gap;
--       then one for each limit withdrawn: its origin;
--       then nine for each settlement: outcome, reserved, tokens, age, retry after,
--       limit and remaining of requests, limit and remaining of tokens; '' for what is not known
-- Returns how many were granted, the tokens reserved for each, why not more, and when to ask again.
--
-- The rules are those of arithmetic.py, limits.py, pace.py, growth.py and breaker.py, operation by operation.

local BURST, LONGEST_START, EPOCH, NO_END, MOST, SMOOTHING = 0.25, 2, 2, 1000000000, 1e12, 0.1
local START_KNOWN, START_UNKNOWN, START_UNWEIGHED = 32, 8, 4
local HIGHEST, SMALLEST_STEP = 10000, 0.05
local FORGET_AFTER, SURE_AFTER, CUT, DEEPEST_CUT = 10, 5, 0.97, 0.7
local GROW_EVERY, FAST, SLOW, NEAR, FAR, LOWEST_RPM, PROBE_LEASE = 1, 1.05, 1.001, 0.99, 1.1, 1, 2
local LEASE, LONGEST_BLOCK, FIRST_PAUSE, LONGEST_PAUSE = 60, 86400, 1, 30
local LIMIT_LEASE, RENEW_AFTER, REFUND_MARGIN, FIRST_CONTACT_PROBE = 60, 5, 1, 5
local SHORTEST_WAIT, GATHERING, LOOK_AGAIN, LONGEST_WAIT, STALE = 0.02, 0.1, 0.05, 1, 5

local NUMBERS = {
  'next_request_at', 'next_token_at', 'next_gap_at', 'paced_since', 'told_rpm', 'told_tpm',
  'learnt_rpm', 'refused_rpm', 'grown_at',
  'tokens_per_call', 'answered', 'oks', 'oks_since', 'taken_at', 'taken', 'slack', 'slack_since',
  'concurrency', 'was_cut', 'cut_at', 'blocked_at', 'blocked_until', 'refusals', 'failures', 'broken_at',
  'opened_at', 'open_until', 'probe_until', 'since', 'short_until', 'granted', 'rate_limited', 'rpm', 'tpm',
  'gap', 'slowed_at', 'reached_at',
}

local max, min, floor = math.max, math.min, math.floor
local key, executor = KEYS[1], ARGV[3]
local now, stays = tonumber(ARGV[1]), ARGV[2]
local own_held, wanted, estimate = tonumber(ARGV[4]), max(0, tonumber(ARGV[5])), tonumber(ARGV[6])
local most_in_flight, gap = tonumber(ARGV[9]), tonumber(ARGV[10])
local breaker_failures, breaker_seconds = tonumber(ARGV[11]), tonumber(ARGV[12])
local is_adaptive, declared, withdrawn = ARGV[13] == '1', tonumber(ARGV[14]), tonumber(ARGV[15])
local FIRST_WITHDRAWN = 16 + 5 * declared
local FIRST_SETTLEMENT = FIRST_WITHDRAWN + withdrawn

if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end

-- Reading.

local was, s, held, in_flight, limits, gone = {}, { why = '' }, {}, 0, {}, {}
local found = redis.call('HGETALL', key)
for at = 1, #found, 2 do
  local name, text = found[at], found[at + 1]
  if string.sub(name, 1, 5) == 'held:' then
    local count, til = string.match(text, '^(%S+) (%S+)$')
    held[string.sub(name, 6)] = { tonumber(count), tonumber(til) }
    in_flight = in_flight + tonumber(count)
  elseif string.sub(name, 1, 6) == 'limit:' then
    local rpm, tpm, most, each_gap, til = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
    limits[string.sub(name, 7)] =
      { tonumber(rpm), tonumber(tpm), tonumber(most), tonumber(each_gap), tonumber(til) }
  elseif name == 'why' then
    was.why, s.why = text, text
  else
    was[name] = tonumber(text)
    s[name] = was[name]
  end
end
for _, name in ipairs(NUMBERS) do
  s[name] = s[name] or 0
end

-- Limits.

local function known(number)
  return number and number > 0 and number < MOST and number or 0
end

local function least(one, other)
  if one > 0 and other > 0 then
    return min(one, other)
  end
  return one > 0 and one or other
end

local policy_rpm, policy_tpm = known(tonumber(ARGV[7])), known(tonumber(ARGV[8]))
most_in_flight, gap = max(0, most_in_flight or 0), max(0, gap)

local renewed = {}

local function renew(origin, rpm, tpm, most, each_gap)
  rpm, tpm, each_gap = known(tonumber(rpm)), known(tonumber(tpm)), known(tonumber(each_gap))
  most = max(0, tonumber(most) or 0)
  local before, til = limits[origin], now + LIMIT_LEASE
  local is_same = before and before[1] == rpm and before[2] == tpm and before[3] == most
    and before[4] == each_gap
  if not is_same or til - before[5] >= RENEW_AFTER then
    limits[origin], renewed[origin] = { rpm, tpm, most, each_gap, til }, true
  end
end

for origin, each in pairs(limits) do
  if each[5] <= now then
    limits[origin] = nil
    gone['limit:' .. origin] = true
  end
end
for at = FIRST_WITHDRAWN, FIRST_SETTLEMENT - 1 do
  limits[ARGV[at]] = nil
  gone['limit:' .. ARGV[at]] = true
end
for at = 16, FIRST_WITHDRAWN - 1, 5 do
  renew(unpack(ARGV, at, at + 4))
end
for _, each in pairs(limits) do
  policy_rpm, policy_tpm = least(policy_rpm, each[1]), least(policy_tpm, each[2])
  most_in_flight, gap = least(most_in_flight, each[3]), max(gap, each[4])
end
if most_in_flight == 0 then
  most_in_flight = nil
end

local function rpm_of()
  local said = least(policy_rpm, s.told_rpm)
  return said > 0 and said or s.learnt_rpm
end

local function tpm_of()
  return least(policy_tpm, s.told_tpm)
end

local function start_of()
  return (policy_rpm > 0 or s.told_rpm > 0 or tpm_of() > 0) and START_KNOWN or START_UNKNOWN
end

local function started()
  local start = start_of()
  if s.concurrency == 0 or (s.cut_at == 0 and s.concurrency < start) then
    s.concurrency = start
  end
end

local function fell(old, new)
  return new > 0 and (old == 0 or new < old)
end

local function converted(at, start, old, new)
  if at <= start or old == 0 then
    return at
  elseif new == 0 then
    return min(at, start + LONGEST_START)
  end
  return new > old and start + (at - start) * (old / new) or at
end

local function adjusted()
  local rpm, tpm, start = rpm_of(), tpm_of(), max(now, s.blocked_until)
  if s.next_gap_at ~= 0 and gap < s.gap then
    s.next_gap_at = s.next_gap_at - (s.gap - gap)
  end
  if fell(s.rpm, rpm) or fell(s.tpm, tpm) then
    s.slowed_at = now
  end
  s.next_request_at = converted(s.next_request_at, start, s.rpm, rpm)
  s.next_token_at = converted(s.next_token_at, start, s.tpm, tpm)
  s.rpm, s.tpm, s.gap = rpm, tpm, gap
end

-- Settling: what the other side says of its limits, and of tokens.

local function due(remaining, age, each, per_minute)
  if not remaining or per_minute == 0 then
    return 0
  end
  local come_back, on_its_way = age * per_minute / 60, in_flight * each
  if s.paced_since > 0 and s.paced_since <= now - age then
    on_its_way = min(on_its_way, (age + BURST) * per_minute / 60 + each)
  end
  local deficit = on_its_way - come_back - remaining
  return deficit > 0 and now + deficit * 60 / per_minute or 0
end

local function told(age, request_limit, requests_left, token_limit, tokens_left)
  s.told_rpm = known(request_limit) > 0 and request_limit or s.told_rpm
  s.told_tpm = known(token_limit) > 0 and token_limit or s.told_tpm
  s.next_request_at = max(s.next_request_at, due(requests_left, age, 1, rpm_of()))
  s.next_token_at = max(s.next_token_at, due(tokens_left, age, s.tokens_per_call, tpm_of()))
end

local function charged(tokens, reserved, age)
  if not tokens or not (tokens >= 0 and tokens < MOST and reserved >= 0 and reserved < MOST) then
    return
  end
  local tpm, is_cheaper = tpm_of(), now - age < s.slowed_at + REFUND_MARGIN
  if tpm > 0 and not (tokens < reserved and is_cheaper) then
    s.next_token_at = max(s.next_token_at, now - BURST) + (tokens - reserved) * 60 / tpm
  end
end

local function weighed(tokens)
  if tokens and tokens > 0 and tokens < MOST then
    local mean = s.tokens_per_call
    s.tokens_per_call = mean > 0 and mean + (tokens - mean) * SMOOTHING or tokens
  end
end

local function refunded(age)
  local rpm, granted_at = rpm_of(), now - age
  if rpm == 0 then
    return
  end
  local share = 60 / max(rpm, s.rpm)
  if granted_at < s.slowed_at + REFUND_MARGIN then
    return
  end
  if s.taken > 0 and granted_at >= s.taken_at - 1e-6 then
    s.next_request_at, s.taken = s.next_request_at - share, s.taken - 1
  elseif granted_at >= s.slack_since then
    local worth = min(share, s.slack)
    s.next_request_at, s.slack = s.next_request_at - worth, s.slack - worth
  end
end

-- Settling: growth, cuts, blocks, the breaker.

local function empty_until(moment)
  s.next_request_at = s.next_request_at ~= 0 and max(s.next_request_at, moment) or 0
  s.next_token_at = s.next_token_at ~= 0 and max(s.next_token_at, moment) or 0
end

local function blocked(til)
  if til <= max(now, s.blocked_until) then
    return
  end
  s.blocked_at = now < s.blocked_until and s.blocked_at or now
  s.blocked_until = til
  empty_until(til)
end

local function answered()
  s.failures = 0
  if s.open_until == 0 then
    return
  end
  s.open_until, s.probe_until, s.was_cut = 0, 0, 0
  s.concurrency = min(s.concurrency, start_of())
  empty_until(now)
end

local function failed(age)
  if now - age < s.opened_at then
    return
  end
  s.failures = s.failures + 1
  if s.open_until == 0 and s.failures < breaker_failures then
    return
  end
  s.broken_at = s.open_until ~= 0 and s.broken_at or now
  local open_for = s.reached_at > 0 and breaker_seconds or min(breaker_seconds, FIRST_CONTACT_PROBE)
  s.opened_at, s.open_until, s.probe_until = now, now + open_for, 0
end

local function unheard(age)
  if s.probe_until > 0 and now - age >= s.opened_at then
    s.probe_until = 0
  end
end

local function counted()
  if now - s.oks_since > 2 * FORGET_AFTER then
    s.oks, s.oks_since = 0, now
  elseif now - s.oks_since > FORGET_AFTER then
    s.oks, s.oks_since = s.oks / 2, now - (now - s.oks_since) / 2
  end
  s.oks, s.answered = s.oks + 1, s.answered + 1
end

local function growth()
  local ceiling = s.refused_rpm
  return (NEAR * ceiling <= s.learnt_rpm and s.learnt_rpm <= FAR * ceiling) and SLOW or FAST
end

local function raised()
  local limit = s.concurrency
  if in_flight >= limit / 2 then
    local most = min(HIGHEST, most_in_flight or HIGHEST)
    local step = s.was_cut ~= 0 and max(1 / limit, SMALLEST_STEP) or 1
    s.concurrency = max(limit, min(most, limit + step))
  end
  if s.learnt_rpm > 0 and s.why == 'rate' and now - s.grown_at >= GROW_EVERY then
    s.learnt_rpm, s.grown_at = s.learnt_rpm * growth(), now
  end
end

local function cut()
  local is_sure = now - s.cut_at >= SURE_AFTER
  s.concurrency, s.was_cut, s.cut_at = max(1, s.concurrency / 2), 1, now
  s.refusals = s.refusals + 1
  if least(policy_rpm, s.told_rpm) > 0 or s.oks <= 0 then
    return
  end
  local measured, old = s.oks / max(now - s.oks_since, 1) * 60, s.learnt_rpm
  s.grown_at = now
  if old == 0 then
    s.learnt_rpm = max(LOWEST_RPM, measured)
    return
  end
  s.learnt_rpm = max(LOWEST_RPM, DEEPEST_CUT * old, min(CUT * old, measured))
  s.refused_rpm = is_sure and s.learnt_rpm or 0
end

local function refused_as_too_many(age, retry_after)
  s.rate_limited = s.rate_limited + 1
  if now - age < s.cut_at then
    return
  end
  cut()
  if retry_after == 0 then
    blocked(now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ^ min(s.refusals - 1, 10)))
  end
end

local function settle(outcome, reserved, tokens, age, retry_after, ...)
  reserved, tokens, age = tonumber(reserved), tonumber(tokens), max(0, tonumber(age))
  retry_after = max(0, tonumber(retry_after) or 0)
  local request_limit, requests_left, token_limit, tokens_left = ...
  told(age, tonumber(request_limit), tonumber(requests_left), tonumber(token_limit), tonumber(tokens_left))
  started()
  if outcome == 'ok' or outcome == 'rate_limited' or outcome == 'refused' or outcome == 'failed' then
    s.reached_at = now
  end
  if outcome == 'ok' then
    answered()
    charged(tokens, reserved, age)
    weighed(tokens)
    counted()
    raised()
    s.refusals = now - age >= s.cut_at and 0 or s.refusals
  elseif outcome == 'rate_limited' then
    answered()
    charged(tokens, reserved, age)
    refused_as_too_many(age, retry_after)
  elseif outcome == 'refused' then
    answered()
    charged(tokens, reserved, age)
  elseif outcome == 'failed' or outcome == 'unreached' then
    charged(tokens, reserved, age)
    failed(age)
  elseif outcome == 'abandoned' then
    charged(tokens, reserved, age)
    unheard(age)
  elseif outcome == 'unused' then
    charged(0, reserved, age)
    refunded(age)
    unheard(age)
  else
    error('no outcome: ' .. outcome)
  end
  if retry_after > 0 then
    blocked(now + min(retry_after, LONGEST_BLOCK))
  end
end

adjusted()
for at = FIRST_SETTLEMENT, #ARGV, 9 do
  settle(unpack(ARGV, at, at + 8))
end

-- Granting.

local function believed()
  in_flight = 0
  for name, each in pairs(held) do
    if each[2] <= now or name == executor then
      held[name] = nil
      gone['held:' .. name] = true
    else
      in_flight = in_flight + each[1]
    end
  end
  if own_held > 0 then
    held[executor] = { own_held, now + LEASE }
    in_flight = in_flight + own_held
  end
end

local reserved = tpm_of() > 0 and (s.tokens_per_call > 0 and s.tokens_per_call or known(estimate)) or 0
believed()
started()
adjusted()
local share = s.rpm > 0 and 60 / s.rpm or 0
local cost = s.tpm > 0 and reserved * 60 / s.tpm or 0
local start = max(now, s.blocked_until)
if s.rpm > 0 and s.next_request_at == 0 then
  s.next_request_at, s.paced_since = start + min(share, LONGEST_START), now
end
if s.tpm > 0 and s.next_token_at == 0 then
  s.next_token_at, s.paced_since = start + min(cost, LONGEST_START), now
end
if gap > 0 and s.next_gap_at == 0 then
  s.next_gap_at = start + min(gap, LONGEST_START)
end

local function room(at, each)
  if each <= 0 then
    return NO_END
  end
  local base = max(at, now - BURST)
  return base <= now and floor((now - base) / each) + 1 or 0
end

local function breaker_room()
  if s.open_until == 0 then
    return NO_END
  end
  return (now < s.open_until or now < s.probe_until) and 0 or 1
end

local function places()
  local most = most_in_flight or NO_END
  if s.open_until == 0 and is_adaptive then
    most = min(most, floor(s.concurrency))
    if s.tpm > 0 and s.tokens_per_call == 0 and s.answered == 0 then
      most = min(most, START_UNWEIGHED)
    end
  end
  return most - in_flight
end

local rooms = {
  { 'retry_after', now < s.blocked_until and 0 or NO_END },
  { 'breaker', breaker_room() },
  { 'rate', room(s.next_request_at, share) },
  { 'tokens', room(s.next_token_at, cost) },
  { 'gap', gap > 0 and (now >= s.next_gap_at and 1 or 0) or NO_END },
  { 'concurrency', places() },
}
local why, narrowest = rooms[1][1], rooms[1][2]
for at = 2, #rooms do
  if rooms[at][2] < narrowest then
    why, narrowest = rooms[at][1], rooms[at][2]
  end
end
local granted = max(0, min(wanted, narrowest))

local function spend()
  if s.open_until ~= 0 then
    s.probe_until = now + PROBE_LEASE * breaker_seconds
  end
  if s.rpm > 0 then
    local slack = max(0, s.next_request_at - (now - BURST))
    if now - s.slack_since >= EPOCH then
      s.slack, s.slack_since = slack, now
    else
      s.slack = min(s.slack, slack)
    end
    s.next_request_at = max(s.next_request_at, now - BURST) + granted * share
    s.taken_at, s.taken = now, granted
  end
  if s.tpm > 0 then
    s.next_token_at = max(s.next_token_at, now - BURST) + granted * cost
  end
  if gap > 0 then
    s.next_gap_at = now + gap
  end
  held[executor] = { max(0, own_held) + granted, now + LEASE }
  s.granted = s.granted + granted
end

local function gathered(each)
  return min(GATHERING, max(SHORTEST_WAIT, 5 * each))
end

local function ready_in()
  if why == 'rate' then
    return max(s.next_request_at - now, gathered(share))
  elseif why == 'tokens' then
    return max(s.next_token_at - now, gathered(cost))
  elseif why == 'gap' then
    return max(s.next_gap_at - now, SHORTEST_WAIT)
  elseif why == 'concurrency' then
    return LOOK_AGAIN
  elseif why == 'retry_after' then
    return min(LONGEST_WAIT, max(s.blocked_until - now, SHORTEST_WAIT))
  end
  return min(LONGEST_WAIT, max(max(s.open_until, s.probe_until) - now, SHORTEST_WAIT))
end

if granted > 0 then
  spend()
end
local wait = 0
if granted < wanted then
  wait = ready_in()
  s.since = (s.why == why and now <= s.short_until) and s.since or now
  s.why, s.short_until = why, now + wait + STALE
else
  why = ''
  if wanted > 0 then
    s.why, s.since, s.short_until = '', 0, 0
  end
end

-- Writing, only what has changed.

local function exact(number)
  return string.format('%.17g', number)
end

local changed = {}
local function put(name, text)
  changed[#changed + 1] = name
  changed[#changed + 1] = text
end

for _, name in ipairs(NUMBERS) do
  if s[name] ~= was[name] then
    put(name, exact(s[name]))
  end
end
if s.why ~= was.why then
  put('why', s.why)
end
if held[executor] then
  put('held:' .. executor, exact(held[executor][1]) .. ' ' .. exact(held[executor][2]))
  gone['held:' .. executor] = nil
end
for origin in pairs(renewed) do
  local texts = {}
  for at, number in ipairs(limits[origin]) do
    texts[at] = exact(number)
  end
  put('limit:' .. origin, table.concat(texts, ' '))
  gone['limit:' .. origin] = nil
end
if #changed > 0 then
  redis.call('HSET', key, unpack(changed))
end
for name in pairs(gone) do
  redis.call('HDEL', key, name)
end
redis.call('EXPIRE', key, stays)
return { granted, exact(reserved), why, exact(wait) }
