#!/bin/sh
# Make the secrets of a deployment: random passwords, the URLs that hold them, and Redis' list of users.
#
#     deploy/secrets.sh                      # into deploy/secrets
#     REDIS_HOST=cache.internal POSTGRES_HOST=db.internal deploy/secrets.sh
#
# Existing files are kept, so it can be run again after users.acl has changed. Only its owner can enter the
# folder; the files in it are readable by all users, because services in containers have user ids of their
# own.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
secrets=${SECRETS:-$here/secrets}
redis=${REDIS_SCHEME:-redis}://
redis_at=${REDIS_HOST:-redis}:${REDIS_PORT:-6379}/0
postgres_at=${POSTGRES_HOST:-postgres}:${POSTGRES_PORT:-5432}/${SCORELINE_DATABASE:-scoreline}${POSTGRES_OPTIONS:-}

mkdir -p "$secrets/keys" "$secrets/alerts"
chmod 700 "$secrets"
chmod 755 "$secrets/keys" "$secrets/alerts"

password() { # of a name: generated once
  [ -s "$secrets/$1" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$secrets/$1"
  cat "$secrets/$1"
}

digest() { printf %s "$1" | sha256sum | cut -d' ' -f1; }

password postgres_password >/dev/null
password grafana_password >/dev/null
for user in migrator storage coordinator reader; do
  printf 'postgresql://%s:%s@%s' "$user" "$(password "postgres_${user}_password")" "$postgres_at" \
    >"$secrets/postgres_${user}_url"
done

# One user a line, without comments, each with the digest of its password.
grep -v '^#' "$here/redis/users.acl" | grep . |
  awk '/^user /{if (line) print line; line = $0; next} {sub(/^ +/, " "); line = line $0} END {print line}' \
    >"$secrets/redis_users.new"
for user in executor storage coordinator reader; do
  secret=$(password "redis_${user}_password")
  printf '%s%s:%s@%s' "$redis" "$user" "$secret" "$redis_at" >"$secrets/redis_${user}_url"
  sed "/^user $user /s/{password}/#$(digest "$secret")/" "$secrets/redis_users.new" >"$secrets/redis_users"
  cp "$secrets/redis_users" "$secrets/redis_users.new"
done
rm "$secrets/redis_users.new"
cat >&2 <<END
secrets are in $secrets; keys of providers go into $secrets/keys, one a file.
For alert notifications: $secrets/alerts/slack_webhook_url, $secrets/alerts/pagerduty_routing_key
END
