-- Take tasks of one batch that were left idle, oldest first.
--
-- KEYS: the batch's stream of tasks
-- ARGV: group, consumer, ms of idleness, how many
-- Returns for each task: id, fields, how often it has been handed out.

local tasks = KEYS[1]
local group, consumer, idle, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local from, taken = '0-0', {}

repeat
  local page = redis.pcall('XAUTOCLAIM', tasks, group, consumer, idle, from, 'COUNT', limit - #taken)
  if page.err then
    return string.find(page.err, 'NOGROUP', 1, true) and {} or page
  end
  for _, entry in ipairs(page[2]) do
    local pending = redis.call('XPENDING', tasks, group, entry[1], entry[1], 1)
    taken[#taken + 1] = { entry[1], entry[2], pending[1][4] }
  end
  from = page[1] -- one page looks at a part only: what is idle may lie behind many that are not
until from == '0-0' or #taken >= limit
return taken
