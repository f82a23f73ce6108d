"""Budget accounts: what a batch may still spend, reserved before each paid call and settled after it."""
