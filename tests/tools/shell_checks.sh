# shellcheck shell=bash
# Sourced by the test scripts. $weir is the program, $work a folder for this run; check, run, out, err and the others
# count in $checks and $failed; `finish` ends the script.
set -u
weir=$(realpath "${WEIR_PROGRAM:?set WEIR_PROGRAM to the program}")
work=$(mktemp -d)
export COLUMNS=1000 # most checks are about the text of a line, not about its layout
trap 'rm -rf "$work"' EXIT
failed=0 checks=0
: >"$work/out"
: >"$work/err"

# check NAME CONDITION...: counts a check; on failure prints NAME and the last output.
check() {
    local name=$1
    shift
    checks=$((checks + 1))
    "$@" && return
    failed=$((failed + 1))
    echo "FAIL: $name"
    head -n 40 "$work/out" | cut -c 1-300 | sed 's/^/    out: /'
    sed 's/^/    err: /' "$work/err"
}

# run STATUS ARGUMENT...: runs weir and checks its exit status; output goes to $work/out and $work/err.
run() {
    local expected=$1 status
    shift
    "$weir" "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    check "weir $* exits with $expected (was $status)" [ "$status" -eq "$expected" ]
}

out() { check "stdout has: $1" grep -qF -- "$1" "$work/out"; }
err() { check "stderr has: $1" grep -qF -- "$1" "$work/err"; }
no_out() { check "stdout does not have: $1" lacks "$work/out" "$1"; }
lacks() { ! grep -qF -- "$2" "$1"; }
# count PATTERN N: N lines of stdout match.
count() { check "$2 lines of stdout match: $1 (are $(grep -cE -- "$1" "$work/out"))" [ "$(grep -cE -- "$1" "$work/out")" -eq "$2" ]; }
one_line() { check "one line on stderr" [ "$(wc -l <"$work/err")" -eq 1 ]; }

# built_in FORMAT: true if weir convert can write it.
built_in() { ! COLUMNS=1000 "$weir" convert --help | grep -qE -- "^  $1 .*\(not available: "; }

finish() {
    echo "$checks checks, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}
