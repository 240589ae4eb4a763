# shellcheck shell=bash
# Fetching the Debian packages that guests are made of. guests/packages.lock names each with its checksum, so that a commit has the
# same guests wherever it is built, and whatever state a mirror's lists are in. apt fetches them, with a configuration of its own: the
# machine's own packages and lists stay as they are. No root is needed. What was fetched once is used from then on, without network.
# To be sourced.

# shellcheck source=tools/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tools/lib/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

# Everything that comes from Debian for riscv64 is in here.
packages_home=$cache/debian-riscv64

# Which packages: a line "SET SHA256 PATH" each. When it is written, apt has checked Debian's signature of the list that they are from.
packages_lock=$top/guests/packages.lock

# packages_configure SUITE MIRROR: makes apt-get and apt-cache speak of this suite, for riscv64, from here on.
# Only the way to the network (proxies and the like) is taken over from the machine's apt.
packages_configure() {
    local suite=$1 mirror=$2 apt=$packages_home/apt-$1
    mkdir -p "$apt"/{lists/partial,cache/archives/partial,state}
    touch "$apt/status"
    unset APT_CONFIG # the machine's own again, for what comes next
    {
        apt-config dump Acquire | grep -v '^Acquire::\(IndexTargets\|Changelogs\)' || true
        cat <<CONFIGURATION
APT::Architecture "riscv64";
APT::Architectures { "riscv64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Update::Error-Mode "any";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
Dir::Log "$apt";
CONFIGURATION
    } >"$apt/apt.conf"
    echo "deb [arch=riscv64 signed-by=$debian_keyring] $mirror $suite main" >"$apt/sources.list"
    export APT_CONFIG=$apt/apt.conf
}

# kernel_package: the package that has the Image of the suite's newest kernel. The meta package names linux-image-VERSION;
# since Linux 7 that is empty and names linux-binary-VERSION.
kernel_package() {
    local image binary
    image=$(apt-cache depends linux-image-riscv64 2>/dev/null | awk '/ Depends: linux-image-/ { print $2; exit }')
    binary=$(apt-cache depends "$image" 2>/dev/null | awk '/ Depends: linux-binary-/ { print $2; exit }')
    echo "${binary:-$image}"
}

# packages_of_the_lock SET WORD...: "SHA256 PATH" of each package of a set, as the lock names them.
packages_of_the_lock() {
    local set=$1 locked word
    shift
    locked=$(awk -v set="$set" '$1 == set { print $2, $3 }' "$packages_lock")
    if [ "${1:-}" = --with-dependencies ]; then shift; fi
    for word in "$@"; do
        if [ "$word" = KERNEL ]; then word='linux-[a-z]*-[^/]*'; fi
        grep -q "/${word}_[^/]*\.deb\$" <<<"$locked" || fail "$packages_lock doesn't say which $word belongs to $set" \
            "Choose what Debian has today: guests/packages $set --update"
    done
    echo "$locked"
}

# packages_of_today WORD...: the same, of what the suite has today. apt has checked that list's signature. Behind the word --with-dependencies come also
# the suite's essential packages, and all that the others depend on, as apt would install them where nothing is.
packages_of_today() {
    local word found
    say "reading the package lists of Debian's $suite for riscv64 from $mirror ..."
    apt-get -q update >&2 || fail "the package lists of Debian's $suite for riscv64 can't be read from $mirror" \
        "Check the network, or name another mirror: AINORI_DEBIAN_MIRROR=http://.../debian $0"
    if [ "${1:-}" = --with-dependencies ]; then
        shift
        # shellcheck disable=SC2046 # names of packages have no spaces
        set -- $(apt-get -q -s install --no-install-recommends '?essential' "$@" | awk '$1 == "Inst" { print $2 }' | sort)
        [ $# -gt 0 ] || fail "apt can't say what Debian's $suite would install"
    fi
    for word in "$@"; do
        if [ "$word" = KERNEL ]; then word=$(kernel_package); fi
        found=$(apt-cache show --no-all-versions "${word:-linux-image-riscv64}" 2>/dev/null |
            awk '/^Filename: / { path = $2 } /^SHA256: / { sum = $2 } END { if (path && sum) print sum, path }')
        [ -n "$found" ] || fail "$mirror has no ${word:-linux-image-riscv64} for riscv64 in $suite" \
            "Name a mirror that has it: AINORI_DEBIAN_MIRROR=http://.../debian $0"
        echo "$found"
    done
}

# packages_download FOLDER LIST: FOLDER gets the packages of a list of "SHA256 PATH", and nothing else. What it has already isn't
# fetched again. Fails if one can't be had.
packages_download() {
    local sum path file
    mkdir -p "$1"
    for file in "$1"/*; do
        grep -q "/${file##*/}\$" <<<"$2" || rm -f "$file"
    done
    while read -r sum path; do
        file=$1/${path##*/}
        if ! sha256sum --check --status <<<"$sum  $file" 2>/dev/null; then
            say "fetching ${path##*/} ..."
            /usr/lib/apt/apt-helper -q download-file "$mirror/$path" "$file" "SHA256:$sum" >&2 || return 1
        fi
    done <<<"$2"
}

# packages_are_there FOLDER LIST: FOLDER was made for this list of the lock, and all that it has is as it came.
packages_are_there() {
    [ -e "$1/SHA256SUMS" ] && [ "$(cat "$1/lock" 2>/dev/null)" = "$2" ] && (cd "$1" && sha256sum --check --status SHA256SUMS)
}

# fetch_packages SUITE SET [--update] WORD...: brings the packages that the lock names for a set into .cache/debian-riscv64/SET,
# unless they are there already. A WORD is the name of a package that the set must have, or KERNEL for the suite's newest kernel.
# With --update the lock gets what the suite has today first. A mirror keeps a package for as long as a suite names it: where it has
# one no more, what the suite has today is taken, and said so. What comes goes to SET.new and becomes SET in one step when all of it
# is there with the right checksums, so that the folder is whole whenever it exists. In a shell of its own, which lets go of the lock
# and of apt's configuration at its end.
fetch_packages() (
    suite=$1 set=$2 folder=$packages_home/$2 list='' update=''
    shift 2
    if [ "${1:-}" = --update ]; then update=yes && shift; fi
    once_at_a_time debian-riscv64
    if [ -z "$update" ]; then
        list=$(packages_of_the_lock "$set" "$@")
        if packages_are_there "$folder" "$list"; then exit 0; fi
    fi

    mirror=$(debian_mirror)
    [ -e "$debian_keyring" ] || fail "$debian_keyring is missing" "Install the package debian-archive-keyring."
    packages_configure "$suite" "$mirror"
    if [ -n "$update" ]; then
        list=$(packages_of_today "$@")
        write_lock "$set" <<<"$list"
    fi
    if ! packages_download "$folder.new" "$list"; then
        say "$mirror doesn't have all that $packages_lock names. Taking what $suite has today: figures may differ"
        today=$(packages_of_today "$@")
        packages_download "$folder.new" "$today" || fail "the packages can't be fetched from $mirror" \
            "Check the network, or name another mirror: AINORI_DEBIAN_MIRROR=http://.../debian $0"
    fi
    (cd "$folder.new" && sha256sum -- *.deb >SHA256SUMS && echo "$list" >lock)
    rm -rf "$folder"
    mv "$folder.new" "$folder"
)

# write_lock SET: what the lock names for a set becomes the "SHA256 PATH" of stdin.
write_lock() {
    awk -v set="$1" '/^#/ || $1 != set' "$packages_lock" >"$packages_lock.new"
    sed "s|^|$1 |" >>"$packages_lock.new"
    mv "$packages_lock.new" "$packages_lock"
}
