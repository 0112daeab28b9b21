#!/bin/bash
# The command line: help, version, usage errors, doctor, unwritable standard output.
# Usage: WEIR_PROGRAM=build/release/weir tests/cli/test_cli.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

empty_out() { check "stdout is empty" [ ! -s "$work/out" ]; }
empty_err() { check "stderr is empty" [ ! -s "$work/err" ]; }

run 0 --help
out "Usage: weir COMMAND"
empty_err
# An extra that was not built is not listed.
mapfile -t extras < <("$weir" --help | sed -n '/^Extras:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
for command in run info verify convert bench tune whatif synth report compare top doctor "${extras[@]}"; do
    run 0 --help
    out "  $command "
    run 0 help "$command"
    out "Usage: weir $command"
    empty_err
    cp "$work/out" "$work/help"
    run 0 "$command" --help
    check "weir help $command is weir $command --help" cmp "$work/out" "$work/help"
    listed=$(grep -c '^  --' "$work/out")
    last=$(tail -n 1 "$work/out")
    run 0 "$command" --help-all
    all=$(grep -c '^  --' "$work/out")
    if grep -q '^  --lang ' "$work/out"; then
        check "weir $command --help lists --lang" grep -q '^  --lang ' "$work/help"
    fi
    if [ "$listed" -lt "$all" ]; then
        check "of its $all options, weir $command --help lists 8 to 10 common ones (lists $listed)" \
            grep -qxE "8|9|10" <<<"$listed"
        check "its last line names --help-all" [ "$last" = "weir $command --help-all lists and explains all options." ]
    else
        check "all $all options of weir $command --help fit on a page, with --config, --help and --help-all" [ "$all" -le 24 ]
    fi
    run 2 "$command" --no-such-option
    err "weir $command: unknown option --no-such-option"
    empty_out
done
run 0 help
for group in Measure Improve Datasets ${extras[0]:+Extras}; do
    check "weir --help has the heading $group once" [ "$(grep -c "^$group:$" "$work/out")" -eq 1 ]
done
run 2
err "Usage: weir COMMAND"
empty_out

# ---- help fits the width: 80 columns when piped, or those of the terminal ----
check "no line of help is too long" python3 - "$weir" <<'PY'
import fcntl, os, pty, re, struct, subprocess, sys, termios, unicodedata
weir = sys.argv[1]
os.environ.pop("COLUMNS", None)

def in_terminal(columns, arguments):
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        os.execv(weir, [weir, *arguments])
    text = b""
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # the child has closed the terminal
            break
        if not block:
            break
        text += block
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, arguments
    return text.decode().replace("\r", "")

def piped(_, arguments):
    return subprocess.run([weir, *arguments], check=True, capture_output=True, text=True).stdout

def width(line):
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)

commands = re.findall(r"^  ([a-z]+)  ", piped(80, ["--help"]), re.M)
calls = [["--help"]] + [[c, how] for c in commands if c != "help" for how in ("--help", "--help-all")] + [["help", "run"]]
assert len(calls) > 20, calls
for columns, call in (60, in_terminal), (80, in_terminal), (120, in_terminal), (80, piped):
    widest = 0
    for arguments in calls:
        text = call(columns, arguments)
        assert len(text) > 100, arguments
        for line in text.splitlines():
            assert width(line) <= columns, (columns, arguments, line)
            assert line == line.rstrip(), (columns, arguments, line)
            widest = max(widest, width(line))
    assert widest > columns - 5, (columns, widest)
PY

# ---- --json: every command prints exactly one object, and none that is broken ----
"$weir" synth "$work/data" --episodes 2 --steps 16 --size 64x48 --cameras top >/dev/null
quick=(--min-seconds 0.02 --max-minutes 0.2)
object() {
    check "weir $* prints one object with the schema first" python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
assert next(iter(found)) == "schema" and found["schema"] == 1, found' "$work/out"
}
# one STATUS COMMAND ARGUMENT...: COMMAND --json prints an object and exits with STATUS.
one() {
    run "$@" --json
    object "${@:2}"
}
mapfile -t commands < <("$weir" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | grep -vx help)
for command in "${commands[@]}"; do
    case $command in
    doctor) one 0 doctor ;;
    info | verify) one 0 "$command" "$work/data" ;;
    run) one 0 run "$work/data" --log "$work/log" ;;
    report) one 0 report "$work/log" ;;
    compare) one 0 compare "$work/log" "$work/log" ;;
    synth) one 0 synth "$work/more" --episodes 1 --steps 4 --size 64x48 --cameras top ;;
    convert) one 0 convert "$work/data" "$work/packed.weir" --to packed ;;
    bench) one 0 bench "$work/data" --formats as-is --cache warm --num-workers 1 --repeats 1 "${quick[@]}" ;;
    tune) one 0 tune "$work/data" "${quick[@]}" --max-cache 0 ;;
    whatif) one 0 whatif "$work/data" --max-minutes 0.05 ;;
    train) one 0 train "$work/data" --hidden-dim 8 --dim-feedforward 8 --max-batches 2 --batch-size 2 --num-workers 1 ;;
    motion) one 0 motion --num_envs 8 --num_steps 16 --device cpu --trace_path "$work/motion" ;;
    scenario) one 0 scenario --device cpu --batch_size 2 --warmup_steps 0 --profile_steps 1 --trace_dir "$work/traces" --output_json "" ;;
    top) run 0 top --json -- true && object top ;;
    *) check "weir $command --json is tested" false ;;
    esac
    case $command in
    doctor | synth | top | motion | scenario) continue ;;
    esac
    more=()
    [ "$command" != convert ] || more=("$work/never" --to packed)
    [ "$command" != compare ] || more=("$work/log")
    run 1 "$command" "$work/nowhere" "${more[@]}" --json
    one_line
    [ ! -s "$work/out" ] || object "$command" of nothing
done
if [ -e /dev/full ]; then
    run 1 run "$work/data" --checksums /dev/full --json
    err "/dev/full: not written completely"
    empty_out
fi
run 0 run "$work/data" --profile "$work/profile" --schedule wait=0,active=2 --json
object run --profile
run 0 report "$work"/profile/* --json
object report of a trace
echo broken >"$work/data/episode_1.hdf5"
one 3 verify "$work/data"
run 1 run "$work/data" --json
empty_out
run 1 info "$work/data" --json
one_line
[ ! -s "$work/out" ] || object info of broken data

run 0 --version
check "the version has its three parts" grep -qE '^weir [0-9]+\.[0-9]+\.[0-9]+ \([^)]+\), (gcc|clang) ' "$work/out"
out "HDF5 1."
out "libjpeg-turbo"
cp "$work/out" "$work/version"
run 0 -V
check "-V prints the same" cmp "$work/out" "$work/version"

run 2 dcotor
err "unknown command 'dcotor'; did you mean doctor?"
empty_out
run 2 help rum
err "did you mean run?"
run 2 xyzzy
err "unknown command 'xyzzy'"
check "no wild guess" [ "$(grep -c 'did you mean' "$work/err")" -eq 0 ]
run 2 $'bell\a'
check "control characters are not echoed" [ "$(grep -c $'\a' "$work/err")" -eq 0 ]
run 2 doctor extra
err "unexpected argument 'extra'"

# ---- a signal ends a command that does not handle it with the shell's exit status ----
mkfifo "$work/pipe"
"$weir" report - <"$work/pipe" >"$work/out" 2>"$work/err" &
pid=$!
exec 3>"$work/pipe" # opens when the command's end is open
kill -TERM $pid
wait $pid
status=$?
exec 3>&-
check "SIGTERM ends weir report with 143 (was $status)" [ "$status" -eq 143 ]

run 0 doctor
empty_err
for word in CPU cores memory hdf5 jpeg inflate io_uring liburing servers stacks python cuda pread turbo; do
    check "doctor lists $word" grep -qE "^  $word +[^ ]" "$work/out"
done
run 0 doctor --json
empty_err
if command -v python3 >/dev/null; then
    check "doctor --json is JSON with the documented members" python3 - "$work/out" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
m = d["machine"]
assert 1 <= m["cores_usable"] <= m["cores_affinity"] <= m["cores_online"], m
assert m["memory_total_bytes"] > m["memory_available_bytes"] > 1 << 20, m
found = {f["name"]: f for f in d["found"]}
assert {"hdf5", "jpeg", "inflate", "io_uring", "liburing", "servers", "stacks", "cuda"} <= set(found), found
for row in d["found"] + d["io"] + d["decoders"] + d["layouts"]:
    assert row["present"] is (row["why_not"] is None), row
    assert row["text"] or row["why_not"], row
assert {"pread", "null"} <= {r["name"] for r in d["io"]}
assert d["layouts"]
assert ("gpu 0" in found) == (len(d["gpus"]) > 0), d["gpus"]
PY
fi

# ---- doctor and GPUs: without a module, and with the stand-in's ----
WEIR_CUDA_MODULE=/nowhere run 0 doctor
check "no module: one line for the driver, one for the module" \
    [ "$(grep -cE '^  (cuda|cuda module) +(yes|no) +' "$work/out")" -eq 2 ]
count '^  cuda module +no +WEIR_CUDA_MODULE=/nowhere cannot be loaded: ' 1
count '^  (nvjpeg|cupti) +no +needs the CUDA module, which is missing$' 2
count '^  gpu ' 0
if [ -n "${WEIR_FAKE_CUDA_MODULE:-}" ]; then
    head -c 4096 "$WEIR_FAKE_CUDA_MODULE" >"$work/cut.so"
    WEIR_CUDA_MODULE=$work/cut.so run 0 doctor
    count '^  cuda module +no +.*/cut.so: it is damaged or truncated: it has 4096 bytes instead of at least [0-9]+; ' 1
    count '^  gpu ' 0
    export WEIR_CUDA_MODULE=$WEIR_FAKE_CUDA_MODULE
    WEIR_FAKE_CUDA=gpus=2 run 0 doctor
    count '^  cuda +yes +driver for CUDA 13.0; 2 GPUs$' 1
    count '^  cuda module +yes +no CUDA: the stand-in for tests; /' 1
    count '^  gpu [01] +yes +stand-in, 1 GiB, compute capability 9.0, 1 multiprocessor, 2 copy engines, 7 JPEG engines.*, .* GB/s from pinned memory$' 2
    count '^  cupti +yes ' 1
    WEIR_FAKE_CUDA=gpus=2 run 0 doctor --json
    check "doctor --json has the GPUs' numbers" python3 - "$work/out" <<'PY'
import json, sys
gpus = json.load(open(sys.argv[1]))["gpus"]
assert [g["number"] for g in gpus] == [0, 1], gpus
for g in gpus:
    assert g["memory_bytes"] == 1 << 30 and g["copy_engines"] == 2 and g["why_not"] is g["why_not_measured"] is None, g
    assert g["pinned_copy_bytes_per_s"] > 1e8, g
PY
    WEIR_FAKE_CUDA=memory_bytes=30000000 run 0 doctor
    count '^  gpu 0 +yes +stand-in, .* GB/s from pinned memory$' 1
    for fake in memory_bytes=1000000 memory_bytes=30000000,fail=oom:2000000; do
        WEIR_FAKE_CUDA=$fake run 0 doctor
        count '^  gpu 0 +yes +stand-in, .*, bandwidth not measured: cannot allocate [17] MiB of GPU memory$' 1
    done
    WEIR_FAKE_CUDA=fail=pin run 0 doctor
    count '^  gpu 0 +yes +stand-in, .*, bandwidth not measured: 256 MiB of memory cannot be pinned; raise ulimit -l$' 1
    WEIR_FAKE_CUDA=fail=oom:2000000 run 0 doctor --json
    check "doctor --json has no bandwidth, but the reason" python3 - "$work/out" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
(gpu,) = found["gpus"]
assert gpu["pinned_copy_bytes_per_s"] is None and gpu["why_not"] is None, gpu
assert gpu["why_not_measured"] == "cannot allocate 256 MiB of GPU memory", gpu
assert [f["present"] for f in found["found"] if f["name"] == "gpu 0"] == [True], found
PY
    WEIR_FAKE_CUDA=fail=lost:3 run 0 doctor
    count '^  gpu 0 +no +stand-in, .*: .*lost' 1
    WEIR_FAKE_JPEG=engines=1 run 0 doctor
    count '^  gpu 0 +yes .*, 1 JPEG engine at ' 1
    WEIR_FAKE_JPEG=engines=0 run 0 doctor
    count '^  nvjpeg +yes .*; no JPEG engines: the SMs decode$' 1
    WEIR_FAKE_CUDA=none run 0 doctor
    count '^  nvjpeg +no .*; no GPU$' 1
    count '^  cuda +no +no NVIDIA driver is loaded' 1
    count '^  gpu ' 0
    unset WEIR_CUDA_MODULE
fi
taskset -c "$(taskset -cp $$ | sed 's/.*[: ]\([0-9]*\).*/\1/')" "$weir" doctor --json >"$work/out" 2>"$work/err"
out '"cores_usable": 1'

if [ -e /dev/full ]; then
    "$weir" --help >/dev/full 2>"$work/err"
    check "a full disk is exit 1 (was $?)" [ $? -eq 1 ]
    err "cannot write to standard output: No space left on device"
fi
"$weir" --help >&- 2>"$work/err"
check "a closed stdout is exit 1" [ $? -eq 1 ]
err "cannot write to standard output"
# A reader that exits before we write: no message, no signal, exit 1.
mkfifo "$work/fifo"
: <"$work/fifo" &
exec 3>"$work/fifo"
wait $!
"$weir" doctor >&3 2>"$work/err"
echo $? >"$work/status"
exec 3>&-
: >"$work/out"
check "a reader that left is exit 1" [ "$(cat "$work/status")" -eq 1 ]
empty_err

# Too little memory for one frame (AddressSanitizer cannot even start).
if (ulimit -v 200000 && "$weir" --version >/dev/null 2>&1); then
    (ulimit -v 200000 && "$weir" synth "$work/large" --size 8192x8192 --episodes 1 --steps 3 --threads 1 >"$work/out" 2>"$work/err")
    check "a frame that memory cannot hold is exit 1 (was $?)" [ $? -eq 1 ]
    one_line
    err "weir synth: cannot render a frame: Cannot allocate memory; free some memory"
fi

finish
