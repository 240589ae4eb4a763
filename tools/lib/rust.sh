# shellcheck shell=bash
# Chooses the Rust that builds everything. To be sourced.
#
# The kernel and some guests are for riscv64imac-unknown-none-elf. A toolchain of rustup has that target's
# core library ready made; Debian's has not, and builds it from source (-Z build-std, see cargo-riscv).
# In this order: what was chosen before, rustup if it has the pinned version (rust-toolchain.toml) with the target, Debian's if it
# is installed, and only then is something fetched: the pinned version by rustup or, where that fails too, Debian's packages.

# shellcheck source=tools/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tools/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

rust_target=riscv64imac-unknown-none-elf
rust_minimum=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$top/Cargo.toml")
rust_pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$top/rust-toolchain.toml")
rust_env=$cache/toolchain.env
debian_rust=(rustc-web cargo-web rust-web-src rustfmt-web rust-web-clippy)

# Version of the toolchain in a folder of programs, or nothing.
rust_version() { "$1/rustc" --version 2>/dev/null | awk '{ print $2 }'; }

# rust_is_complete BIN: new enough, and with the programs that `make test` needs.
rust_is_complete() {
    local program
    for program in rustc cargo rustfmt cargo-fmt cargo-clippy; do
        [ -x "$1/$program" ] || return 1
    done
    at_least "$(rust_version "$1")" "$rust_minimum"
}

# Folder of the programs of a toolchain of rustup, or nothing; without a name, of the active one.
rustup_folder() {
    local rustc
    rustc=$(cd / && RUSTUP_AUTO_INSTALL=0 rustup which ${1:+--toolchain "$1"} rustc 2>/dev/null) && dirname "$rustc"
}

# The pinned one, else the active one, which may be the same under another name.
rustup_bin() { rustup_folder "$rust_pinned" || rustup_folder; }

rustup_is_complete() {
    local bin
    bin=$(rustup_bin) && rust_is_complete "$bin" && [ -d "$bin/../lib/rustlib/$rust_target" ]
}

rustup_is_ready() { rustup_is_complete && [ "$(rust_version "$(rustup_bin)")" = "$rust_pinned" ]; }

rustup_add() {
    have rustup || return 1
    say "fetching Rust $rust_pinned by rustup ..."
    timeout 600 rustup toolchain install "$rust_pinned" --profile minimal --component clippy --component rustfmt \
        --target "$rust_target" >>"$cache/setup.log" 2>&1 && rustup_is_ready && return
    say "rustup could not bring Rust $rust_pinned (see $cache/setup.log)"
    rustup_is_complete || return 1
    say "going on with Rust $(rust_version "$(rustup_bin)"): the kernel's size and paths may differ from their budgets"
}

# Folder of the programs of the oldest Rust that may be used, or nothing.
rustup_oldest() { rustup_folder "$rust_minimum.0"; }

# Brings that, for tools/test. Where rustup isn't, or can't bring it, that step is left out.
rustup_add_oldest() {
    [ "$rust_origin" = rustup ] && ! rustup_oldest >/dev/null || return 0
    say "fetching Rust $rust_minimum by rustup, to test that it is enough ..."
    timeout 600 rustup toolchain install "$rust_minimum.0" --profile minimal --target "$rust_target" \
        >>"$cache/setup.log" 2>&1 || say "rustup could not bring it (see $cache/setup.log)"
}

debian_is_ready() {
    [ -e /usr/lib/rustlib/src/rust/library/core/Cargo.toml ] && rust_is_complete /usr/bin
}

debian_add() { apt_install "Debian's Rust" "${debian_rust[@]}" && debian_is_ready; }

# The choice of an earlier run, if any.
rust_chosen_before() { sed -n 's/^export AINORI_RUST=//p' "$rust_env" 2>/dev/null; }

# Prints "rustup" or "debian".
choose_rust() {
    local wish=${AINORI_RUST:-} origin
    case $wish in
    '') ;;
    rustup | debian) "${wish}_is_ready" || "${wish}_add" || fail "AINORI_RUST=$wish: this Rust can't be used here"
        echo "$wish" && return ;;
    *) fail "AINORI_RUST=$wish: it must be debian or rustup" ;;
    esac
    for origin in $(rust_chosen_before) rustup debian; do
        if "${origin}_is_ready"; then echo "$origin" && return; fi
    done
    for origin in rustup debian; do
        if "${origin}_add"; then echo "$origin" && return; fi
    done
    fail "no Rust $rust_minimum or later could be found or installed"
}

# Sets rust_origin and rust_bin, and writes the choice down for tools/env (and make: it can include the file).
ensure_rust() {
    rust_origin=$(choose_rust)
    rust_bin=/usr/bin
    if [ "$rust_origin" = rustup ]; then rust_bin=$(rustup_bin); fi
    printf '%s\n' "# Written by tools/setup; remove it to choose again." \
        "export AINORI_RUST=$rust_origin" "export AINORI_RUST_BIN=$rust_bin" >"$rust_env.new"
    replace_if_changed "$rust_env.new" "$rust_env"
}
