-- Append events: judge all of an evaluation's, then write. A Lua error does not roll back.
--
-- KEYS   stream, fence, wake, epoch; then stream and fence of each further evaluation of the same shard
-- ARGV   the epoch the caller saw ("" skips the check), the mode (normal | tail | claim | withdrawal | opening |
--        late), then attempt, sequence, type and body of each event; none at all just asks for the epoch.
--        An empty argument goes on to the next evaluation
-- Reply  {epoch now, then for each evaluation {answer, ...} and, for claims only, its stream as it stands}
--        Where Redis refuses an evaluation, its error stands in place of the answers
--
-- Evaluations in one call have nothing to do with each other; it only saves what every call costs.
--
-- The fence, a hash beside the stream, makes this independent of the stream's length:
--   newest      the highest attempt          closing     the sequence that closed it
--   epoch       in which it was opened       committed   "attempt:sequence" that Postgres has
--   woken       its last wake-up
--   d:<seq>     digest of each of its events x:<seq>:<digest>  a conflicting body already kept

local wake, epoch_key = KEYS[3], KEYS[4]
local seen, mode = ARGV[1], ARGV[2]
local call, sha1hex, match, sub = redis.call, redis.sha1hex, string.match, string.sub
local CLOSING = {completed = true, retrying = true, failed = true, timed_out = true, cancelled = true}

-- Two halves: the random key is lost with the data, the run id changes with the process. A server that was
-- stopped cleanly has lost nothing: the process that stopped it may bind the key, "random/run id/half", so that the
-- epoch keeps its second half while the server with that run id lives.
local function current_epoch()
  local server = redis.call('INFO', 'server')
  local random = redis.call('GET', epoch_key)
  if not random then
    local now = redis.call('TIME')
    random = string.sub(redis.sha1hex(server .. now[1] .. now[2] .. epoch_key), 1, 12)
    redis.call('SET', epoch_key, random)
  end
  local run = string.sub(string.match(server, 'run_id:(%x+)'), 1, 12)
  local bare, bound_to, half = string.match(random, '^(%x+)/(%x+)/(%x+)$')
  return (bare or random) .. '-' .. (bound_to == run and half or run)
end

-- Readers refuse numbers beyond a million; the fence must not be led astray by them either. A call repeats the
-- same few numbers: each is matched once.
local function numbers(pattern)
  return setmetatable({}, {__index = function(known, text)
    local number = match(text, pattern) and tonumber(text)
    known[text] = number and number <= 1000000 and number or false
    return known[text]
  end})
end
local attempts, sequences = numbers('^[1-9]%d*$'), numbers('^%d+$')

-- Numbers as text, and the field of the fence with the digest of an event: each is formatted once.
local function formatted(format)
  return setmetatable({}, {__index = function(known, number)
    known[number] = string.format(format, number)
    return known[number]
  end})
end
local texts, digest_fields = formatted('%d'), formatted('d:%d')

local function parse_events(at)
  local events = {}
  while ARGV[at] and ARGV[at] ~= '' do
    local attempt, sequence, type, body = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    if not (body and attempts[attempt] and sequences[sequence]) then return nil end
    events[#events + 1] = {
      attempt = attempts[attempt], sequence = sequences[sequence], type = type, body = body,
      digest = sub(sha1hex(body), 1, 20),
    }
    at = at + 4
  end
  return events, at
end

local function parse_evaluations()
  local evaluations, at = {}, 2
  for key = 1, math.max(#KEYS - 1, 1), 2 do
    if key ~= 3 then
      local events, after = parse_events(at + 1)
      if not events then return nil end
      evaluations[#evaluations + 1] = {
        stream = KEYS[key], fence = KEYS[key + 1], id = match(KEYS[key], ':events:(.+)$'), events = events,
      }
      at = after
    end
  end
  return at > #ARGV and evaluations or nil
end

local evaluations = parse_evaluations()
if not evaluations then
  return redis.error_reply('ERR append: each event is an attempt from 1, a sequence from 0, a type and a body')
end
for _, evaluation in ipairs(evaluations) do
  if not evaluation.id then
    return redis.error_reply('ERR append: the first key is that of a stream, eval:{NN}:events:<evaluation id>')
  end
end

local epoch = current_epoch()
local reply = {epoch}

-- What is known of the current evaluation, as variables this script may change before anything is written.
local stream, fence, evaluation_id, events, answers
local empty, held, newest, closing, opened_in, digests, learnt, renewed, refused, begins, kept, woken

-- Nothing of the fence holds for what is written from here on.
local function renew()
  digests, learnt, renewed = {}, {}, true
end

local function digest_of(sequence)
  if digests[sequence] == nil and not renewed then
    digests[sequence] = call('HGET', fence, digest_fields[sequence])
  end
  return digests[sequence]
end

local function learn(event)
  if event.attempt < newest then return end
  if event.attempt > newest then
    newest, closing, opened_in = event.attempt, nil, nil
    renew()
  end
  digests[event.sequence] = event.digest
  learnt[#learnt + 1] = digest_fields[event.sequence]
  learnt[#learnt + 1] = event.digest
  if event.sequence == 0 then opened_in = epoch end
  if CLOSING[event.type] and event.sequence < (closing or math.huge) then closing = event.sequence end
end

-- A stream without a fence was written with plain XADDs: learn from it, once.
local function learn_from_stream()
  for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+')) do
    local field = {}
    for i = 1, #entry[2], 2 do field[entry[2][i]] = entry[2][i + 1] end
    local attempt, sequence = attempts[field.attempt or ''], sequences[field.sequence or '']
    if field.event and attempt and sequence then
      if attempt > newest or (attempt == newest and not digests[sequence]) then
        learn({attempt = attempt, sequence = sequence, type = field.type,
          digest = sub(sha1hex(field.event), 1, 20)})
      end
    end
  end
end

local function look()
  empty = call('XLEN', stream) == 0
  local names = {'newest', 'closing', 'epoch', 'committed', 'woken', 'd:0'}
  for i = 1, #events do names[6 + i] = digest_fields[events[i].sequence] end
  held = #names <= 100 and call('HMGET', fence, unpack(names))
    or call('HMGET', fence, 'newest', 'closing', 'epoch', 'committed', 'woken')
  newest, closing, opened_in = tonumber(held[1] or 0), tonumber(held[2]), held[3]
  digests, learnt, renewed = {[0] = held[6]}, {}, false
  for i = 7, #held do digests[events[i - 6].sequence] = held[i] end
  if empty then
    newest, closing, opened_in = 0, nil, nil
    renew()
  elseif not held[1] then
    renew()
    learn_from_stream()
  end
end

local function judge(event)
  if event.attempt < newest then return mode == 'late' and 'OK' or 'FENCED' end
  if event.attempt == newest then
    local digest = digest_of(event.sequence)
    if digest then return digest == event.digest and 'DUPLICATE' or 'CONFLICT' end
    if closing and event.sequence > closing then return 'CLOSED' end
  end
  if event.sequence == 0 or mode == 'tail' then return 'OK' end
  if event.attempt > newest then return 'FENCED' end
  if event.sequence == 1 then
    if not digest_of(0) then return 'FENCED' end
    if opened_in ~= epoch then return 'EPOCH' end
  end
  return 'OK'
end

local function judge_all()
  refused, begins = false, false
  for i = 1, #events do
    local event = events[i]
    answers[i] = judge(event)
    if answers[i] == 'OK' then
      begins = begins or event.sequence == 0 or event.attempt > newest
      learn(event)
    elseif answers[i] ~= 'DUPLICATE' then
      refused = true
    end
  end
end

-- A conflicting body is kept once, for the reader to quarantine; a lost claim is merely lost.
local function keeps_conflict(event)
  local name = 'x:' .. event.sequence .. ':' .. event.digest
  if mode == 'claim' or kept[name] or redis.call('HEXISTS', fence, name) == 1 then return false end
  kept[name] = true
  return true
end

-- Write what differs from the fence as it was read; all of it where that does not hold any more.
local function write_fence()
  if renewed and (held[1] or held[4] or held[5]) then call('DEL', fence) end
  local fields = learnt
  local function set(name, value, before)
    if value and (renewed or value ~= before) then fields[#fields + 1] = name; fields[#fields + 1] = value end
  end
  set('newest', newest, tonumber(held[1]))
  set('closing', closing, tonumber(held[2]))
  set('epoch', opened_in, held[3])
  set('committed', held[4], held[4])
  set('woken', woken, held[5])
  for name in pairs(kept) do set(name, 1) end
  for at = 1, #fields, 100 do call('HSET', fence, unpack(fields, at, math.min(at + 99, #fields))) end
  local life = renewed and not begins and call('PTTL', stream) or -1
  if life > 0 then call('PEXPIRE', fence, life) end
end

local function is_later(id, other)
  local ms, n = string.match(id, '(%d+)-(%d+)')
  local other_ms, other_n = string.match(other, '(%d+)-(%d+)')
  if ms ~= other_ms then return tonumber(ms) > tonumber(other_ms) end
  return tonumber(n) > tonumber(other_n)
end

-- A wake-up that no reader has been given yet will make it read this, too: a backlog is not made longer.
local function wakes_already()
  if not held[5] or empty then return false end
  local groups = redis.pcall('XINFO', 'GROUPS', wake)
  for _, group in ipairs(groups) do
    local field = {}
    for i = 1, #group, 2 do field[group[i]] = group[i + 1] end
    if field.name == 'storage' then return is_later(held[5], field['last-delivered-id']) end
  end
  return redis.call('XLEN', wake) > 0
end

local function write()
  kept, woken = {}, held[5]
  -- A tail is put back whole or not at all: half an attempt would look like a gap. Of a withdrawal, the end
  -- without the claim would end what another owner is working on.
  local whole = mode == 'tail' or mode == 'withdrawal'
  if not (whole and refused) then
    local wrote = false
    for i = 1, #events do
      local event = events[i]
      if answers[i] == 'OK' or (answers[i] == 'CONFLICT' and keeps_conflict(event)) then
        call('XADD', stream, '*', 'attempt', texts[event.attempt], 'sequence', texts[event.sequence],
          'type', event.type, 'event', event.body)
        wrote = true
      end
    end
    -- An opening comes from Postgres: there is nothing new in it for a reader. A claim's owner appends more
    -- at once; should it die first, the sweep finds the claim. A tail is re-appended by a writer that waits for a
    -- mark: even if nothing of it was lost, the mark may be.
    local is_news = mode == 'tail' or (wrote and mode ~= 'opening' and mode ~= 'claim')
    if is_news and not wakes_already() then
      woken = call('XADD', wake, '*', 'id', evaluation_id)
      if not wrote then call('HSET', fence, 'woken', woken) end
    end
    if wrote then
      write_fence()
      -- What was empty, or is made anew, has no expiry.
      if begins and not empty then redis.call('PERSIST', stream) end
      if begins and not renewed then redis.call('PERSIST', fence) end
    end
  end
end

local function append()
  look()
  judge_all()
  write()
end

for _, evaluation in ipairs(evaluations) do
  stream, fence, evaluation_id, events = evaluation.stream, evaluation.fence, evaluation.id, evaluation.events
  answers = {}
  if seen ~= '' and seen ~= epoch then
    for i = 1, #events do answers[i] = 'EPOCH' end
  else
    -- What Redis refuses of one evaluation (a key that is no stream) must not keep the others out.
    local done, failure = pcall(append)
    if not done then answers = type(failure) == 'table' and failure or {err = 'ERR append: ' .. failure} end
  end
  reply[#reply + 1] = answers
  if mode == 'claim' then
    local owned = answers[1] == 'OK' or answers[1] == 'DUPLICATE'
    reply[#reply + 1] = owned and redis.call('XRANGE', stream, '-', '+') or {}
  end
end
return reply
