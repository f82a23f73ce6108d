UPDATE provider_batches
SET polled_at = %(now)s, processing = %(processing)s, succeeded = %(succeeded)s, errored = %(errored)s,
    canceled = %(canceled)s, expired = %(expired)s, note = '',
    state = CASE WHEN %(ended)s THEN 'ended' ELSE state END,
    ended_at = CASE WHEN %(ended)s THEN %(now)s ELSE ended_at END
WHERE id = %(id)s AND state = 'submitted';
