# shellcheck shell=sh
# What init and the jobs of the Linux guest use. To be sourced.

# parameter NAME [DEFAULT]: the value of ainori.NAME=VALUE on the kernel's command line.
parameter() {
    parameter_value=${2:-}
    # shellcheck disable=SC2013 # words are what is wanted
    for parameter_word in $(cat /proc/cmdline); do
        case $parameter_word in
        "ainori.$1="*) parameter_value=${parameter_word#*=} ;;
        esac
    done
    echo "$parameter_value"
}

# number NAME DEFAULT: the same, where only a positive whole number will do. Fails otherwise.
number() {
    case $(parameter "$1" "$2") in
    '' | 0* | *[!0-9]*)
        echo "ainori.$1 must be a positive whole number" >&2
        return 1
        ;;
    *) parameter "$1" "$2" ;;
    esac
}

# result [FIELD]...: prints a good result; each field is JSON, as in '"seconds":0.321'.
result() { print_result true "$@"; }

# fail REASON: prints a bad result.
fail() { print_result false "\"error\":\"$1\""; }

print_result() {
    print_ok=$1
    shift
    print_line="\"job\":\"${AINORI_JOB:-}\",\"cpus\":$(nproc),\"boot_s\":${AINORI_BOOT_S:-null}"
    for print_field in "$@"; do print_line="$print_line,$print_field"; done
    echo "@result {$print_line,\"ok\":$print_ok}"
}
