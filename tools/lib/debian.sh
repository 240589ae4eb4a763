# shellcheck shell=bash
# What the machine's own apt configuration tells. To be sourced.

# shellcheck source=tools/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The keys that Debian's archive is signed with.
# shellcheck disable=SC2034 # for those who source this file
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Name of the machine's release ("bookworm", "trixie"), or nothing if it is not Debian.
debian_codename() {
    # shellcheck source=/dev/null
    (. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || true
}

# The mirror that the machine gets Debian from. apt itself reads its sources here, so that every
# format that it knows is understood (deb822, one line, mirror+file). AINORI_DEBIAN_MIRROR comes first.
debian_mirror() {
    local codename mirror=${AINORI_DEBIAN_MIRROR:-}
    codename=$(debian_codename)
    if [ -z "$mirror" ]; then
        # shellcheck disable=SC2016 # apt's variables, not the shell's
        mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
            awk -v release="$codename" '$2 == release && $3 == "main" { print $1; exit }')
    fi
    [ -n "$mirror" ] || fail "this machine's apt configuration names no mirror of Debian" \
        "Name one: AINORI_DEBIAN_MIRROR=http://.../debian $0"
    echo "${mirror%/}"
}
