#!/bin/bash
# Output files: two options that name one file, full disks, limits on file size, and folder names with escape sequences.
# Usage: WEIR_PROGRAM=build/release/weir tests/cli/test_outputs.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

"$weir" synth "$work/d" --format act-jpeg --episodes 2 --steps 6 --size 64x48 --cameras top >/dev/null || exit 1
data=$work/d

# ---- one file by two names ----
mkdir "$work/a"
ln -s "$work/a" "$work/b"
: >"$work/a/there"
ln "$work/a/there" "$work/a/linked"
for pair in "log checksums" "state log" "index checksums" "index state" "index log"; do
    read -r first second <<<"$pair"
    run 2 run "$data" "--$first" "$work/a/new" "--$second" "$work/b/new"
    one_line
    err "--$first and --$second name the same file"
    check "nothing was written" [ ! -e "$work/a/new" ]
done
run 2 run "$data" --log "$work/a/there" --state "$work/a/linked"
err "--state and --log name the same file"
for option in log checksums state index; do
    echo kept >"$work/both"
    # shellcheck disable=SC2094
    "$weir" run "$data" "--$option" "$work/both" >>"$work/both" 2>"$work/err" </dev/null
    check "--$option into the file of stdout exits with 2" [ $? -eq 2 ]
    one_line
    err "--$option and standard output are the same file"
    check "which keeps its content" [ "$(cat "$work/both")" = kept ]
done
run 2 convert "$data" http://127.0.0.1:9/copy.weir --to packed
err "http://127.0.0.1:9/copy.weir: the output is a URL, but only files on this machine can be written; choose one"
one_line
run 0 run "$data" --log "$work/a/log" --checksums "$work/a/sums" --state "$work/a/state" --index "$work/a/index"
run 0 run "$data" --log /dev/null --checksums /dev/null

# ---- no room ----
# limited KIB ARGUMENT...: runs weir with files limited to KIB KiB.
limited() {
    local kib=$1
    shift
    (ulimit -f "$kib" && exec "$weir" "$@") 2>&1 >/dev/null </dev/null | cat >"$work/err"
    return "${PIPESTATUS[0]}"
}
full() {
    check "$1 exits with 1 (was $2)" [ "$2" -eq 1 ]
    check "and says so" grep -qE "File too large|No space left|not written completely|cannot write to standard output" "$work/err"
}
for option in log checksums; do
    limited 0 run "$data" "--$option" "$work/small" --num-epochs 2
    full "--$option over the limit" $?
    "$weir" run "$data" "--$option" /dev/full >"$work/out" 2>"$work/err" </dev/null
    full "--$option on a full disk" $?
done
for option in state index; do
    mkdir -p "$work/room"
    limited 0 run "$data" "--$option" "$work/room/x"
    full "--$option over the limit" $?
    check "no half-written file is left" [ -z "$(ls -A "$work/room")" ]
done
"$weir" run "$data" >/dev/full 2>"$work/err" </dev/null
full "standard output on a full disk" $?
limited 0 run "$data" --profile "$work/traces" --schedule wait=0,warmup=0,active=1,repeat=1
full "--profile over the limit" $?
err "traces were not written"
check "no trace is left" [ -z "$(find "$work/traces" -type f 2>/dev/null)" ]
: >"$work/file"
run 1 run "$data" --profile "$work/file"
err "--profile needs a folder"
limited 8 synth "$work/s" --format act --episodes 1 --steps 6 --size 64x48
full "synth over the limit" $?
check "no part of an episode is left" [ -z "$(find "$work/s" -type f 2>/dev/null)" ]

# ---- names with escape sequences ----
no_escape() {
    check "$1 prints no escape sequence" lacks "$work/out" $'\e'
    check "$1 prints none to stderr" lacks "$work/err" $'\e'
}
odd=$work/$'evil\e[31m\nname'
cp -r "$data" "$odd"
for command in run info; do
    run 0 "$command" "$odd"
    no_escape "$command"
done
check "the name is shown" grep -qF 'evil?[31m?name' "$work/out" "$work/err"
run 0 run "$odd" --json --log "$work/oddlog"
check "every line of the log is JSON" python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1], encoding="utf-8")]
assert lines[0]["config"]["data"].endswith("evil\x1b[31m\nname"), lines[0]' "$work/oddlog"
truncate -s 100 "$odd/episode_1.hdf5"
for policy in fail skip; do
    "$weir" run "$odd" --on-error $policy >"$work/out" 2>"$work/err" </dev/null
    no_escape "run --on-error $policy"
done
finish
