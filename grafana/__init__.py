"""What people look at: dashboards and alert rules, made here and checked in as other programs read them."""
