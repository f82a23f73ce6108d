-- The logins of a deployment: one a service, each with the rights of one role and no others. The roles'
-- own rights come with the migrations, which leave an existing role alone.
--
-- Run by an administrator, in any database of the server; a second run changes only passwords:
--     SECRETS=deploy/secrets psql -v ON_ERROR_STOP=1 -f deploy/postgres/init.sql
-- Passwords are read from files: they are in no command line.

\set ON_ERROR_STOP on
\set database `echo "${SCORELINE_DATABASE:-scoreline}"`
\set migrator_password `cat "${SECRETS:-/run/secrets}/postgres_migrator_password"`
\set storage_password `cat "${SECRETS:-/run/secrets}/postgres_storage_password"`
\set coordinator_password `cat "${SECRETS:-/run/secrets}/postgres_coordinator_password"`
\set reader_password `cat "${SECRETS:-/run/secrets}/postgres_reader_password"`

SELECT format('CREATE ROLE %I NOLOGIN', wanted)
FROM unnest(ARRAY['scoreline_migrator', 'scoreline_storage', 'scoreline_coordinator', 'scoreline_reader']) AS wanted
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) \gexec
SELECT format('CREATE ROLE %I LOGIN', wanted)
FROM unnest(ARRAY['migrator', 'storage', 'coordinator', 'reader']) AS wanted
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) \gexec

-- The migrator owns the database and its tables, so it alone changes what they are; only migrations and
-- rebuilds use it. It creates no roles: before PostgreSQL 16 CREATEROLE would let it join any role but a
-- superuser's, pg_execute_server_program included, and so run programs on the server.
ALTER ROLE migrator NOCREATEROLE PASSWORD :'migrator_password';
ALTER ROLE storage PASSWORD :'storage_password';
ALTER ROLE coordinator PASSWORD :'coordinator_password';
ALTER ROLE reader PASSWORD :'reader_password';
GRANT scoreline_migrator TO migrator;
GRANT scoreline_storage TO storage;
GRANT scoreline_coordinator TO coordinator;
GRANT scoreline_reader TO reader;
ALTER ROLE reader SET statement_timeout = '30s';

-- On a managed server the administrator is no superuser, and must be a member of each role that it grants to.
GRANT migrator TO CURRENT_USER;
SELECT format('CREATE DATABASE %I OWNER migrator', :'database')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
REVOKE CONNECT, TEMPORARY ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO scoreline_storage, scoreline_coordinator, scoreline_reader;
-- Both copy rows into temporary tables before they insert them into the log.
GRANT TEMPORARY ON DATABASE :"database" TO scoreline_storage, scoreline_coordinator;
