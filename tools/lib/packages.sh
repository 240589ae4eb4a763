# shellcheck shell=bash
# Fetching the Debian packages that guests are made of. apt does it, with a configuration of its own: it checks
# Debian's signatures, and the machine's own packages and lists stay as they are. No root is needed. What was
# fetched once is used from then on, without network. To be sourced.

# shellcheck source=tools/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tools/lib/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

# Everything that comes from Debian for riscv64 is in here.
packages_home=$cache/debian-riscv64

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

# packages_are_there FOLDER WORD...: FOLDER has each of them, and all that it has is as it came.
packages_are_there() {
    local folder=$1 word
    [ -e "$folder/SHA256SUMS" ] && (cd "$folder" && sha256sum --check --status SHA256SUMS) || return 1
    shift
    for word in "$@"; do
        if [ "$word" = KERNEL ]; then word='linux-[a-z]*'; fi
        compgen -G "$folder/${word}_*.deb" >/dev/null || return 1
    done
}

# fetch_packages SUITE FOLDER [--update] WORD...: brings packages of a suite of Debian into .cache/debian-riscv64/FOLDER, unless
# they are there already. A WORD is the name of a package, or KERNEL for the suite's newest kernel. With --update what the suite
# has today is fetched. What comes goes to FOLDER.new and becomes FOLDER in one step when all of it is there and apt has found
# every checksum right, so that FOLDER is whole whenever it exists. In a shell of its own, which lets go of the lock and of apt's
# configuration at its end.
fetch_packages() (
    suite=$1 folder=$packages_home/$2 update='' names=()
    shift 2
    if [ "${1:-}" = --update ]; then update=yes && shift; fi
    once_at_a_time debian-riscv64
    if [ -z "$update" ] && packages_are_there "$folder" "$@"; then exit 0; fi

    mirror=$(debian_mirror)
    [ -e "$debian_keyring" ] || fail "$debian_keyring is missing" "Install the package debian-archive-keyring."
    packages_configure "$suite" "$mirror"
    say "reading the package lists of Debian's $suite for riscv64 from $mirror ..."
    apt-get -q update >&2 || fail "the package lists of Debian's $suite for riscv64 can't be read from $mirror" \
        "Check the network, or name another mirror: AINORI_DEBIAN_MIRROR=http://.../debian $0"
    for word in "$@"; do
        if [ "$word" = KERNEL ]; then word=$(kernel_package); fi
        [ -n "$word" ] || fail "$mirror has no linux-image-riscv64 in $suite" \
            "Name a mirror that has riscv64: AINORI_DEBIAN_MIRROR=http://.../debian $0"
        names+=("$word")
    done

    say "fetching ${names[*]} ..."
    if [ -n "$update" ]; then rm -rf "$folder.new"; fi
    mkdir -p "$folder.new"
    (cd "$folder.new" && apt-get -q download "${names[@]}" >&2) || fail "the packages can't be fetched from $mirror" \
        "What has come so far is kept in $folder.new: run this again when the network is back."
    (cd "$folder.new" && sha256sum -- *.deb >SHA256SUMS)
    rm -rf "$folder"
    mv "$folder.new" "$folder"
)
