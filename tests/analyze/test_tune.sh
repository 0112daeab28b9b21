#!/bin/bash
# weir tune: the printed command runs, --config reads the file of --out, limits hold, Ctrl-C and --max-minutes end with
# the best so far. analyze/test_tune.c tests the search; trials here are too short to mean anything.
# Usage: WEIR_PROGRAM=build/release/weir tests/analyze/test_tune.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

data=$work/da\'ta
"$weir" synth "$data" --format act-jpeg --episodes 3 --steps 20 --size 48x32 --cameras top,wrist >/dev/null || exit 1
quick=(--min-seconds 0.01 --max-cache 0)

# json NAME PYTHON: `found` is the JSON object, `chosen` the chosen candidate.
json() {
    check "$1" python3 - "$work/out" "$data" "$work/conf" <<PY
import json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    found = json.load(f)
data = sys.argv[2]
chosen = found["candidates"][found["chosen"]]
$2
PY
}

# ---- the measurements, and the file of --out ----
run 0 tune "$data" "${quick[@]}" --batch-size 4 --step-ms 1 --no-shuffle --json --out "$work/conf" --log "$work/log"
err "usable cores; engines: pread"
err "  1  workers "
json "the choice was measured" '
assert found["end"] == "done" and found["path"] and found["turns"] >= 3
assert sum(len(c["turns"]) for c in found["candidates"]) == found["turns"]
assert not chosen["error"] and chosen["turns"] and 1 <= chosen["setting"]["num_workers"] <= 1.5 * found["cores"] + 1
assert all(c["peak_rss_bytes"] > 0 for c in found["candidates"]) and found["noise"] is not None
assert found["bounds"]["consumer"] > 0 and found["bounds"]["cores"] > 0
command = found["command"]
assert command[:3] == ["weir", "run", data] and "--no-shuffle" in command
options = dict(zip(command[3:], command[4:]))
assert options["--batch-size"] == "4" and options["--step-ms"] == "1"
assert options["--num-workers"] == str(chosen["setting"]["num_workers"]) and options["--io"] == chosen["setting"]["io"]
lines = [l.rstrip("\n") for l in open(sys.argv[3]) if not l.startswith("#")]
written = dict(l.split(" = ", 1) for l in lines)
assert written["no-shuffle"] == "true" and written["batch-size"] == "4"
assert {"--" + k for k in written} == {w for w in command if w.startswith("--")}'
check "one log line per trial" python3 - "$work/log" "$work/out" <<'PY'
import json, sys
turns = [json.loads(l) for l in open(sys.argv[1])]
assert len(turns) == json.load(open(sys.argv[2]))["turns"]
assert all(t["type"] == "turn" and t["images_per_s"] > 0 and t["setting"] for t in turns)
PY
run 1 report "$work/log"
err "$work/log: is a log of weir tune; weir report does not read it"
one_line
run 0 run "$data" --config "$work/conf" --max-batches 2 --json
check "weir run accepts the file" python3 - "$work/out" "$work/conf" <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))["run"]["config"]
written = dict(l.strip().split(" = ", 1) for l in open(sys.argv[2]) if not l.startswith("#"))
assert str(config["num_workers"]) == written["num-workers"] and config["io"] == written["io"]
assert config["batch_size"] == 4 and config["no_shuffle"] is True and config["max_batches"] == 2
PY
run 0 info "$data" --config "$work/conf"

# ---- text output: path, curve, noise, and a last line that runs ----
run 0 tune "$data" "${quick[@]}" --config "$work/conf"
out "--batch-size 4 --no-shuffle --" # the file's workers are ignored: they are searched for
count '^ +1  workers [0-9]+, prefetch auto, auto: [0-9]+ images/s ' 1
count '^ +2  limits in images/s: the cores [0-9]+, the workers [0-9]+, the step [0-9]+$' 1
count '^workers  images/s$' 1
count ' <- chosen$' 1
count '; noise: trials of the same setting differ by up to [0-9.]+ %$' 1
command=$(tail -n 1 "$work/out")
check "the last line runs by itself: $command" bash -c "PATH=$(dirname "$weir"):\$PATH; $command --max-batches 1 --every 0" >/dev/null

# ---- limits ----
# A batch takes a worker longer than the step; otherwise the cache could gain nothing.
"$weir" synth "$work/large" --format act-jpeg --episodes 3 --steps 20 --size 320x240 --cameras top,wrist >/dev/null || exit 1
run 0 tune "$work/large" --min-seconds 0.3 --step-ms 2 --max-memory 100M --max-cpu 1 --max-cache 10M --json
json "one worker, within the memory, and the decode cache was tried" '
assert found["cores"] == 1 and chosen["setting"]["num_workers"] == 1 and found["candidates"][0]["setting"]["prefetch"] == 1
assert all(t["peak_rss_bytes"] <= 100 << 20 for t in chosen["turns"])
assert any(c["setting"]["decode_cache_bytes"] > 0 for c in found["candidates"])'

# ---- a decode cache: the printed command runs long enough to use it ----
run 0 tune "$work/large" --min-seconds 0.1 --max-cpu 1 --out "$work/conf"
out "; from the second epoch on, because the first fills the cache"
count '^weir run .* --decode-cache [0-9]+M --num-epochs 3$' 1
check "and so does the file of --out" grep -qx 'num-epochs = 3' "$work/conf"
command=$(tail -n 1 "$work/out")
check "frames come from the cache: $command" python3 - "$(bash -c "PATH=$(dirname "$weir"):\$PATH; $command --json")" <<'PY'
import json, sys
assert '"03e_cache_copy"' in sys.argv[1] and json.loads(sys.argv[1])["run"]["config"]["num_epochs"] == 3
PY
run 1 tune "$data" "${quick[@]}" --max-memory 1M
err "weir tune: nothing could be measured: it used "
run 0 tune "$data" --min-seconds 0.2 --max-cache 0 --max-minutes 0.01
out "--max-minutes reached: this is the best setting so far"

# ---- invalid input ----
run 1 tune "$work/none"
one_line
run 2 tune "$data" --device gpu
err "--device"
one_line
run 2 tune "$data" --num-workers 2
err "unknown option --num-workers"
run 1 tune "$data" "${quick[@]}" --out "$work/none/conf"
err "$work/none/conf: cannot be written: "
one_line
run 1 tune "$data" "${quick[@]}" --log "$work/none/log"
one_line
run 1 tune "$data" "${quick[@]}" --crop 1000x1000+0+0
err "nothing could be measured: "

# ---- dataset files are never written to ----
sum=$(sha256sum "$data/episode_1.hdf5")
for option in --log --out; do
    run 1 tune "$data" "${quick[@]}" "$option" "$data/episode_1.hdf5"
    err "episode_1.hdf5: is a part of the dataset, so it is not overwritten"
    one_line
    check "the file is unchanged ($option)" [ "$(sha256sum "$data/episode_1.hdf5")" = "$sum" ]
done

# ---- Ctrl-C: the best so far ----
rm -f "$work/out"
"$weir" tune "$data" --min-seconds 0.1 --max-cache 0 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q '^  1  ' "$work/out" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -INT $pid
wait $pid
check "exit status 130 (was $?)" [ $? -eq 130 ]
out "interrupted: this is the best setting so far"
check "and its command" grep -q '^weir run .* --num-workers ' "$work/out"
rm -f "$work/out"
"$weir" tune "$data" --min-seconds 0.1 --max-cache 0 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q '^  1  ' "$work/out" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid
wait $pid
check "SIGTERM: exit status 143 (was $?)" [ $? -eq 143 ]
out "interrupted: this is the best setting so far"

finish
