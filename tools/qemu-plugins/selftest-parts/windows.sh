# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# windows.so against a guest whose instructions and traps were counted by hand; windowed.S says how. Part of the self-test.
# shellcheck disable=SC2154 # parts, plugins, work and cross are the self-test's

windowed() { # run, what is to stand in the counts of the window
    check "$1: $2" "counted: $(cat "$work/$1/counts.json")" "$1" grep -qF "$2" "$work/$1/counts.json"
}

test_windows() {
    "${cross[@]}" "$parts/windowed.c" "$parts/windowed.S" -o "$work/windowed.elf" 2>"$work/windowed.build" ||
        die "can't build windowed" "$work/windowed.build"
    local plugin=$plugins/windows.so,window=w:7,window=other:8,out=counts.json run
    qemu_twice windows-record windowed -icount shift=2,sleep=off,rr=record,rrfile=rr -plugin "$plugin"
    lockstep windows-lockstep windowed 2 "" -plugin "$plugin"
    for run in windows-record windows-lockstep; do
        # Three times what windowed.S says.
        windowed $run '"name":"w","completed":3,"modes":{"M":0,"S":216,"U":0,"VS":18,"VU":51},"instructions":285,"firmware":0,'
        windowed $run '"traps":{"ecall-u":3,"ecall-vs":3,"satp":6,"sfence.vma":3,"wfi":3,"all":18},"again":{"satp":3,"all":3}}'
        windowed $run '"name":"other","completed":0,'
    done
    qemu windows-refused-multi windowed -smp 2 -accel tcg,thread=multi -plugin "$plugin"
    check "refuses a host thread for each hart" "status $(status windows-refused-multi)" windows-refused-multi \
        grep -q "^windows: refused: needs one host thread" "$work/windows-refused-multi/err"
    local options=("" ",window=w" ",window=w:0" ",window=w:1024" ",window=w:1,window=w:2" ",window=w:1,window=v:1") option
    for option in "${options[@]}"; do
        run=windows-refused${option//[^0-9a-z]/-}
        qemu "$run" scaling -accel tcg,thread=single -plugin "$plugins/windows.so$option"
        check "refuses windows.so$option" "status $(status "$run")" "$run" grep -q "^windows: \(refused\|bad option\)" "$work/$run/err"
    done
}
