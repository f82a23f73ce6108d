"""What operators look at: dashboards and alerts, written in Python and rendered to the files that servers read."""
