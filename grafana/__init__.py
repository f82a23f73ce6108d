"""What operators look at: dashboards and alerts, rendered to the files that servers read."""
