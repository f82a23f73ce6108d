"""Budget reservations of an executor: estimated and reserved before a paid call, settled after it."""
