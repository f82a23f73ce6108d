-- Rows of `provider_batches`, and the evaluations that wait for them.

-- name: provider_waiting
-- Keyset pagination over evaluations that wait for a provider batch of one target, with their opening event.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8')
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = v.attempt AND e.sequence = 0
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id > %(after)s AND v.month = %(month)s
  AND v.asked_in = '' AND v.variant %% %(targets)s = %(target)s
ORDER BY v.evaluation_id
LIMIT %(limit)s;

-- name: lock_running_batch
-- Locks a running batch: pausing or stopping it waits for the provider batch that is being recorded.
SELECT FROM batches
WHERE batch_id = %(batch_id)s AND state = 'running' AND finished_at IS NULL
FOR NO KEY UPDATE;

-- name: provider_join
-- Assigns waiting evaluations to a provider batch, if their attempts are still the newest.
UPDATE evaluations v
SET asked_in = %(id)s
FROM unnest(%(evaluation_ids)s::text[], %(attempts)s::integer[]) AS joining (evaluation_id, attempt)
WHERE v.evaluation_id = joining.evaluation_id AND v.attempt = joining.attempt
  AND v.asked_in = '' AND v.ended_at IS NULL;

-- name: insert_provider_batch
-- Inserts a provider batch as intended, before it is submitted.
INSERT INTO provider_batches
    (id, batch_id, target, members, attempts, bytes, digest, intended_at, claimed_at, processing,
     reserved_cost, reserved_tokens)
VALUES (%(id)s, %(batch_id)s, %(target)s, %(members)s, %(attempts)s, %(bytes)s, %(digest)s, %(intended_at)s,
        %(claimed_at)s, cardinality(%(members)s::integer[]), %(reserved_cost)s, %(reserved_tokens)s);

-- name: provider_members
-- Keyset pagination over evaluations that wait for a provider batch, with their opening event.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8')
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = v.attempt AND e.sequence = 0
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id > %(after)s AND v.asked_in = %(id)s
ORDER BY v.evaluation_id
LIMIT %(limit)s;

-- name: provider_still_waiting
-- Returns those of some evaluations that still wait for a provider batch.
SELECT evaluation_id
FROM evaluations
WHERE evaluation_id = ANY(%(evaluation_ids)s) AND ended_at IS NULL AND asked_in = %(id)s;

-- name: open_provider_batches
-- Returns the provider batches that are not closed, oldest first.
SELECT id, batch_id, target, members, attempts, bytes, digest, intended_at, claimed_at, state, provider_id,
       submitted_at, called_off, note, reserved_cost, reserved_tokens
FROM provider_batches
WHERE state IN ('intended', 'submitted', 'ended')
ORDER BY intended_at, id;

-- name: claim_provider_batch
-- Compare-and-set on `claimed_at`: takes the right to submit an intended provider batch again.
UPDATE provider_batches SET claimed_at = %(now)s
WHERE id = %(id)s AND state = 'intended' AND claimed_at = %(claimed_at)s;

-- name: provider_batch_submitted
-- Stores the provider's id of an intended provider batch.
UPDATE provider_batches
SET state = 'submitted', provider_id = %(provider_id)s, submitted_at = %(now)s, note = ''
WHERE id = %(id)s AND state = 'intended';

-- name: known_provider_ids
-- Returns those of some provider ids that belong to a provider batch.
SELECT provider_id FROM provider_batches WHERE provider_id = ANY(%s);

-- name: provider_batch_polled
-- Stores the counts of a submitted provider batch, and whether the provider has ended it.
UPDATE provider_batches
SET polled_at = %(now)s, processing = %(processing)s, succeeded = %(succeeded)s, errored = %(errored)s,
    canceled = %(canceled)s, expired = %(expired)s, note = '',
    state = CASE WHEN %(ended)s THEN 'ended' ELSE state END,
    ended_at = CASE WHEN %(ended)s THEN %(now)s ELSE ended_at END
WHERE id = %(id)s AND state = 'submitted';

-- name: set_provider_batch_note
-- Stores what delays a provider batch; empty clears it.
UPDATE provider_batches SET note = %(note)s WHERE id = %(id)s AND note <> %(note)s;

-- name: provider_batch_cancel_requested
-- Stores that the provider was asked to cancel a provider batch.
UPDATE provider_batches SET called_off = true WHERE id = %s;

-- name: close_provider_batch
-- Closes a provider batch; evaluations that still wait for it return to the waiting ones.
WITH closed AS (
    UPDATE provider_batches SET state = %(state)s, closed_at = %(now)s
    WHERE id = %(id)s AND state IN ('intended', 'submitted', 'ended')
    RETURNING id, batch_id
)
UPDATE evaluations v SET asked_in = ''
FROM closed
WHERE v.batch_id = closed.batch_id AND v.ended_at IS NULL AND v.asked_in = closed.id;

-- name: provider_leave
-- Removes evaluations with a new attempt from their provider batch; those that use one again wait for the next.
WITH affected AS (
    SELECT v.evaluation_id, v.batch_id, v.asked_in IS NOT NULL AS was_by_provider, opened.by_provider
    FROM unnest(%(evaluation_ids)s::text[], %(by_provider)s::boolean[]) AS opened (evaluation_id, by_provider)
    JOIN evaluations v ON v.evaluation_id = opened.evaluation_id
    WHERE v.asked_in IS NOT NULL OR opened.by_provider
), moved AS (
    UPDATE evaluations v SET asked_in = CASE WHEN affected.by_provider THEN '' END
    FROM affected
    WHERE v.evaluation_id = affected.evaluation_id
)
UPDATE batches b SET told_apart = b.told_apart + counted.difference
FROM (SELECT batch_id, sum(was_by_provider::integer - by_provider::integer) AS difference FROM affected GROUP BY batch_id) counted
WHERE b.batch_id = counted.batch_id;

-- name: provider_release
-- Publishes waiting evaluations to executors instead; counted apart, because no window has them.
WITH leaving AS (
    SELECT v.evaluation_id
    FROM evaluations v
    WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.asked_in = ''
    ORDER BY v.evaluation_id
    LIMIT %(limit)s
    FOR UPDATE
), left_now AS (
    UPDATE evaluations v SET asked_in = NULL, epoch = (%(epochs)s::text[])[v.shard + 1]
    FROM leaving
    WHERE v.evaluation_id = leaving.evaluation_id
    RETURNING v.evaluation_id
), counted AS (
    UPDATE batches SET told_apart = told_apart + (SELECT count(*) FROM left_now)
    WHERE batch_id = %(batch_id)s
)
SELECT evaluation_id FROM left_now;

-- name: batch_has_serial_groups
-- Returns whether a batch has serial groups.
SELECT EXISTS (SELECT FROM serial_links WHERE batch_id = %s);

-- name: provider_batches_of
-- Returns the provider batches of a batch with their counts, oldest first.
SELECT p.id, p.provider_id, p.state, cardinality(p.members), p.processing, p.succeeded, p.errored, p.canceled,
       p.expired, p.intended_at, p.submitted_at, p.polled_at, p.ended_at, p.note
FROM provider_batches p
WHERE p.batch_id = %s
ORDER BY p.intended_at, p.id;

-- name: provider_waiting_counts
-- Counts evaluations that wait for a provider, and those of them that are in no provider batch yet.
SELECT count(*), count(*) FILTER (WHERE asked_in = '')
FROM evaluations
WHERE batch_id = %s AND ended_at IS NULL AND asked_in IS NOT NULL;
