# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# tlb.so against guests whose TLB misses were counted by hand; translated.h has their tables. Part of the self-test.
#
# In each guest only what it touches is translated, and the fetches of that loop, from one page. So each time that
# translation is turned on with an ITLB that has no entry for the code there is one miss of the ITLB. With one stage the
# code's page has 1 GiB, and that walk reads one PTE, of level 2.
# shellcheck disable=SC2154 # here, parts, plugins, work and cross are the self-test's

# The fields of each line of model_counts and of the tables below:
#   SIZES MODEL ITLB-MISSES DTLB-MISSES WALKS PTEs-OF-THE-FIRST-STAGE PTEs-OF-THE-SECOND, these by level: 0,1,2
model_counts() { # run
    local name='"\([^"]*\)"' number='\([0-9]*\)' levels='\[\([0-9,]*\),0,0\]'
    local line="{\"tlb\":$name,\"model\":$name,\"instructions\":[0-9]*,\"itlb_misses\":$number,\"dtlb_misses\":$number"
    line+=",\"walks\":$number,\"first\":$levels,\"second\":$levels,"
    sed -n "s/^$line.*/\1 \2 \3 \4 \5 \6 \7/p" "$work/$1/counts.json"
}

# translation GUEST CASE HARTS OPTIONS: a run, twice, and its counts against the table on standard input, of one hart.
translation() {
    local run=$1-$2-$3 guest=$1 case=$2 harts=$3 options=$4 wanted
    "${cross[@]}" "-DCASE=$case" "$parts/touches.S" "$parts/$guest.c" -o "$work/$run.elf" 2>"$work/$run.build" ||
        die "can't build $run" "$work/$run.build"
    lockstep "$run" "$run" "$harts" "" -cpu rv64,svnapot=on -plugin "$plugins/tlb.so,$options,out=counts.json"
    while read -r wanted; do
        wanted=$(awk -v n="$harts" '{ for (i = 3; i <= NF; i++) { k = split($i, of, ","); s = ""
            for (j = 1; j <= k; j++) s = s (j > 1 ? "," : "") of[j] * n; $i = s } print }' <<<"$wanted")
        check "$run: $wanted" "counted: $(model_counts "$run" | grep "^${wanted%% [0-9]*} ")" "$run" \
            grep -qxF "$wanted" <(model_counts "$run")
    done
    check "$run: QEMU translated as the tables say" "$(head -n 1 "$work/$run/counts.json")" "$run" \
        grep -q '"unresolved":0,"checked":[0-9]*,"wrong":0,' "$work/$run/counts.json"
}

# The line that counts fences of a mode and kind.
fences_were() { # run, mode, fence, of what, count
    check "$1: $5 x $3 of $4 in $2" "$(grep '"fence"' "$work/$1/counts.json")" "$1" \
        grep -q "{\"mode\":\"$2\",\"fence\":\"$3\",\"of\":\"$4\",\"count\":$5}" "$work/$1/counts.json"
}

test_tlb_one_stage() {
    local few=itlb=4:dtlb=4 many=itlb=16:dtlb=16 harts
    # 8 pages, 10 times: with 4 entries each is gone when it is touched again (80 misses), with 16 none.
    # A second level of 4 sets has two of the pages in each, and the code's in one: only the first round walks.
    # A PTE of level 1 is that of all 8 pages: with it in a cache a walk reads level 0 alone, the first one all three. One of
    # level 2 saves that one. Both are of use to the first walk's successors only; a shared cache of one has the lower.
    for harts in 1 2; do
        local sets=tlb=few:$few,tlb=many:$many,tlb=l2:$few:l2=16/4,tlb=walk1:$few:walk1=1,tlb=walk2:$few:walk2=1
        translation paged loop $harts "$sets,tlb=walk:$few:walk=1,model=as-is" <<END
few as-is 1 80 81 80,80,81 0,0,0
many as-is 1 8 9 8,8,9 0,0,0
l2 as-is 1 80 9 8,8,9 0,0,0
walk1 as-is 1 80 81 80,1,2 0,0,0
walk2 as-is 1 80 81 80,80,2 0,0,0
walk as-is 1 80 81 80,1,2 0,0,0
END
    done
    # A page of 2 MiB is one entry, and its walk reads two PTEs; of 64 KiB there are two.
    translation paged large 1 "tlb=few:$few,model=as-is" <<<"few as-is 1 1 2 0,1,2 0,0,0"
    translation paged napots 1 "tlb=few:$few,model=as-is" <<<"few as-is 1 2 3 2,2,3 0,0,0"
    # Code that is executed where it is, then from a page of 2 MiB too, which is a miss of its own, though QEMU has translated it once.
    translation paged aliases 1 "tlb=many:$many,model=as-is" <<<"many as-is 2 4 6 4,5,6 0,0,0"
    # Each of 4 loads is half on the next page: 5 pages.
    translation paged across 1 "tlb=many:$many,model=as-is" <<<"many as-is 1 5 6 5,5,6 0,0,0"
    # After each of 5 fences in a row the code's page is a miss again.
    translation paged block 1 "tlb=many:$many,model=as-is" <<<"many as-is 6 0 6 0,0,6 0,0,0"
    fences_were paged-block-1 S sfence.vma all 5
    # 4 pages and the code; all again after a fence for all; one page after a fence for its address; none after one for
    # another ASID; all again after one for theirs. A fence for an address leaves the PTE of level 1 in its cache.
    translation paged fences 1 "tlb=many:$many,tlb=walk1:$many:walk1=4,model=as-is" <<END
many as-is 3 13 16 13,13,16 0,0,0
walk1 as-is 3 13 16 13,3,6 0,0,0
END
    fences_were paged-fences-1 S sfence.vma address 1
    fences_were paged-fences-1 S sfence.vma space 2
    # ASIDs 1, 2, 1: 4 pages each, the third time they are still there unless there is too little room. Then 4 global pages
    # under 1 and 2, which are one; a fence for ASID 1 takes the code's page and leaves them.
    translation paged asids 1 "tlb=few:$few,tlb=many:$many,model=as-is" <<END
few as-is 3 16 19 16,16,19 0,0,0
many as-is 3 12 15 12,12,15 0,0,0
END
}

test_tlb_two_stages() {
    local many=itlb=16:dtlb=16
    # Each of 8 pages is a cold miss: 3 PTEs of the first stage, and 3 of the second for each of them and for the page, 15
    # in all. The code's page of 1 GiB: 1 PTE, and 3 of the second for it and for the page. With leaves of 2 MiB in the
    # second stage it is 2 instead of 3. A shadow table has pages of the smaller size: the code's has then 4 KiB or 2 MiB.
    # With a TLB of the second stage the root, the code, two tables and the page are looked up once each; with a cache of its
    # PTE of level 1 each look-up but the first reads level 0 alone.
    local sets=tlb=many:$many,tlb=second-tlb:$many:second-tlb=16,tlb=second-walk:$many:second-walk1=1
    translation staged cold 1 "$sets" <<END
many as-is 1 8 9 8,8,9 34,34,34
many one-stage 1 8 9 8,8,9 0,0,0
many two-stage-4k 1 8 9 8,8,9 34,34,34
many two-stage-2m 1 8 9 8,8,9 0,34,34
many shadow 1 8 9 9,9,9 0,0,0
many shadow-4k 1 8 9 9,9,9 0,0,0
many shadow-2m 1 8 9 8,9,9 0,0,0
second-tlb as-is 1 8 9 8,8,9 5,5,5
second-tlb two-stage-2m 1 8 9 8,8,9 0,1,1
second-walk as-is 1 8 9 8,8,9 34,1,1
END
    # 8 times 4 KiB of a page of 2 MiB: one miss only if the second stage has such leaves too; 11 PTEs each otherwise.
    translation staged large 1 "tlb=many:$many" <<END
many as-is 1 8 9 0,8,9 26,26,26
many one-stage 1 1 2 0,1,2 0,0,0
many two-stage-2m 1 1 2 0,1,2 0,5,5
many shadow-4k 1 8 9 9,9,9 0,0,0
many shadow-2m 1 1 2 0,2,2 0,0,0
END
    # 4 pages and the code; the same after HS-mode's SFENCE.VMA; all again after HFENCE.VVMA, HFENCE.GVMA, and for another
    # VMID; the same for the first VMID, though the other's were fenced; the 4 pages after HFENCE.GVMA for the page that
    # they all are. HFENCE.VVMA leaves the second stage's TLB, which needs 5 entries for each VMID. Without a second stage
    # HFENCE.GVMA is nothing.
    translation staged fences 1 "tlb=many:$many,tlb=second-tlb:$many:second-tlb=16" <<END
many as-is 4 20 24 20,20,24 88,88,88
many one-stage 3 12 15 12,12,15 0,0,0
second-tlb as-is 4 20 24 20,20,24 16,16,16
END
    fences_were staged-fences-1 S hfence.vvma all 2
    fences_were staged-fences-1 S hfence.gvma address 1
    # 4 pages and the code; the same after a fence that VTVM made a trap; all again after one that was executed.
    translation staged traps 1 "tlb=many:$many" <<<"many as-is 2 8 10 8,8,10 36,36,36"
    fences_were staged-traps-1 VS sfence.vma all 1
    # HS-mode loads from the first of 4 pages as VS-mode would: it is translated like that, and VS-mode then misses 3.
    translation staged hypervisor_load 1 "tlb=many:$many,model=as-is" <<<"many as-is 1 4 5 4,4,5 18,18,18"
    check "staged-hypervisor_load-1: HS-mode's miss is its own" "it isn't" staged-hypervisor_load-1 \
        grep -q '^ "S":.*"dtlb_misses":1,"walks":1,"first":\[1,1,1,0,0\],"second":\[4,4,4,0,0\],"reads":15' \
        "$work/staged-hypervisor_load-1/counts.json"
}

# The counts of the window of a run, in the form of model_counts; and its instructions.
window_counts() { # run
    sed -n '/^"windows"/,/^],$/s/^ {"tlb"/{"tlb"/p' "$work/$1/counts.json" >"$work/$1.window"
    mkdir -p "$work/$1-window"
    mv "$work/$1.window" "$work/$1-window/counts.json"
    model_counts "$1-window"
}

window_was() { # run, line of model_counts
    check "$1: in the window $2" "counted: $(window_counts "$1")" "$1" grep -qxF "$2" <(window_counts "$1")
}

test_tlb_windows() {
    # Three rounds over 8 pages, the second one in a window. With 4 entries each page is a miss in each of them, with 16 in the first alone. The code's page was fetched before the
    # window, and stays. By its window's beginning (since=7) nothing is there: code and pages are misses of the window, and of all.
    local few=tlb=few:itlb=4:dtlb=4 many=tlb=many:itlb=16:dtlb=16 instructions='"completed":1,"modes":{"M":0,"S":0,"U":0,"VS":0,"VU":37}' run
    local options="$few,$many,window=w:7,window=other:8,model=as-is,model=two-stage-2m"
    translation staged window 1 "$options" <<END
few as-is 1 24 25 24,24,25 98,98,98
few two-stage-2m 1 24 25 24,24,25 0,98,98
many as-is 1 8 9 8,8,9 34,34,34
END
    window_was staged-window-1 "few as-is 0 8 8 8,8,8 32,32,32"
    window_was staged-window-1 "few two-stage-2m 0 8 8 8,8,8 0,32,32"
    window_was staged-window-1 "many as-is 0 0 0 0,0,0 0,0,0"
    rm -r "$work"/staged-window-1{,.disturbed,-window}
    # What it was until a window that nobody begins has its instructions, and no models.
    translation staged window 1 "$options,since=8" <<<"many as-is 0 0 0 0,0,0 0,0,0"
    check "staged-window-1: a window before the models" "it has others" staged-window-1 \
        grep -qF "\"name\":\"w\",$instructions,\"models\":[]}" "$work/staged-window-1/counts.json"
    rm -r "$work"/staged-window-1{,.disturbed}
    translation staged window 1 "$options,since=7" <<END
few as-is 1 16 17 16,16,17 66,66,66
many as-is 1 8 9 8,8,9 34,34,34
END
    run=staged-window-1
    window_was $run "few as-is 1 8 9 8,8,9 34,34,34"
    window_was $run "many as-is 1 8 9 8,8,9 34,34,34"
    check "$run: its instructions" "counted: $(grep '"name"' "$work/$run/counts.json")" $run grep -qF "\"name\":\"w\",$instructions" "$work/$run/counts.json"
    check "$run: a window that nobody begins" "it is" $run grep -qF '"name":"other","completed":0,' "$work/$run/counts.json"
}

test_tlb_model() { # without QEMU: Sv48 and Sv57, replacement
    local out
    gcc -std=gnu11 -O2 -Wall -Wextra -Werror "$parts/tlb_model.c" "$here"/tlb_{model,fence,tables,cache}.c \
        -o "$work/tlb_model" 2>"$work/tlb_model.build" || die "can't build tlb_model" "$work/tlb_model.build"
    mkdir "$work/model"
    if out=$("$work/tlb_model"); then pass "the model by itself"; else fail "the model by itself" "$out" model; fi
}

tlb_refused() { # run, options, what the message must begin with
    qemu "$1" scaling -accel tcg,thread=single -plugin "$plugins/tlb.so$2"
    check "refuses tlb.so$2" "status $(status "$1")" "$1" grep -q "^tlb: $3" "$work/$1/err"
    check "... and QEMU ends with a failure" "status $(status "$1")" "$1" test "$(status "$1")" = 1
}

test_tlb_options() {
    tlb_refused tlb-none "" "refused: there is no tlb=NAME"
    tlb_refused tlb-unknown ",tlb=my-core" "bad option 'tlb=my-core'"
    tlb_refused tlb-sets ",tlb=p550:l2=10/4" "bad option 'tlb=p550:l2=10/4'"
    tlb_refused tlb-walks ",tlb=p550:walk=8:walk1=8" "bad option 'tlb=p550:walk=8:walk1=8'"
    tlb_refused tlb-model ",tlb=p550,model=three-stage" "bad option 'model=three-stage'"
    tlb_refused tlb-window ",tlb=p550,window=w:0" "bad option 'window=w:0'"
    tlb_refused tlb-two ",tlb=p550,window=w:1,window=w:2" "bad option 'window=w:2'"
    tlb_refused tlb-since ",tlb=p550,since=1024" "bad option 'since=1024'"
    tlb_refused tlb-key ",tlb=p550,size=4" "bad option 'size=4'"
}
