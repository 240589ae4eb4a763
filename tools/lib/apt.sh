# shellcheck shell=bash
# Installing Debian packages on this machine. To be sourced.

# shellcheck source=tools/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tools/lib/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

apt_log=$cache/setup.log
apt_updated=no

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Fails early, with the command that an administrator may run, where packages can't be installed.
apt_require() {
    local codename
    codename=$(debian_codename)
    case $codename in
    bookworm | trixie) ;;
    *) fail "$* missing, and they can only be installed by this script on Debian 12 or 13" \
        "Install them as is usual on this system, then run this again." ;;
    esac
    [ "$(id -u)" = 0 ] || have sudo || fail "$* missing; installing them needs root or sudo" \
        "Ask an administrator to run: $top/tools/setup"
}

# Runs apt-get unattended; its output goes to the log, of which the end is shown if it fails.
apt_run() {
    mkdir -p "$cache"
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" \
        </dev/null >>"$apt_log" 2>&1; then
        tail -n 15 "$apt_log" | sed 's/^/    | /' >&2
        fail "apt-get $* failed (all of its output: $apt_log)" \
            "Check the network and /etc/apt/sources.list*, then run this again."
    fi
}

apt_update() {
    [ "$apt_updated" = no ] || return 0
    say "reading Debian's package lists ..."
    apt_run update
    apt_updated=yes
}

# apt_install WHAT [OPTION...] PACKAGE...: WHAT is for the user.
apt_install() {
    local what=$1 started=$SECONDS
    shift
    apt_require "$what ($*)"
    apt_update
    say "installing $what ($*) ..."
    apt_run install --no-install-recommends "$@"
    say "installed $what in $((SECONDS - started)) s"
}

# Adds Debian 12's backports to apt's sources unless they are there.
apt_enable_backports() {
    local file=/etc/apt/sources.list.d/ainori-backports.sources
    # shellcheck disable=SC2016 # apt's variable, not the shell's
    if apt-get indextargets --format '$(RELEASE)' | grep -qx bookworm-backports; then return; fi
    apt_require "bookworm-backports"
    say "adding bookworm-backports to apt's sources ($file)"
    printf '%s\n' '# Written by Ainori (tools/setup): QEMU 10 for Debian 12.' 'Types: deb' "URIs: $(debian_mirror)" \
        'Suites: bookworm-backports' 'Components: main' "Signed-By: $debian_keyring" |
        as_root tee "$file" >/dev/null
    apt_updated=no
}
