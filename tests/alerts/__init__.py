"""Every alert, with made-up series (`promtool test rules`) and provoked on a real fleet."""
