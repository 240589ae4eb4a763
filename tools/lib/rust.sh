# shellcheck shell=bash
# Chooses the Rust that builds everything. To be sourced.
#
# The kernel and some guests are for riscv64imac-unknown-none-elf. A toolchain of rustup has that target's
# core library ready made; Debian's has not, and builds it from source (-Z build-std, see cargo-riscv).
# In this order: what was chosen before, rustup if it has the target, Debian's if it is installed, and only
# then is something fetched: the target for rustup or, where that fails too, Debian's packages.

# shellcheck source=tools/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tools/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

rust_target=riscv64imac-unknown-none-elf
rust_minimum=1.85
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

# Folder of the programs of rustup's active toolchain, or nothing.
rustup_bin() {
    local rustc
    rustc=$(cd / && rustup which rustc 2>/dev/null) && dirname "$rustc"
}

rustup_is_ready() {
    local bin
    bin=$(rustup_bin) && rust_is_complete "$bin" && [ -d "$bin/../lib/rustlib/$rust_target" ]
}

rustup_add() {
    have rustup || return 1
    say "fetching $rust_target for rustup ..."
    timeout 120 rustup target add "$rust_target" >>"$cache/setup.log" 2>&1 &&
        timeout 120 rustup component add rustfmt clippy >>"$cache/setup.log" 2>&1 &&
        rustup_is_ready && return
    say "rustup could not bring a complete toolchain of Rust $rust_minimum or later (see $cache/setup.log)"
    return 1
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
