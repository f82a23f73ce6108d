"""The PostgreSQL database: connections, errors, migrations and readiness."""
