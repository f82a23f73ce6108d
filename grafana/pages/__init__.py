"""The dashboards, a module each, or several where one would be long."""
