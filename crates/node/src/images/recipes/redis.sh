#!/bin/sh
# Stands in for the entrypoint of the official image: options are the server's, the data is the server's user's, and the
# server does not run as root.
set -e
case "$1" in
-* | *.conf) set -- redis-server "$@" ;;
esac
if [ "$1" = redis-server ]; then
    # Without a password the server would refuse everyone but its own machine. The pod's network is as far as it is reached.
    case " $* " in
    *" --protected-mode "* | *.conf*) ;;
    *) set -- "$@" --protected-mode no ;;
    esac
    if [ "$(id -u)" = 0 ] && chown redis . 2>/dev/null; then
        find . ! -user redis -exec chown redis {} +
        exec setpriv --reuid redis --regid redis --clear-groups -- "$@"
    fi
fi
exec "$@"
