# shellcheck shell=bash
# What all scripts of the project share: where things are, and how they talk to the user. To be sourced.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=$top/.cache

# Tells what happens now, on stderr so that a script's output stays clean.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# Ends the script: what went wrong first, then (further arguments, a line each) what to do about it.
fail() {
    say "error: $1"
    shift
    [ $# -eq 0 ] || printf '    %s\n' "$@" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# at_least VERSION MINIMUM: compares dotted version numbers.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# replace_if_changed NEW FILE: moves NEW over FILE, or drops it if both are the same, so that an
# unchanged result keeps its date and nothing is built again because of it.
replace_if_changed() {
    if cmp -s "$1" "$2"; then rm -f "$1"; else mv -f "$1" "$2"; fi
}

# once_at_a_time NAME: the rest of the script runs in one process at a time (per checkout).
once_at_a_time() {
    mkdir -p "$cache"
    exec 9>"$cache/$1.lock"
    flock -n 9 || { say "waiting for another $1 to end"; flock 9; }
}
