-- One acquire request of one executor to one lane: settle its earlier permits, then grant new ones.
-- Requests and tokens are paced by GCRA (virtual scheduling), calls in flight by AIMD, and a circuit breaker
-- with a half-open probe stops calls to a provider that fails.
--
-- KEYS: the lane's hash
-- ARGV: now, or '' for the server's clock; TTL of the hash in seconds;
--       executor, held, wanted, estimate;
--       rpm, tpm, max concurrency, gap, failures until the breaker opens, seconds until the probe;
--       1 if AIMD limits calls in flight, too; number of limits declared, number withdrawn;
--       then five for each limit declared: origin, rpm, tpm, max concurrency, gap;
--       then one for each limit withdrawn: its origin;
--       then nine for each settlement: outcome, reserved, tokens, age, retry after,
--       limit and remaining of requests, limit and remaining of tokens; '' for unknown values
-- Returns the number granted, the tokens reserved for each, the limit that blocks the rest ('' if none), and
-- the seconds until the next request may succeed.
--
-- The rules are those of lane.py, limits.py, gcra.py, aimd.py and breaker.py, operation by operation.

local BURST, MAX_START_DELAY, REFUND_WINDOW, SMOOTHING = 0.25, 2, 2, 0.1
local UNLIMITED, LIMIT_CEILING = 1000000000, 1e12
local START_KNOWN, START_UNKNOWN, START_UNMEASURED = 32, 8, 4
local MAX_CONCURRENCY, MIN_STEP = 10000, 0.05
local SUCCESS_WINDOW, MIN_DECREASE_INTERVAL, DECREASE, MAX_DECREASE = 10, 5, 0.97, 0.7
local TOLERATED, TOLERATED_RATIO, OVERLOAD_DECREASE, OVERLOAD_FACTOR = 5, 1 / 3, 0.8, 4
local WELL_BELOW, NOISY_SECONDS = 0.85, 10
local GROWTH_INTERVAL, FAST_GROWTH, SLOW_GROWTH = 1, 1.05, 1.001
local NEAR, FAR, MIN_RPM, PROBE_LEASE, FIRST_CUT, MAX_CUTS = 0.97, 1.1, 1, 2, 0.1, 3
local LEASE, MAX_BLOCK, FIRST_PAUSE, MAX_PAUSE = 60, 86400, 1, 30
local LIMIT_LEASE, RENEW_AFTER, REFUND_MARGIN, FIRST_CONTACT_PROBE = 60, 5, 1, 5
local MIN_WAIT, BATCHING_WAIT, CONCURRENCY_POLL, MAX_WAIT, STALE = 0.02, 0.1, 0.05, 1, 5

local NUMBERS = {
  'next_request_at', 'next_token_at', 'next_gap_at', 'paced_since', 'advertised_rpm', 'advertised_tpm',
  'learnt_rpm', 'refused_rpm', 'noisy_until', 'grown_at',
  'tokens_per_call', 'answered', 'oks', 'rejects', 'oks_since', 'taken_at', 'taken', 'slack', 'slack_since',
  'concurrency', 'was_cut', 'cut_at', 'blocked_at', 'blocked_until', 'cuts', 'cuts_until', 'refusals', 'failures', 'overloads',
  'broken_at',
  'opened_at', 'open_until', 'probe_until', 'since', 'short_until', 'granted', 'rate_limited', 'rpm', 'tpm',
  'gap', 'slowed_at', 'reached_at',
}

local max, min, floor = math.max, math.min, math.floor
local key, executor = KEYS[1], ARGV[3]
local now, ttl = tonumber(ARGV[1]), ARGV[2]
local own_held, wanted, estimate = tonumber(ARGV[4]), max(0, tonumber(ARGV[5])), tonumber(ARGV[6])
local max_concurrency, gap = tonumber(ARGV[9]), tonumber(ARGV[10])
local breaker_failures, breaker_seconds = tonumber(ARGV[11]), tonumber(ARGV[12])
local is_adaptive, declared, withdrawn = ARGV[13] == '1', tonumber(ARGV[14]), tonumber(ARGV[15])
local FIRST_WITHDRAWN = 16 + 5 * declared
local FIRST_SETTLEMENT = FIRST_WITHDRAWN + withdrawn

if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end

-- Reading.

local stored, s, held, in_flight, limits = {}, { blocked_by = '' }, {}, 0, {}
local hash = redis.call('HGETALL', key)
for at = 1, #hash, 2 do
  local name, text = hash[at], hash[at + 1]
  if string.sub(name, 1, 5) == 'held:' then
    local count, til = string.match(text, '^(%S+) (%S+)$')
    held[string.sub(name, 6)] = { tonumber(count), tonumber(til) }
    in_flight = in_flight + tonumber(count)
  elseif string.sub(name, 1, 6) == 'limit:' then
    local rpm, tpm, most, each_gap, til = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
    limits[string.sub(name, 7)] =
      { tonumber(rpm), tonumber(tpm), tonumber(most), tonumber(each_gap), tonumber(til) }
  elseif name == 'blocked_by' then
    stored.blocked_by, s.blocked_by = text, text
  else
    stored[name] = tonumber(text)
    s[name] = stored[name]
  end
end
for _, name in ipairs(NUMBERS) do
  s[name] = s[name] or 0
end

-- Limits.

local function valid_limit(number)
  return number and number > 0 and number < LIMIT_CEILING and number or 0
end

local function stricter(one, other)
  if one > 0 and other > 0 then
    return min(one, other)
  end
  return one > 0 and one or other
end

local policy_rpm, policy_tpm = valid_limit(tonumber(ARGV[7])), valid_limit(tonumber(ARGV[8]))
max_concurrency, gap = max(0, max_concurrency or 0), max(0, gap)

local renewed, removed = {}, {}

local function renew(origin, rpm, tpm, most, each_gap)
  rpm, tpm, each_gap = valid_limit(tonumber(rpm)), valid_limit(tonumber(tpm)), valid_limit(tonumber(each_gap))
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
    removed['limit:' .. origin] = true
  end
end
for at = FIRST_WITHDRAWN, FIRST_SETTLEMENT - 1 do
  limits[ARGV[at]] = nil
  removed['limit:' .. ARGV[at]] = true
end
for at = 16, FIRST_WITHDRAWN - 1, 5 do
  renew(unpack(ARGV, at, at + 4))
end
for _, each in pairs(limits) do
  policy_rpm, policy_tpm = stricter(policy_rpm, each[1]), stricter(policy_tpm, each[2])
  max_concurrency, gap = stricter(max_concurrency, each[3]), max(gap, each[4])
end
if max_concurrency == 0 then
  max_concurrency = nil
end

local function effective_rpm()
  local configured = stricter(policy_rpm, s.advertised_rpm)
  return configured > 0 and configured or s.learnt_rpm
end

local function effective_tpm()
  return stricter(policy_tpm, s.advertised_tpm)
end

local function initial_concurrency()
  return (policy_rpm > 0 or s.advertised_rpm > 0 or effective_tpm() > 0) and START_KNOWN or START_UNKNOWN
end

local function start_concurrency()
  local start = initial_concurrency()
  if s.concurrency == 0 or (s.cut_at == 0 and s.concurrency < start) then
    s.concurrency = start
  end
end

local function fell(old, new)
  return new > 0 and (old == 0 or new < old)
end

local function rescaled(at, start, old, new)
  if at <= start or old == 0 then
    return at
  elseif new == 0 then
    return min(at, start + MAX_START_DELAY)
  end
  return new > old and start + (at - start) * (old / new) or at
end

local function rescale()
  local rpm, tpm, start = effective_rpm(), effective_tpm(), max(now, s.blocked_until)
  if s.next_gap_at ~= 0 and gap < s.gap then
    s.next_gap_at = s.next_gap_at - (s.gap - gap)
  end
  if fell(s.rpm, rpm) or fell(s.tpm, tpm) then
    s.slowed_at = now
  end
  s.next_request_at = rescaled(s.next_request_at, start, s.rpm, rpm)
  s.next_token_at = rescaled(s.next_token_at, start, s.tpm, tpm)
  s.rpm, s.tpm, s.gap = rpm, tpm, gap
end

-- Settling: the provider's rate limit headers, and tokens (gcra.py).

local function due(remaining, age, each, per_minute)
  if not remaining or per_minute == 0 then
    return 0
  end
  local refilled, outstanding = age * per_minute / 60, in_flight * each
  if s.paced_since > 0 and s.paced_since <= now - age then
    outstanding = min(outstanding, (age + BURST) * per_minute / 60 + each)
  end
  local deficit = outstanding - refilled - remaining
  return deficit > 0 and now + deficit * 60 / per_minute or 0
end

local function observe_limits(age, request_limit, requests_left, token_limit, tokens_left)
  s.advertised_rpm = valid_limit(request_limit) > 0 and request_limit or s.advertised_rpm
  s.advertised_tpm = valid_limit(token_limit) > 0 and token_limit or s.advertised_tpm
  s.next_request_at = max(s.next_request_at, due(requests_left, age, 1, effective_rpm()))
  s.next_token_at = max(s.next_token_at, due(tokens_left, age, s.tokens_per_call, effective_tpm()))
end

local function charge_tokens(tokens, reserved, age)
  local is_valid = tokens and tokens >= 0 and tokens < LIMIT_CEILING
  if not is_valid or not (reserved >= 0 and reserved < LIMIT_CEILING) then
    return
  end
  local tpm, is_cheaper = effective_tpm(), now - age < s.slowed_at + REFUND_MARGIN
  if tpm > 0 and not (tokens < reserved and is_cheaper) then
    s.next_token_at = max(s.next_token_at, now - BURST) + (tokens - reserved) * 60 / tpm
  end
end

local function learn_tokens_per_call(tokens)
  if tokens and tokens > 0 and tokens < LIMIT_CEILING then
    local mean = s.tokens_per_call
    s.tokens_per_call = mean > 0 and mean + (tokens - mean) * SMOOTHING or tokens
  end
end

local function refund(age)
  local rpm, granted_at = effective_rpm(), now - age
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

-- Settling: Retry-After, the circuit breaker (breaker.py), increase and decrease (aimd.py).

local function empty_until(moment)
  s.next_request_at = s.next_request_at ~= 0 and max(s.next_request_at, moment) or 0
  s.next_token_at = s.next_token_at ~= 0 and max(s.next_token_at, moment) or 0
end

local function blocked(til)
  if til <= max(now, s.blocked_until) then
    return
  end
  s.blocked_at = now < s.blocked_until and s.blocked_at or now
  s.oks_since = s.oks_since + (til - max(now, s.blocked_until))
  s.blocked_until = til
  empty_until(til)
end

local function on_response()
  s.failures, s.overloads = 0, 0
  if s.open_until == 0 then
    return
  end
  s.open_until, s.probe_until, s.was_cut = 0, 0, 0
  s.concurrency = min(s.concurrency, initial_concurrency())
  empty_until(now)
end

local function open_breaker(seconds)
  s.broken_at = s.open_until ~= 0 and s.broken_at or now
  s.opened_at, s.open_until, s.probe_until = now, now + seconds, 0
end

local function on_failure(age)
  if now - age < s.opened_at then
    return
  end
  s.failures = s.failures + 1
  if s.open_until == 0 and s.failures < breaker_failures then
    return
  end
  open_breaker(s.reached_at > 0 and breaker_seconds or min(breaker_seconds, FIRST_CONTACT_PROBE))
end

local function on_overload(age)
  if now - age < s.opened_at then
    return
  end
  s.overloads = s.overloads + 1
  local limit = OVERLOAD_FACTOR * breaker_failures
  if s.open_until == 0 and s.overloads < limit then
    return
  end
  open_breaker(min(breaker_seconds, 2 ^ min(max(0, s.overloads - limit), 10)))
end

local function on_unknown_outcome(age)
  if s.probe_until > 0 and now - age >= s.opened_at then
    s.probe_until = 0
  end
end

local function decay()
  if now - s.oks_since > 2 * SUCCESS_WINDOW then
    s.oks, s.rejects, s.oks_since = 0, 0, max(now, s.blocked_until)
  elseif now - s.oks_since > SUCCESS_WINDOW then
    s.oks, s.rejects, s.oks_since = s.oks / 2, s.rejects / 2, now - (now - s.oks_since) / 2
  end
end

local function count_success()
  decay()
  s.oks, s.answered = s.oks + 1, s.answered + 1
end

local function count_reject()
  decay()
  s.rejects = s.rejects + 1
end

local function is_noise()
  return s.rejects <= TOLERATED + (s.oks + in_flight) * TOLERATED_RATIO
end

local function restart_window()
  s.was_cut = s.oks > 0 and s.was_cut or 0
  s.oks, s.rejects, s.oks_since = 0, 0, now
end

local function measured_rpm()
  return s.oks / max(now - s.oks_since, 1) * 60
end

local function rate_growth()
  local ceiling = s.refused_rpm
  return (NEAR * ceiling <= s.learnt_rpm and s.learnt_rpm <= FAR * ceiling) and SLOW_GROWTH or FAST_GROWTH
end

local function increase()
  local limit = s.concurrency
  if in_flight >= limit / 2 then
    local most = min(MAX_CONCURRENCY, max_concurrency or MAX_CONCURRENCY)
    local step = s.was_cut ~= 0 and max(1 / limit, MIN_STEP) or 1
    s.concurrency = max(limit, min(most, limit + step))
  end
  local is_due = now >= max(s.grown_at + GROWTH_INTERVAL, s.cuts_until)
  if s.learnt_rpm > 0 and s.blocked_by == 'rate' and is_due then
    s.learnt_rpm, s.grown_at = s.learnt_rpm * rate_growth(), now
  end
end

local function decrease()
  local is_sure = now - s.cut_at >= MIN_DECREASE_INTERVAL
  s.concurrency, s.was_cut, s.cut_at = max(1, s.concurrency / 2), 1, now
  s.refusals = s.refusals + 1
  if stricter(policy_rpm, s.advertised_rpm) > 0 or s.oks <= 0 then
    return
  end
  local measured, old = measured_rpm(), s.learnt_rpm
  s.grown_at = now
  if old == 0 then
    s.learnt_rpm = max(MIN_RPM, measured)
    return
  end
  s.learnt_rpm = max(MIN_RPM, MAX_DECREASE * old, min(DECREASE * old, measured))
  s.refused_rpm = is_sure and s.learnt_rpm or 0
end

local function decrease_rate()
  if s.learnt_rpm == 0 or now < s.noisy_until then
    return
  elseif s.learnt_rpm < WELL_BELOW * measured_rpm() then
    s.refused_rpm, s.noisy_until = 0, now + NOISY_SECONDS
    return
  end
  s.refused_rpm = s.refused_rpm ~= 0 and s.refused_rpm or s.learnt_rpm
  s.learnt_rpm, s.cut_at, s.grown_at = max(MIN_RPM, DECREASE * s.learnt_rpm), now, now
end

local function can_lower_rate()
  if stricter(policy_rpm, s.advertised_rpm) > 0 or s.oks <= 0 then
    return false
  end
  return now >= s.cuts_until or s.cuts < MAX_CUTS
end

local function first_rate()
  local elapsed = max(0, now - s.oks_since)
  return (s.oks + in_flight * max(0, 1 - elapsed)) / max(elapsed, 1) * 60
end

local function lower_rate(til)
  local cuts, old, measured = now < s.cuts_until and s.cuts or 0, s.learnt_rpm, measured_rpm()
  s.was_cut, s.cut_at, s.grown_at, s.cuts, s.cuts_until = 1, now, now, cuts + 1, til
  if old == 0 then
    s.learnt_rpm = max(MIN_RPM, first_rate())
    return
  end
  s.learnt_rpm = max(MIN_RPM, min((1 - FIRST_CUT * 2 ^ cuts) * old, max(MAX_DECREASE * old, measured)))
  if cuts == 0 or s.refused_rpm == 0 then
    s.refused_rpm = min(old, max((1 - FIRST_CUT) * old, measured))
  end
end

local function retry_later(til, granted_at)
  if now < s.cuts_until and granted_at < s.cut_at + BURST then
    return
  elseif granted_at < s.cut_at then
    blocked(til)
  elseif can_lower_rate() then
    lower_rate(til)
  else
    decrease()
    blocked(til)
  end
end

local function rate_limited(age, retry_after)
  s.rate_limited = s.rate_limited + 1
  if retry_after > 0 then
    retry_later(now + min(retry_after, MAX_BLOCK), now - age)
    return
  elseif now - age < s.cut_at then
    return
  end
  count_reject()
  if is_noise() then
    decrease_rate()
  else
    decrease()
    restart_window()
    blocked(now + min(MAX_PAUSE, FIRST_PAUSE * 2 ^ min(s.refusals - 1, 10)))
  end
end

local function overloaded(age)
  on_overload(age)
  if now - age < s.cut_at then
    return
  end
  count_reject()
  if is_noise() then
    return
  end
  s.concurrency, s.was_cut, s.cut_at = max(1, s.concurrency * OVERLOAD_DECREASE), 1, now
  restart_window()
end

local function settle(outcome, reserved, tokens, age, retry_after, ...)
  reserved, tokens, age = tonumber(reserved), tonumber(tokens), max(0, tonumber(age))
  retry_after = max(0, tonumber(retry_after) or 0)
  local request_limit, requests_left, token_limit, tokens_left = ...
  request_limit, requests_left = tonumber(request_limit), tonumber(requests_left)
  observe_limits(age, request_limit, requests_left, tonumber(token_limit), tonumber(tokens_left))
  start_concurrency()
  if outcome ~= 'unreached' and outcome ~= 'abandoned' and outcome ~= 'unused' then
    s.reached_at = now
  end
  if outcome == 'ok' then
    on_response()
    charge_tokens(tokens, reserved, age)
    learn_tokens_per_call(tokens)
    count_success()
    increase()
    s.refusals = now - age >= s.cut_at and 0 or s.refusals
  elseif outcome == 'rate_limited' then
    on_response()
    charge_tokens(tokens, reserved, age)
    rate_limited(age, retry_after)
  elseif outcome == 'overloaded' then
    charge_tokens(tokens, reserved, age)
    overloaded(age)
  elseif outcome == 'refused' then
    on_response()
    charge_tokens(tokens, reserved, age)
  elseif outcome == 'failed' or outcome == 'unreached' then
    charge_tokens(tokens, reserved, age)
    on_failure(age)
  elseif outcome == 'abandoned' then
    charge_tokens(tokens, reserved, age)
    on_unknown_outcome(age)
  elseif outcome == 'unused' then
    charge_tokens(0, reserved, age)
    refund(age)
    on_unknown_outcome(age)
  else
    error('unknown outcome: ' .. outcome)
  end
  if retry_after > 0 and outcome ~= 'overloaded' and outcome ~= 'rate_limited' then
    blocked(now + min(retry_after, MAX_BLOCK))
  end
end

rescale()
for at = FIRST_SETTLEMENT, #ARGV, 9 do
  settle(unpack(ARGV, at, at + 8))
end

-- Granting.

local function renew_lease()
  in_flight = 0
  for name, each in pairs(held) do
    if each[2] <= now or name == executor then
      held[name] = nil
      removed['held:' .. name] = true
    else
      in_flight = in_flight + each[1]
    end
  end
  if own_held > 0 then
    held[executor] = { own_held, now + LEASE }
    in_flight = in_flight + own_held
  end
end

local tokens_per_call = s.tokens_per_call > 0 and s.tokens_per_call or valid_limit(estimate)
local reserved = effective_tpm() > 0 and tokens_per_call or 0
renew_lease()
start_concurrency()
rescale()
local share = s.rpm > 0 and 60 / s.rpm or 0
local cost = s.tpm > 0 and reserved * 60 / s.tpm or 0
local start = max(now, s.blocked_until)
if s.rpm > 0 and s.next_request_at == 0 then
  s.next_request_at, s.paced_since = start + min(share, MAX_START_DELAY), now
end
if s.tpm > 0 and s.next_token_at == 0 then
  s.next_token_at, s.paced_since = start + min(cost, MAX_START_DELAY), now
end
if gap > 0 and s.next_gap_at == 0 then
  s.next_gap_at = start + min(gap, MAX_START_DELAY)
end

local function capacity(at, each)
  if each <= 0 then
    return UNLIMITED
  end
  local base = max(at, now - BURST)
  return base <= now and floor((now - base) / each) + 1 or 0
end

local function breaker_capacity()
  if s.open_until == 0 then
    return UNLIMITED
  end
  return (now < s.open_until or now < s.probe_until) and 0 or 1
end

local function concurrency_capacity()
  local most = max_concurrency or UNLIMITED
  if s.open_until == 0 and is_adaptive then
    most = min(most, floor(s.concurrency))
    if s.tpm > 0 and s.tokens_per_call == 0 and s.answered == 0 then
      most = min(most, START_UNMEASURED)
    end
  end
  return most - in_flight
end

local capacities = {
  { 'retry_after', now < s.blocked_until and 0 or UNLIMITED },
  { 'breaker', breaker_capacity() },
  { 'rate', capacity(s.next_request_at, share) },
  { 'tokens', capacity(s.next_token_at, cost) },
  { 'gap', gap > 0 and (now >= s.next_gap_at and 1 or 0) or UNLIMITED },
  { 'concurrency', concurrency_capacity() },
}
local blocked_by, tightest = capacities[1][1], capacities[1][2]
for at = 2, #capacities do
  if capacities[at][2] < tightest then
    blocked_by, tightest = capacities[at][1], capacities[at][2]
  end
end
local granted = max(0, min(wanted, tightest))

local function advance()
  if s.open_until ~= 0 then
    s.probe_until = now + PROBE_LEASE * breaker_seconds
  end
  if s.rpm > 0 then
    local slack = max(0, s.next_request_at - (now - BURST))
    if now - s.slack_since >= REFUND_WINDOW then
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

local function batching_wait(each)
  return min(BATCHING_WAIT, max(MIN_WAIT, 5 * each))
end

local function ready_in()
  if blocked_by == 'rate' then
    return max(s.next_request_at - now, batching_wait(share))
  elseif blocked_by == 'tokens' then
    return max(s.next_token_at - now, batching_wait(cost))
  elseif blocked_by == 'gap' then
    return max(s.next_gap_at - now, MIN_WAIT)
  elseif blocked_by == 'concurrency' then
    return CONCURRENCY_POLL
  elseif blocked_by == 'retry_after' then
    return min(MAX_WAIT, max(s.blocked_until - now, MIN_WAIT))
  end
  return min(MAX_WAIT, max(max(s.open_until, s.probe_until) - now, MIN_WAIT))
end

if granted > 0 then
  advance()
end
local wait = 0
if granted < wanted then
  wait = ready_in()
  s.since = (s.blocked_by == blocked_by and now <= s.short_until) and s.since or now
  s.blocked_by, s.short_until = blocked_by, now + wait + STALE
else
  blocked_by = ''
  if wanted > 0 then
    s.blocked_by, s.since, s.short_until = '', 0, 0
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
  if s[name] ~= stored[name] then
    put(name, exact(s[name]))
  end
end
if s.blocked_by ~= stored.blocked_by then
  put('blocked_by', s.blocked_by)
end
if held[executor] then
  put('held:' .. executor, exact(held[executor][1]) .. ' ' .. exact(held[executor][2]))
  removed['held:' .. executor] = nil
end
for origin in pairs(renewed) do
  local texts = {}
  for at, number in ipairs(limits[origin]) do
    texts[at] = exact(number)
  end
  put('limit:' .. origin, table.concat(texts, ' '))
  removed['limit:' .. origin] = nil
end
if #changed > 0 then
  redis.call('HSET', key, unpack(changed))
end
for name in pairs(removed) do
  redis.call('HDEL', key, name)
end
redis.call('EXPIRE', key, ttl)
return { granted, exact(reserved), blocked_by, exact(wait) }
