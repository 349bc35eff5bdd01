#!/bin/sh
# Stands in for the entrypoint of the official image: it makes the database of an empty volume with the user, password and scripts
# that the environment names, and runs the server as a user who is not root.
set -e

# A value may come from a file, named by the same variable with _FILE.
from_file() {
    eval "value=\${$1:-} file=\${$1_FILE:-}"
    if [ -n "$value" ] && [ -n "$file" ]; then
        echo "error: both $1 and $1_FILE are set" >&2
        exit 1
    fi
    if [ -n "$file" ]; then value=$(cat "$file"); fi
    if [ -z "$value" ]; then value=${2:-}; fi
    export "$1=$value"
    unset "$1_FILE"
}

case "$1" in
-*) set -- postgres "$@" ;;
esac
if [ "$1" != postgres ]; then exec "$@"; fi
case " $* " in
*" --help "* | *" --version "* | *" -V "* | *" --describe-config "*) exec "$@" ;;
esac

if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    if chown postgres "$PGDATA" 2>/dev/null; then
        chmod 700 "$PGDATA"
        find "$PGDATA" ! -user postgres -exec chown postgres {} +
        find /var/run/postgresql ! -user postgres -exec chown postgres {} +
        exec setpriv --reuid postgres --regid postgres --clear-groups -- env HOME=/var/lib/postgresql "$0" "$@"
    fi
fi
mkdir -p "$PGDATA" /var/run/postgresql
chmod 700 "$PGDATA" || :

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    from_file POSTGRES_PASSWORD
    from_file POSTGRES_USER postgres
    from_file POSTGRES_DB "$POSTGRES_USER"
    from_file POSTGRES_INITDB_ARGS
    method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
    if [ -z "$POSTGRES_PASSWORD" ] && [ "$method" != trust ]; then
        echo "error: the database is empty and has no password for its first user: set POSTGRES_PASSWORD (or, on a network that you trust, POSTGRES_HOST_AUTH_METHOD=trust)" >&2
        exit 1
    fi
    secret=$(mktemp)
    printf '%s\n' "${POSTGRES_PASSWORD:-unused}" >"$secret"
    # shellcheck disable=SC2086 # its arguments are words on purpose
    eval "initdb --username=\"\$POSTGRES_USER\" --pwfile=\"\$secret\" -D \"\$PGDATA\" $POSTGRES_INITDB_ARGS ${POSTGRES_INITDB_WALDIR:+--waldir \"\$POSTGRES_INITDB_WALDIR\"}"
    rm -f "$secret"
    # The image's server listens to the pod's network.
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"

    # Nobody but these scripts reaches the server until it is as it is meant to be.
    PGPASSWORD=$POSTGRES_PASSWORD
    export PGPASSWORD
    PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -p 5432" -w start
    run_sql() {
        psql -v ON_ERROR_STOP=1 --no-psqlrc --no-password --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" "$@"
    }
    if [ "$POSTGRES_DB" != postgres ]; then
        echo 'CREATE DATABASE :"db";' | POSTGRES_DB=postgres run_sql --dbname postgres --set db="$POSTGRES_DB"
    fi
    for script in /docker-entrypoint-initdb.d/*; do
        case "$script" in
        *.sh) if [ -x "$script" ]; then "$script"; else . "$script"; fi ;;
        *.sql) run_sql -f "$script" ;;
        *.sql.gz) gunzip -c "$script" | run_sql ;;
        *.sql.xz) xzcat "$script" | run_sql ;;
        esac
    done
    PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -m fast -w stop
    unset PGPASSWORD
    echo "PostgreSQL init process complete; ready for start up."
fi
exec "$@"
