#!/bin/bash
# `weir run`: every option, tables and epoch lines in both languages, the log, checksums, the simulated step, bad
# frames, Ctrl-C, full disks.
# Usage: WEIR_PROGRAM=build/release/weir tests/cli/test_run.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

# log NAME PYTHON: `lines` are the log's lines; runs, epochs and tables are those of one type.
log() {
    check "$1" python3 - "$work/log" <<PY
import json, re, sys
lines = [json.loads(l) for l in open(sys.argv[1], encoding="utf-8")]
runs, epochs, tables = ([l for l in lines if l["type"] == t] for t in ("run", "epoch", "stages"))
starts = [l for l in lines if l["type"] == "start"]
assert len(starts) == 1 and starts[0] is lines[1], "the first batch has a line"
assert starts[0]["first_batch_s"] >= starts[0]["open_s"] >= starts[0]["index_s"] > 0
assert len(lines) == 1 + len(runs) + len(epochs) + len(tables) and len(runs) == 1 and lines[0] is runs[0]
stage = lambda t, name: next((s for s in t["stages"] if s["name"] == name), None)
$2
PY
}

synth() { "$weir" synth "$work/$1" --format "$2" --episodes "$3" --steps "$4" --size 64x48 --cameras top,wrist >/dev/null || exit 1; }
synth jpeg act-jpeg 4 10
synth raw act 4 10
synth bench astrobench 4 10
data=$work/jpeg

# ---- the plain run ----
run 0 run "$data" --log "$work/log"
log "the log has everything that the table shows" '
(t,), (e,) = tables, epochs
assert (t["epoch_first"], t["epoch_last"], t["epoch_count"], t["final"]) == (1, 1, 1, True), t
assert (e["epoch"], e["epoch_count"]) == (1, 1) and e["reads"] in ("warm", "partly", "cold"), e
assert 0 <= e["page_cache_fraction"] <= 1 and e["samples_per_s"] > 0 and e["images_per_s"] > 0, e
row = stage(t, "00_TOTAL_getitem")
assert (row["kind"], row["side"], row["count"]) == ("span", "worker", 40), row
row = stage(t, "03b_image_decode")
assert (row["kind"], row["side"], row["count"]) == ("work", "worker", 80) and row["cpu_over_wall"] != 0, row
assert len(t["workers"]) == runs[0]["machine"]["cores_usable"], t["workers"]
assert all(w["name"].startswith("weir-w") and w["unattributed_s"] >= 0 for w in t["workers"]), t["workers"]
assert t["queue"]["slots"] > 0 and t["io"]["fallback_reads"] == 0 and t["bad_frames"] == 0, t
assert t["profiler"]["zones"] > 0 and t["profiler"]["zone_cost_ns"] > 0, t["profiler"]
(cause,) = t["verdict"]["causes"]
assert cause["cause"] == "cannot-tell" and t["verdict"]["data_bound"] is None, t["verdict"]
assert re.fullmatch(r"cannot tell, because the run was too short: \d+ training batches in [0-9.]+ s \(a verdict needs 20 in 0\.5 s or "
                    r"more, or 8 in 1\.0 s\)", cause["text"]), cause
shares = t["verdict"]["step_shares"]
assert 0 <= shares["data_wait"] <= 1 and shares["forward"] == 0, shares'
err "act-plus-plus, 4 episodes (3 for training, 1 for validation)"
err "cameras: top 64x48, wrist 64x48"
check "no progress in a short run through a pipe" [ "$(wc -l <"$work/err")" -eq 4 ]
for set in raw bench; do
    run 0 run "$work/$set" --log "$work/log"
    log "all samples of $set" 'assert stage(tables[0], "00_TOTAL_getitem")["count"] == 40'
done
run 0 run "$data/episode_1.hdf5"
err "1 episodes (1 for training, 0 for validation)"

# ---- options from a file ----
printf '%s\n' '# settings' 'num-workers = 1  # of many' 'batch_size = 5' 'formats = as-is' 'json = true' >"$work/conf"
run 0 run "$data" --config "$work/conf" --batch-size 3
check "the command line takes precedence over the file" grep -q '"batch_size":3,"num_workers":1,' "$work/out"
run 0 info "$data" --config="$work/conf"
check "other commands ignore options that they lack" grep -q '^{' "$work/out"
echo 'num-workerz = 2' >>"$work/conf"
run 2 run "$data" --config "$work/conf"
err "$work/conf:6: no command has an option --num-workerz"
sed -i '6s/.*/prefetch = some/' "$work/conf"
run 2 run "$data" --config "$work/conf"
err "$work/conf:6: --prefetch 'some': must be a whole number or auto"

# ---- every option, hyphens and underscores ----
options=(--batch-size 3 --num-workers 1 --prefetch 4 --num-epochs 2 --max-batches 5 --sampling episode --obs-history 2
    --chunk-size 7 --pad last --action-offset -1 --seed 18446744073709551615 --no-shuffle --drop-last --cameras wrist
    --color bgr --dtype f32 --image-layout nchw --train-split 0.75 --on-error substitute --io null --io-depth 9 --cold --decoder null
    --step-ms 0.5 --step-spin --every 1 --lang zh --checksums "$work/sums" --json --log "$work/log")
run 0 run "$data" "${options[@]}"
check "--json prints one object, made from the lines of the log" python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
lines = [json.loads(l) for l in open(sys.argv[2])]
types = [l["type"] for l in lines]
assert types == ["run", "start", "epoch", "stages", "epoch", "stages", "stages"], types
assert list(found) == ["schema", "run", "start", "epochs", "measured", "report", "ranks", "profile"], list(found)
for run in found["run"], lines[0]: # read twice
    run["machine"].pop("memory_available_bytes")
assert found["run"] == lines[0] and found["start"] == lines[1] and found["report"] == lines[-1]
assert found["epochs"] == [lines[2], lines[4]] and found["measured"] is None and found["profile"] is None and found["ranks"] == []
assert found["report"]["final"] and "data_bound" in found["report"]["verdict"]' "$work/out" "$work/log"
log "the log has the requested and the actual settings" '
want = dict(batch_size=3, num_workers=1, prefetch=4, num_epochs=2, max_batches=5, sampling="episode", obs_history=2,
    chunk_size=7, pad="last", action_offset=-1, seed=18446744073709551615, no_shuffle=True, drop_last=True,
    cameras="wrist", color="bgr", dtype="f32", image_layout="nchw", train_split=0.75, on_error="substitute", io="null",
    decoder="null", step_ms=0.5, step_spin=True, every=1, lang="zh", json=True, no_timing=False)
got = runs[0]["config"]
bad = {k: (got.get(k), v) for k, v in want.items() if got.get(k) != v}
assert not bad, bad
assert got["data"].endswith("/jpeg") and got["log"].endswith("/log") and got["checksums"].endswith("/sums")
used = runs[0]["used"]
assert used["num_workers"] == 1 and used["prefetch"] == 4 and used["slots"] == 4, used
assert used["episodes"] == 4 and used["images_per_sample"] == 2 and used["slot_bytes"] > 0, used
assert runs[0]["machine"]["cores_usable"] >= 1 and runs[0]["versions"]["hdf5"].startswith("HDF5 1."), runs[0]
assert runs[0]["weir"] and runs[0]["git"]'
cp "$work/sums" "$work/hyphens"
underscored=()
for option in "${options[@]}"; do
    [[ $option == --* ]] && option=--$(tr - _ <<<"${option#--}")
    underscored+=("$option")
done
run 0 run "$data" "${underscored[@]}"
check "underscores mean the same" cmp -s "$work/sums" "$work/hyphens"
run 0 run "--batch_size=3" --num_workers=1 "$data"

# ---- usage errors: exit 2 and one line with the choices ----
usage() {
    run 2 run "$data" "$1" "$2"
    check "nothing on stdout" [ ! -s "$work/out" ]
    err "$3"
}
usage --pad maybe "zero|last"
usage --sampling all "timestep|episode"
usage --color gbr "rgb|bgr"
usage --dtype u16 "u8|f32"
usage --image-layout hwc "nhwc|nchw"
usage --on-error panic "fail|skip|substitute"
usage --lang de "en|zh"
usage --batch-size 0 "--batch-size"
usage --batch-size 3x "--batch-size"
usage --num-workers -2 "--num-workers"
usage --num-epochs 0 "--num-epochs"
usage --train-split 1.5 "--train-split"
usage --io telepathy "telepathy"
usage --decoder abacus "--decoder: unknown JPEG decoder \"abacus\"; choose one of auto, turbo, nvjpeg, hybrid, null"
usage --step-ms never "--step-ms"
run 2 run
run 2 run "$data" "$data"

# ---- failures: exit 1 and one line ----
run 1 run "$work/nowhere"
err "$work/nowhere"
one_line
run 1 run "$data" --cameras top,nose
err "nose"
one_line
run 1 run "$data" --log "$work/no/such/folder/log"
err "$work/no/such/folder/log: cannot be written: No such file or directory"
one_line
run 1 run "$data" --checksums "$work"
err "$work: cannot be written: Is a directory"
one_line
run 1 run "$data" --drop-last --batch-size 1000
err "--drop-last leaves no batch"
run 0 run "$data" --num-workers 512 --log "$work/log"
log "512 workers" 'assert stage(tables[0], "00_TOTAL_getitem")["count"] == 40 and len(tables[0]["workers"]) == 512'
# Too little address space for so many stacks (AddressSanitizer cannot even start).
if (ulimit -v 1000000 && "$weir" --version >/dev/null 2>&1); then
    (ulimit -v 1000000 && "$weir" run "$data" --num-workers 512 >"$work/out" 2>"$work/err")
    check "threads that cannot be started are exit 1 (was $?)" [ $? -eq 1 ]
    check "and one line" grep -qE 'worker thread [0-9]+ of 512 cannot be started; use a smaller --num-workers, or raise the limit ' "$work/err"
    one_line
fi
if [ -e /dev/full ]; then
    run 1 run "$data" --log /dev/full
    err "/dev/full: not written completely; is the disk full?"
    out "whole run"
    run 1 run "$data" --checksums /dev/full
    err "/dev/full: not written completely"
    "$weir" run "$data" >/dev/full 2>"$work/err"
    check "a full disk for stdout is exit 1 (was $?)" [ $? -eq 1 ]
    err "cannot write to standard output"
fi

# ---- tables: since the previous one, and of the whole run ----
run 0 run "$data" --num-epochs 5 --every 2 --log "$work/log"
check "a table follows its epoch" [ "$(grep -oE '^(epoch [1-5]/5 total|(whole run: )?epochs [0-9-]+ of 5,)' "$work/out" | tr '\n' ';')" = \
    "epoch 1/5 total;epoch 2/5 total;epochs 1-2 of 5,;epoch 3/5 total;epoch 4/5 total;epochs 3-4 of 5,;epoch 5/5 total;whole run: epochs 1-5 of 5,;" ]
log "the log has the same tables, and epochs with all their figures" '
assert [(t["epoch_first"], t["epoch_last"], t["final"]) for t in tables] == [(1, 2, False), (3, 4, False), (1, 5, True)]
keys = "epoch total_s train_s val_s data_wait_fraction samples_per_s images_per_s peak_rss_bytes".split()
assert [e["epoch"] for e in epochs] == [1, 2, 3, 4, 5]
assert all(t["verdict"]["causes"] and t["setup"]["workers"] > 0 and t["steps"]["images"] > 0 for t in tables)
for e in epochs:
    assert all(k in e for k in keys) and e["epoch_count"] == 5 and not e["interrupted"]
    assert abs(e["total_s"] - e["train_s"] - e["val_s"]) < 1e-6 and 0 <= e["data_wait_fraction"] <= 1
    assert abs(e["images_per_s"] / e["samples_per_s"] - 2) < 1e-6 and e["peak_rss_bytes"] > 1 << 20
final = tables[-1]
assert stage(final, "00_TOTAL_getitem")["count"] == 200 and stage(final, "03b_image_decode")["count"] == 400
assert stage(tables[0], "08_wait_for_data")["count"] + stage(tables[1], "08_wait_for_data")["count"] < \
    stage(final, "08_wait_for_data")["count"]
for t in tables:
    assert abs(sum(s["share"] for s in t["stages"] if s["share"] is not None) - 1) < 1e-6
    for s in t["stages"]:
        assert s["count"] > 0 and s["min_s"] <= s["p50_s"] <= s["p90_s"] <= s["p99_s"] <= s["max_s"], s
        assert abs(s["mean_s"] * s["count"] / s["total_s"] - 1) < 1e-6, s
assert final["io"]["reads"] == 400 and final["io"]["fallback_reads"] == 0 and final["profiler"]["zones"] > 1000
assert final["queue"]["requests"] == stage(final, "08_wait_for_data")["count"]'
# covered EPOCHS EVERY TABLES: the run must print TABLES, a list of (first epoch, last epoch, final).
covered() {
    run 0 run "$data" --num-epochs "$1" --every "$2" --log "$work/log"
    log "tables of $1 epochs, every $2" "
assert [(t['epoch_first'], t['epoch_last'], t['final']) for t in tables] == [$3] and all(t['stages'] for t in tables)
assert [l['type'] for l in lines[2:]].count('epoch') == $1"
}
covered 4 2 '(1, 2, False), (3, 4, False), (1, 4, True)' # the last periodic table comes before the final one
covered 3 3 '(1, 3, True)'                               # one window covers the whole run: one table
covered 3 0 '(1, 3, True)'
covered 2 1 '(1, 1, False), (2, 2, False), (1, 2, True)'
run 0 run "$data" --no-timing --log "$work/log"
out "stage timing was off (--no-timing)"
no_out "00_TOTAL_getitem"
log "without timing there are epochs and counts, but no stages" '
assert tables[0]["timing"] is False and tables[0]["stages"] == [] and tables[0]["io"]["reads"] == 80
assert epochs[0]["data_wait_fraction"] > 0'

# ---- without --step-ms, the head says that data wait means nothing, and the verdict is about the loader ----
no_step() {
    check "$1" python3 -c '
import json, sys
report = json.loads(open(sys.argv[1], encoding="utf-8").readlines()[-1])
assert report["steps"]["no_step"] == (report["verdict"]["data_bound"] == "no-step") == (sys.argv[2] == "True")' "$work/log" "$2"
}
run 0 run "$data" --seconds 2 --num-workers 1 --log "$work/log"
check "the head names the missing step" grep -q '; no training step (--step-ms), so data wait is near 100 %' <(tr -s '\n ' ' ' <"$work/err")
no_step "the log says so" True
run 0 run "$data" --seconds 2 --num-workers 1 --step-ms 1 --log "$work/log"
check "not with a step" lacks "$work/err" "no training step"
no_step "nor in the log" False

# ---- the decode cache: 40 samples x 2 cameras of 9,216 bytes per epoch, 3 epochs ----
run 0 run "$data" --num-workers 1 --num-epochs 3 --decode-cache 1M --every 1 --log "$work/log" --checksums "$work/cached"
out "decode cache: 66.7 % hits (160 of 240), 80 frames kept, 721 KiB of 1 MiB used, "
out "decode cache of all 80 frames: 721 KiB, 66.7 % hits"
log "the log has the cache's figures, per table" '
c = [t["decode_cache"] for t in tables]
decoded = [stage(t, "03b_image_decode") for t in tables] # in the first epoch, and so in all
assert [d and d["count"] for d in decoded] in ([80, None, None, 80], [80, 0, 0, 80]), decoded
assert c[3]["all_frames"] == 80 and abs(c[3]["all_hit_rate"] - 160 / 240) < 1e-9, c[3]
assert [x["hits"] + x["misses"] for x in c][3] == 240 and c[3]["hit_rate"] == 160 / 240
assert all(x["budget_bytes"] == 1 << 20 and x["used_bytes"] == x["all_bytes"] < 1 << 20 and x["frames"] == 80 for x in c)
assert sum(x["hits"] for x in c[:3]) == 160 and c[2]["misses"] == 0 and c[3]["misses"] == 80 and c[2]["all_hit_rate"] == 1
assert max(x["saved_s"] for x in c[1:3]) > 0, c # in one of two epochs: a copy may lose its core
assert all(t["frames_shared"] == 0 for t in tables)'
run 0 run "$data" --num-epochs 3 --decode_cache=0 --checksums "$work/sums" --log "$work/log"
check "the cache does not change the batches" cmp -s "$work/sums" "$work/cached"
no_out "decode cache"
log "no cache figures without a cache" 'assert all("decode_cache" not in t for t in tables)'
# cache OPTIONS PYTHON: c is the log's decode cache.
cache() {
    # shellcheck disable=SC2086
    run 0 run "$data" --log "$work/log" $1
    log "decode cache: $1" "
c = tables[0]['decode_cache']
assert $2, c"
}
cache "--num-epochs 2 --decode-cache 400k --no-timing" "c['frames'] == 44 and c['hits'] + c['misses'] == 160 and c['saved_s'] is None and c['budget_bytes'] - c['used_bytes'] < 9300"
cache "--decode-cache 4096" "c['hits'] == 0 and c['misses'] == 80 and c['frames'] == 0 and c['hit_rate'] == 0 and c['used_bytes'] < 50000"
cache "--num-workers 1 --num-epochs 2 --decode-cache 1M --lang zh" "(c['hits'], c['misses'], c['frames']) == (80, 80, 80) and c['saved_s'] is not None"
run 0 run "$data" --obs-history 3 --no-shuffle --log "$work/log"
log "frames shared within batches" 'assert tables[0]["frames_shared"] > 0'
for bad in 2X -1 1.5G 99999999999T G; do
    run 2 run "$data" --decode-cache "$bad"
done
err "--decode-cache 'G': must be a number of bytes, such as 512M or 2G"

# ---- lines that users grep for ----
run 0 run "$data" --num-epochs 2 --every 1 --lang zh
grep -A 20 "性能分析统计" "$work/out" >"$work/grepped"
for word in 00_TOTAL_getitem 03_read_images_total 03a_read_one_camera 03b_image_decode 08_wait_for_data; do
    check "grep -A 20 性能分析统计 finds $word" grep -qE "^$word +\| 总计: +[0-9.]+s \| 调用: +[0-9]+次 \| 平均: +[0-9.]+ms$" "$work/grepped"
done
check "grep Epoch.*总耗时 finds both epochs" [ "$(grep -c "Epoch.*总耗时" "$work/out")" -eq 2 ]
check "grep 耗时: finds both epochs" [ "$(grep -c "耗时:" "$work/out")" -eq 2 ]
check "stages without calls are left out" [ "$(grep -cE '07_h2d_copy|21_backward' "$work/out")" -eq 0 ]

# ---- weir report prints the run's tables ----
for lang in en zh; do
    run 0 run "$data" --num-epochs 3 --every 2 --lang $lang --log "$work/log"
    cp "$work/out" "$work/live"
    run 0 report "$work/log" --lang $lang
    check "weir report --lang $lang repeats the run's tables" python3 -c '
import sys
live, report = (open(p, encoding="utf-8").read() for p in sys.argv[1:])
assert len(live) > 1000 and live in report' "$work/live" "$work/out"
done

# ---- checksums ----
run 0 run "$data" --num-epochs 2 --checksums "$work/a" --num-workers 0
run 0 run "$data" --num-epochs 2 --checksums "$work/b" --num-workers 3 --io null --no-timing
check "checksums do not depend on workers" cmp -s "$work/a" "$work/b"
check "checksums name epoch, split, batch, samples, tensors" python3 -c '
import re, sys
lines = open(sys.argv[1]).read().splitlines()
order, seen = [], {1: set(), 2: set()}
for l in lines:
    m = re.fullmatch(r"epoch (\d) (train|val) (\d+) samples ([\d:,]+)((?: \S+ [0-9a-f]{16})+)", l)
    assert m, l
    order.append((int(m[1]), m[2], int(m[3])))
    seen[int(m[1])] |= set(m[4].split(","))
    assert m[5].split()[::2] == ["images", "qpos", "actions", "is_pad"], l
assert order == [(e, s, i) for e in (1, 2) for s, n in (("train", 4), ("val", 2)) for i in range(n)], order
assert all(len(s) == 40 for s in seen.values())' "$work/a"
run 0 run "$data" --num-epochs 2 --checksums "$work/c" --seed 1
check "another seed, other checksums" [ "$(cmp -s "$work/a" "$work/c"; echo $?)" -eq 1 ]

# ---- the simulated step, and validation ----
run 0 run "$data" --step-ms 40 --num-workers 2 --log "$work/log"
log "sleeping steps count in full, and not as data wait" '
t = stage(tables[0], "20_train_forward_pass"); v = stage(tables[0], "10_val_forward_pass")
assert t["count"] == 4 and v["count"] == 2 and t["min_s"] >= 0.0399 and v["min_s"] >= 0.0399, (t, v)
assert t["share"] is None and t["side"] == "consumer", t
assert epochs[0]["train_s"] >= 0.16 and epochs[0]["val_s"] >= 0.08, epochs
assert epochs[0]["data_wait_fraction"] * epochs[0]["train_s"] + t["total_s"] <= epochs[0]["train_s"] + 1e-6, epochs
assert 0 <= (t["cpu_over_wall"] or 0) < 0.5, t'
cp "$work/log" "$work/slept"
log "the consumer has a line, and its work outside steps has rows" '
c = tables[0]["consumer"]; t = stage(tables[0], "20_train_forward_pass"); v = stage(tables[0], "10_val_forward_pass")
assert c["name"] == "consumer" and len(tables[0]["workers"]) == 2, tables[0]
assert t["total_s"] + v["total_s"] < c["work_s"] + c["wait_s"] + c["unattributed_s"] <= 1.01 * c["wall_s"], c
assert stage(tables[0], "23_release_batch")["count"] == 6 and stage(tables[0], "25_report")["count"] >= 2
assert c["work_s"] > t["total_s"] + v["total_s"], c'
run 0 run "$data" --step-ms 40 --step-spin --num-workers 2 --log "$work/log"
log "spinning steps are as long" '
t = stage(tables[0], "20_train_forward_pass")
assert t["count"] == 4 and t["min_s"] >= 0.0399, t'
log "and take more CPU time, if it is known" '
slept = [l for l in map(json.loads, open(sys.argv[1][:-len("log")] + "slept")) if l["type"] == "stages"]
cpu = [stage(t, "20_train_forward_pass")["cpu_over_wall"] for t in (slept[0], tables[0])]
assert None in cpu or cpu[1] > 5 * cpu[0], cpu'
run 0 run "$data" --train-split 1 --log "$work/log"
err "the validation split is empty: all 4 episodes are used for training"
log "an empty validation takes no time" 'assert epochs[0]["val_s"] == 0 and epochs[0]["train_s"] > 0'
# Time without a core between two zones is in no zone: takes the best of several runs.
off=1
for _ in 1 2 3 4 5; do
    run 0 run "$data" --num-workers 0 --num-epochs 40 --checksums /dev/null --dtype f32 --log "$work/log" --every 0
    log "without workers the consumer is shown instead" '
w = tables[0]["workers"]
assert len(w) == 1 and w[0]["name"] == "consumer", w'
    off=$(
        python3 - "$work/log" "$off" <<'PY'
import json, sys
tables = [t for t in map(json.loads, open(sys.argv[1])) if t["type"] == "stages"]
(w,) = tables[0]["workers"]
print(min(float(sys.argv[2]), abs((w["work_s"] + w["wait_s"] + w["unattributed_s"]) / w["wall_s"] - 1)))
PY
    )
    python3 -c "exit($off >= 0.05)" && break
done
check "and its time adds up, except for $off" python3 -c "assert $off < 0.05"

# ---- --seconds: measures part of a run, across epochs ----
# measured LOG-CONDITION: the run prints one line for the measured part, and logs it and its table.
measured() {
    count '^measured [0-9]' 1
    count '^epoch ' 0
    check "the log has the measured part: $1" python3 - "$work/log" <<PY
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1], encoding="utf-8")]
run, start, measured, table = lines
assert [l["type"] for l in lines] == ["run", "start", "measured", "stages"]
stage = {s["name"]: s["count"] for s in table["stages"]}
assert table["epoch_count"] == 0 and not table["interrupted"] and table["cpu_s"] > 0
assert measured["images"] == 2 * measured["samples"] and measured["peak_rss_bytes"] > 0
assert abs(measured["images_per_s"] * measured["seconds"] / measured["images"] - 1) < 1e-6
assert $1, measured
PY
}
# Epochs of one batch, to see that measuring continues in the next; a busy machine may finish only one in 0.2 s.
for seconds in 0.2 2 20; do
    run 0 run "$data" --seconds $seconds --max-batches 1 --log "$work/log" --num-workers 1
    ! grep -q '"type":"measured",.*"batches":1,' "$work/log" && break
done
out 'measured part, '
measured 'measured["seconds"] >= 0.2 and measured["warm_up_s"] >= 0.04 and measured["batches"] >= 2 and measured["reads"] == "warm"'
run 0 report "$work/log"
out 'measured part, '
count '^measured [0-9.]+ s after ' 1
count '^verdict: ' 1
run 0 report "$work/log" --json
check "the report has the measured part and one table" python3 -c '
import json, sys
(run,) = json.load(open(sys.argv[1], encoding="utf-8"))["runs"]
assert len(run["reports"]) == 1 and run["measured"]["seconds"] >= 0.2, run' "$work/out"
run 0 run "$data" --seconds 0.1 --log "$work/log" --num-workers 1 --io null --lang zh --step-ms 30
out '测量部分, '
measured 'measured["warm_up_s"] >= 0.15 and measured["batches"] >= 1 and stage["20_train_forward_pass"] <= measured["batches"]'
run 0 run "$data" --seconds 100 --cold --log "$work/log" # ends with its epoch
measured 'measured["samples"] == 40 and measured["warm_up_s"] == 0 and measured["reads"] in ("cold", "partly", "warm", None)'

# ---- bad frames ----
cp -r "$data" "$work/bad"
# The 15th JPEG of episode 2 loses its first bytes.
python3 - "$work/bad/episode_2.hdf5" <<'PY'
import re, sys
with open(sys.argv[1], "r+b") as f:
    f.seek([m.start() for m in re.finditer(b"\xff\xd8\xff", f.read())][14])
    f.write(bytes(3))
PY
run 1 run "$work/bad" --num-epochs 3 --every 1
check "a bad frame is one line with file, dataset, index and advice" \
    grep -qE 'weir run: .*/bad/episode_2\.hdf5: /observations/images/(top|wrist)\[[0-9]\]: .+--on-error' "$work/err"
no_out "whole run" # no table hides the error when there is nothing to report
no_out "verdict"
run 1 run "$work/bad" --num-epochs 1000 --train-split 1 --max-batches 1 --batch-size 1 --seed 7 --step-ms 40 --log "$work/log"
out "whole run (interrupted):"
out "verdict: Training waited"
log "the log has the table of a run that failed" 'assert tables[-1]["final"] and tables[-1]["bad_frames"] > 0'
run 0 run "$work/bad" --num-epochs 3 --every 1 --on-error skip --log "$work/log" --num-workers 0
log "each table lists only its own faults" '
assert [sum(e["count"] for e in t["errors"]) for t in tables] == [t["bad_frames"] for t in tables] == [1, 1, 1, 3], tables
assert [(t["skipped_samples"], t["substituted_frames"]) for t in tables] == [(1, 0), (1, 0), (1, 0), (3, 0)], tables
assert all("episode_2.hdf5: /observations/images/" in e["text"] for t in tables for e in t["errors"]), tables
assert all(len(t["errors"]) == 1 for t in tables), tables'
run 1 run "$work/bad" --num-epochs 1000 --train-split 1 --max-batches 1 --log "$work/log"
log "a bad frame that is prefetched does not interrupt the epoch before it" '
assert 1 <= len(epochs) < 1000 and not any(e["interrupted"] for e in epochs), epochs
assert len(tables) == len(epochs) // 10 + 1 and tables[-1]["epoch_last"] == len(epochs)'
run 0 run "$work/bad" --on-error substitute --log "$work/log"
log "one frame is substituted" '
(t,) = tables
assert (t["bad_frames"], t["skipped_samples"], t["substituted_frames"]) == (1, 0, 1), t'
head -c 3000 "$data/episode_1.hdf5" >"$work/bad/episode_1.hdf5"
run 1 run "$work/bad"
err "episode_1.hdf5"
one_line
run 0 run "$work/bad" --on-error skip
err "1 episode cannot be opened and is skipped; the first is "
out "1 episodes left out"

# ---- Ctrl-C ----
# interrupt SIGNAL ARGUMENT...: sends SIGNAL once the log has the first batch; sets $status.
interrupt() {
    local signal=$1
    shift
    rm -f "$work/log"
    "$weir" "$@" --log "$work/log" >"$work/out" 2>"$work/err" </dev/null &
    local pid=$!
    until grep -q '"type": *"start"' "$work/log" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
    kill -"$signal" $pid
    wait $pid
    status=$?
}
interrupt INT run "$data" --num-epochs 1000000 --batch-size 1 --every 0 --step-ms 200
check "Ctrl-C exits with 130 (was $status)" [ "$status" -eq 130 ]
out "/1000000 (interrupted) total "
out "whole run (interrupted): epoch"
log "the log is complete" '
assert len(tables) == 1 and tables[0]["final"] and tables[0]["epoch_last"] == 1 and tables[0]["interrupted"]
assert stage(tables[0], "03b_image_decode")["count"] > 0
assert len(epochs) == 1 and epochs[0]["interrupted"]'
interrupt TERM run "$data" --step-ms 100000 --num-workers 0
check "a long step does not hold SIGTERM up: status 143 (was $status)" [ "$status" -eq 143 ]
log "and the log says so" 'assert tables[0]["interrupted"] and tables[0]["final"]'
interrupt INT run "$data" --num-epochs 1000000 --step-ms 1 --json
check "Ctrl-C with --json: 130 (was $status), and the object" python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
assert sys.argv[2] == "130" and found["report"]["interrupted"] and found["report"]["final"], sys.argv' "$work/out" "$status"
run 2 run "$data" --json --log -
err "--json, --log -: both print to standard output"
interrupt INT run "$data" --step-ms 100000 --step-spin
check "nor does a spinning one (status $status)" [ "$status" -eq 130 ]
# A slow reader loses nothing on a signal: the interrupted write resumes.
cat >"$work/interrupt_full_pipe.py" <<'PY'
import array, fcntl, os, signal, subprocess, sys, termios, time
program, data, out, err = sys.argv[1:]
read_end, write_end = os.pipe()
room = fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, 4096)
run = subprocess.Popen([program, "run", data, "--num-epochs", "100000", "--every", "1", "--log", "-"], stdout=write_end,
                       stderr=open(err, "w"), stdin=subprocess.DEVNULL)
os.close(write_end)
waiting, before = array.array("i", [0]), -1
while waiting[0] == 0 or waiting[0] != before:  # until it stops growing: less than a line of room is left
    before = waiting[0]
    time.sleep(0.3)
    fcntl.ioctl(read_end, termios.FIONREAD, waiting)
run.send_signal(signal.SIGINT)
with open(read_end, "rb") as pipe, open(out, "wb") as to:
    to.write(pipe.read())
sys.exit(run.wait())
PY
python3 "$work/interrupt_full_pipe.py" "$weir" "$data" "$work/out" "$work/err"
status=$?
check "interrupted while writing to a full pipe: status 130 (was $status)" [ "$status" -eq 130 ]
check "no write failed" [ "$(grep -c 'cannot write' "$work/err")" -eq 0 ]
check "and all lines arrived" python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
epochs = [l["epoch"] for l in lines if l["type"] == "epoch"]
assert epochs == list(range(1, len(epochs) + 1)) and len(epochs) < 100000, len(epochs)
assert lines[-1]["type"] == "stages" and lines[-1]["final"], lines[-1]' "$work/out"

# ---- dataset files and old logs are not overwritten ----
cp -r "$data" "$work/own"
episode=$(find "$work/own" -name '*.hdf5' | sort | head -1)
sum=$(sha256sum <"$episode")
run 1 run "$work/own" --log "$episode"
one_line
check "the log does not overwrite an episode" [ "$(sha256sum <"$episode")" = "$sum" ]
run 1 run "$work/own" --checksums "$episode"
check "nor do checksums" [ "$(sha256sum <"$episode")" = "$sum" ]
echo kept >"$work/old.jsonl"
run 1 run "$work/nowhere" --log "$work/old.jsonl"
check "a run that cannot begin leaves an old log alone" [ "$(cat "$work/old.jsonl")" = kept ]
run 2 run "$data" --log "$work/same" --checksums "$work/same"
one_line

# ---- --max-wait: the exit status is 3 above it ----
slow=(--num-workers 0 --seconds 1.2 --step-ms 0.001 --step-spin)
fast=(--batch-size 2 --step-ms 20 --seconds 1.2)
run 3 run "$data" "${slow[@]}" --max-wait 1%
one_wait() { check "one line says so" [ "$(grep -cE '^weir run: the data wait, [0-9.]+ %, is above --max-wait 1 %$' "$work/err")" -eq 1 ]; }
one_wait
run 3 run "$data" "${slow[@]}" --max-wait=1 --json
one_wait
check "--json has the value that was judged" python3 -c '
import json, re, sys
verdict = json.load(open(sys.argv[1]))["report"]["verdict"]
assert verdict["causes"][0]["cause"] not in ("", "cannot-tell"), verdict["causes"]
wait = verdict["data_wait_fraction"]
said = float(re.search("data wait, ([0-9.]+) %", open(sys.argv[2]).read())[1])
assert abs(100 * wait - said) < 0.006, (wait, said)' "$work/out" "$work/err"
run 0 run "$data" "${fast[@]}" --max-wait 50%
run 0 run "$data" "${slow[@]}" --max-wait 100%
run 1 run "$data" --max-batches 2 --train-split 1 --step-ms 1 --max-wait 10
err "weir run: --max-wait: the run is too short to judge; add --seconds 5"
run 1 run "$data" --max-batches 2 --step-ms 250 --seconds 0.3 --max-wait 10
err "weir run: --max-wait: the run is too short to judge; raise --seconds to 7"
run 1 run "$data" --max-batches 2 --step-ms 1 --cold --max-wait 10
err "weir run: --max-wait: the run is too short to judge; with --cold, --seconds ends after one epoch, so use a smaller"
run 1 run "$data" --max-batches 2 --step-ms 1 --cold --seconds 5 --max-wait 10
check "after --cold, longer --seconds are no advice" lacks "$work/err" "add --seconds"
for bad in 10%% % -1 101 ten 5.5x; do
    run 2 run "$data" --step-ms 1 --max-wait "$bad"
    err "weir run: --max-wait "
done
run 2 run "$data" --max-wait 10
err "--max-wait: without a training step"
run 2 run "$data" --max-wait 10 --step-ms 1 --no-timing
# The epoch that fills the decode cache waits for data. It is not judged if later epochs suffice: 5 epochs of 16 batches.
filling=(--num-workers 1 --batch-size 2 --step-ms 15 --decode-cache 1M --log "$work/log")
run 0 run "$data" "${filling[@]}" --num-epochs 5 --max-wait 50%
check "the verdict names the epochs that it covers" grep -q '^verdict: Training waited for data [0-9]* % of the time after the epoch that filled the cache' <(tr -s '\n ' ' ' <"$work/out" | sed 's/ verdict:/\n&/; s/\n /\n/')
out "whole run, after the epoch that filled the decode cache: epochs 2-5 of 5, "
log "so does the log" '
(last,) = [t for t in tables if t["final"]]
assert last["after_fill"] and (last["epoch_first"], last["epoch_last"]) == (2, 5), last
assert last["decode_cache"]["misses"] == 0 and stage(last, "03b_image_decode") is None or stage(last, "03b_image_decode")["count"] == 0'
cp "$work/log" "$work/filled"
run 0 report "$work/filled"
check "a report of the log has the same verdict" grep -q 'after the epoch that filled the cache' <(tr -s '\n ' ' ' <"$work/out")
run 0 run "$data" "${filling[@]}" --num-epochs 2 --max-batches 3
no_out "that filled"
log "too few batches after it: all epochs" 'assert tables[-1]["after_fill"] is False and tables[-1]["epoch_first"] == 1'
run 0 run "$data" --num-workers 1 --batch-size 2 --step-ms 15 --num-epochs 5
no_out "that filled"
interrupt INT run "$data" --num-epochs 1000000 --step-ms 0.001 --max-wait 0
check "an interrupted run is not judged: 130 (was $status)" [ "$status" -eq 130 ]

# ---- a periodic table covers its epochs exactly ----
run 0 run "$data" --num-epochs 4 --every 1 --num-workers 2 --log "$work/log"
log "each table has the waits of its own batches" '
assert len(tables) == 5 and tables[4]["final"] and not tables[4]["interrupted"], len(tables)
waits = [stage(t, "08_wait_for_data")["count"] for t in tables]
assert waits[0] == waits[1] == waits[2] == waits[3] and waits[4] == 4 * waits[0], waits
assert sum(t["wall_s"] for t in tables[:4]) <= tables[4]["wall_s"] + 1e-3, [t["wall_s"] for t in tables]'

# ---- peak memory is this program's, not its parent's ----
check "peak memory without the parent's" python3 -c '
import json, subprocess, sys
ballast = b"x" * (600 << 20)
out = subprocess.run([sys.argv[1], "run", sys.argv[2], "--json"], capture_output=True, text=True).stdout
peaks = [epoch["peak_rss_bytes"] for epoch in json.loads(out)["epochs"]]
assert 1 << 20 < peaks[0] < 300 << 20, peaks' "$weir" "$data"
run 0 run "$data" --num-epochs 4 --every 1 --num-workers 1 --batch-size 1 --log "$work/log"
out "GB/s, measured in 32 MiB that peak memory does not include"
log "peak memory contains no measurement of a report" '
assert tables[0]["setup"]["copy_bytes_per_s"] > 0, "the first report measures"
peaks = [e["peak_rss_bytes"] for e in epochs]
assert len(peaks) == 4 and peaks[3] - peaks[0] < 20 << 20, peaks'

# ---- a reader that leaves ----
(ulimit -t 60 && "$weir" run "$data" --num-epochs 1000000 2>"$work/err") | head -1 >"$work/out"
status=${PIPESTATUS[0]}
check "a reader that leaves ends the run, with 1 (was $status)" [ "$status" -eq 1 ]

# ---- few file descriptors ----
(ulimit -n 10 && "$weir" run "$data" --num-workers 2 --on-error skip >"$work/out" 2>"$work/err")
check "few descriptors suffice (status $?)" [ $? -eq 0 ]
out "0 samples skipped"

# ---- the machine ----

run 0 run "$data" --batch-size 3 --num-epochs 2 --every 1 --log "$work/log"
check "the head has the machine" grep -q '^machine: [0-9]* of [0-9]* cores' "$work/err"
check "and so have all three tables" [ "$(grep -c '^machine: ' "$work/out")" -eq 3 ]
log "so has the log" '
for table in tables:
    machine = table["machine"]
    assert 1 <= machine["cores_part"] <= machine["cores_usable"] <= machine["cores_online"], machine
    if "others_cores" in machine: assert 0 <= machine["others_cores"] <= machine["cores_online"] + 1, machine
assert runs[0]["used"]["cores"] == tables[-1]["machine"]["cores_part"], runs[0]'
grep '^machine: ' "$work/out" >"$work/machines"
"$weir" report "$work/log" | grep '^machine: [0-9]' >"$work/reported"
check "the report has the same lines" cmp "$work/machines" "$work/reported"

# ---- ranks ----

"$weir" run "$data" --batch-size 3 --num-epochs 2 --checksums "$work/one" >/dev/null 2>&1
mkdir "$work/sums.of" # the dot is not an extension
for world in 2 3; do
    for ((r = 0; r < world; r++)); do
        run 0 run "$data" --batch-size 3 --num-epochs 2 --checksums "$work/sums.of/$world" --rank "$r" --world-size "$world"
        err "rank $r of $world; its files: $work/sums.of/$world.rank$r"
    done
    check "the batches of $world ranks, in turn, are those of one" python3 - "$work" "$world" <<'PY'
import collections, sys
work, world = sys.argv[1], int(sys.argv[2])
def read(name):
    parts = collections.defaultdict(list)
    for line in open(f"{work}/{name}"):
        _, epoch, split, index, rest = line.split(" ", 4)
        parts[epoch, split].append(rest)
    return parts
one, ranks = read("one"), [read(f"sums.of/{world}.rank{r}") for r in range(world)]
batches = 0
for part, whole in one.items():
    each = len(whole) // world
    assert all(len(rank[part]) == each for rank in ranks), (part, each)
    merged = [rank[part][i] for i in range(each) for rank in ranks]
    assert merged == whole[:each * world], part
    batches += len(merged)
assert batches > 10
PY
done
# Ranks with the same options write a file each.
mkdir "$work/eight"
for ((r = 0; r < 8; r++)); do
    RANK=$r LOCAL_RANK=$r WORLD_SIZE=8 LOCAL_WORLD_SIZE=8 "$weir" run "$data" --batch-size 1 --num-workers 1 --step-ms 1 \
        --log "$work/eight/same.jsonl" --checksums "$work/eight/sums" --state "$work/eight/state.json" \
        >/dev/null 2>"$work/eight/$r.err" &
    pids[r]=$!
done
for ((r = 0; r < 8; r++)); do
    check "rank $r of 8 ends with 0" wait "${pids[r]}"
    check "rank $r names its files" grep -qF "rank $r of 8, from torchrun's environment; its files: $work/eight/same.rank$r.jsonl, $work/eight/sums.rank$r, $work/eight/state.rank$r.json" "$work/eight/$r.err"
done
rm "$work"/eight/*.err
check "eight ranks have eight files of each kind, and no other" [ "$(cd "$work/eight" && printf "%s\n" * | tr '\n' ' ')" = \
    "$(printf '%s ' same.rank{0..7}.jsonl state.rank{0..7}.json sums.rank{0..7} | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ')" ]
run 0 report --json "$work"/eight/same.rank*.jsonl
check "weir report reads the logs of all ranks" python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == 1 and report["kind"] == "logs", report
runs = [log["runs"][0] for log in report["logs"] if len(log["runs"]) == 1 and not log["cut_off"]]
assert [run["run"]["used"]["rank"] for run in runs] == list(range(8)), runs
assert [log["log"][-7:] for log in report["logs"]] == [f"{rank}.jsonl" for rank in range(8)], report
assert all(run["epochs"] for run in runs), runs' "$work/out"
run 0 report "$work"/eight/same.rank[23].jsonl
check "each log is named above its tables" [ "$(sed -n "1p;/^$/{n;/same/p}" "$work/out" | tr '\n' ' ')" = "$work/eight/same.rank2.jsonl $work/eight/same.rank3.jsonl " ]
run 1 report "$work"/eight/same.rank2.jsonl "$work/eight/sums.rank2"
err "weir report: $work/eight/sums.rank2: is neither a trace nor a log with a table "
RANK=3 WORLD_SIZE=8 run 0 run "$data" --batch-size 1 --num-epochs 2 --state "$work/eight/state.json"
err "resuming at batch "
RANK=3 WORLD_SIZE=8 run 0 run "$data" --batch-size 1 --log /dev/null --checksums /dev/null
check "devices keep their names" [ ! -e /dev/null.rank3 ]
RANK=3 WORLD_SIZE=8 run 2 run "$data" --batch-size 1 --log "$work/eight/a" --index "$work/eight/a.rank3"
err "name the same file"
RANK=0 WORLD_SIZE=1 run 0 run "$data" --batch-size 1 --log "$work/eight/one.jsonl"
check "one rank writes the file that was named" [ -s "$work/eight/one.jsonl" ]
# launched TEXT ASSIGNMENT...: in this launcher's environment, weir run prints TEXT.
launched() {
    env "${@:2}" "$weir" run "$data" --batch-size 2 >"$work/out" 2>"$work/err"
    err "$1"
}
launched "rank 1 of 2, from torchrun's environment" RANK=1 WORLD_SIZE=2
launched "rank 2 of 3, from mpirun's environment" OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3
launched "rank 0 of 2, from srun's environment" SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2
launched "RANK=2 and WORLD_SIZE=2 are not a valid rank and world size" RANK=2 WORLD_SIZE=2
launched "local rank 1 of 2, with " RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2
launched "local rank 2 of 3, with " OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3
launched "local rank 2 of 4, with " MPI_LOCALRANKID=2 MPI_LOCALNRANKS=4
launched "local rank 2 of 3, with " SLURM_LOCALID=2 SLURM_STEP_NUM_TASKS=11 SLURM_PROCID=10 SLURM_STEP_TASKS_PER_NODE='4(x2),3' SLURM_NODEID=2
launched "local rank 3 of 4, with " SLURM_LOCALID=3 SLURM_STEP_NUM_TASKS=11 SLURM_PROCID=7 SLURM_STEP_TASKS_PER_NODE='4(x2),3' SLURM_NODEID=1
launched "local rank 1 of 2, with " LOCAL_RANK=1
launched "LOCAL_RANK=2 is not a valid local rank for LOCAL_WORLD_SIZE=2; " LOCAL_RANK=2 LOCAL_WORLD_SIZE=2
launched "LOCAL_RANK=one is not a valid local rank; " LOCAL_RANK=one
LOCAL_RANK=0 LOCAL_WORLD_SIZE=1000000 run 1 run "$data" --batch-size 2
err " are free for each local rank; use a smaller --batch-size or --prefetch"
cores=$("$weir" doctor --json | sed -n 's/.*"cores_usable": \([0-9]*\).*/\1/p')
launched "; $((cores > 1 ? cores / 2 : 1)) worker" LOCAL_RANK=0 LOCAL_WORLD_SIZE=2
launched "; 1 worker," LOCAL_RANK=0 LOCAL_WORLD_SIZE=1024
# The launcher is the process that set the rank, not a wrapper script, which may be bound to the rank's own cores.
one=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
here=$(python3 -c 'import os; print(len(os.sched_getaffinity(0)))')
local_cores() { # EXPECTED NAME: checks the previous run
    run 0 report --json "$work/log"
    check "$2" python3 -c 'import json, sys; used = json.load(open(sys.argv[1]))["runs"][0]["run"]["used"]; assert used["local_cores"] == int(sys.argv[2]), used' "$work/out" "$1"
}
# shellcheck disable=SC2016 # sh expands them
launched "local rank 1 of 2, with " LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 taskset -c "$one" sh -c '"$0" "$@" --log '"$work/log; exit"
local_cores "$here" "the launcher is above the script"
# shellcheck disable=SC2016 # likewise
launched "local rank 1 of 2, with 1 core" taskset -c "$one" sh -c 'LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "$0" "$@" --log '"$work/log; exit"
local_cores 1 "a launcher that is bound to one core"
SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0 SLURM_NTASKS_PER_NODE=8 run 0 run "$data" --batch-size 2
check "a program in a batch script is not a rank" lacks "$work/err" "rank 0"
run 2 run "$data" --rank 1
err "must be used together"
run 1 run "$data" --rank 0 --world-size 999
err "not enough for 999 ranks; use a smaller --batch-size, or --wrap"
run 0 run "$data" --rank 998 --world-size 999 --wrap

# ---- a resumed run ----

"$weir" run "$data" --batch-size 3 --num-epochs 3 --checksums "$work/whole" >/dev/null 2>&1
run 0 run "$data" --batch-size 3 --num-epochs 1 --state "$work/state" --checksums "$work/part1" --num-workers 1
run 0 run "$data" --batch-size 3 --num-epochs 2 --state "$work/state" --checksums "$work/part2" --num-workers 3
err "resuming at batch"
interrupt INT run "$data" --batch-size 3 --num-epochs 3 --state "$work/state" --checksums "$work/part3" --step-ms 100000
check "stopped in the middle of an epoch: 130 (was $status)" [ "$status" -eq 130 ]
run 0 run "$data" --batch-size 3 --num-epochs 3 --state "$work/state" --checksums "$work/part4" --num-workers 0
cat "$work"/part[1234] >"$work/parts"
check "the parts equal the whole run" cmp "$work/parts" "$work/whole"
check "the third was in the middle" [ -s "$work/part3" ] && check "and the fourth" [ -s "$work/part4" ]
run 0 run "$data" --batch-size 3 --num-epochs 3 --state "$work/state"
err "resuming at batch"
run 1 run "$data" --batch-size 4 --num-epochs 3 --state "$work/state"
err "a different --batch-size"
one_line
# Other data with as many episodes of the same lengths, and the same data elsewhere.
"$weir" synth "$work/other" --episodes 3 --steps 12 --size 64x48 --seed 1 >/dev/null 2>&1
"$weir" synth "$work/alike" --episodes 3 --steps 12 --size 64x48 --seed 2 >/dev/null 2>&1
"$weir" convert "$work/alike" "$work/alike.weir" --to packed >/dev/null 2>&1
run 0 run "$work/alike" --num-epochs 1 --state "$work/state2"
run 1 run "$work/other" --num-epochs 2 --state "$work/state2"
err "a different set-of-episodes"
one_line
run 1 run "$work/alike" --num-epochs 2 --state "$work/state2" --cameras wrist
err "a different set-of-cameras"
run 1 run "$work/alike" --num-epochs 2 --state "$work/state2" --chunk-size 7
err "a different window-of-steps"
run 1 run "$work/alike" --num-epochs 2 --state "$work/state2" --image-size 32x24
err "a different view-of-images"
run 0 run "$work/alike.weir" --num-epochs 2 --state "$work/state2" --num-workers 0
err "resuming at batch"
# When the state says that batches are done, their checksums and the epochs' lines are in the files, also after SIGKILL.
run 0 run "$work/alike" --num-epochs 1 --checksums "$work/epoch"
check "a killed run loses no line" python3 - "$weir" "$work/alike" "$work/killed" "$(wc -l <"$work/epoch")" <<'END'
import json, re, signal, subprocess, sys
weir, data, base, per_epoch = sys.argv[1:]
files = {name: f"{base}.{name}" for name in ("state", "checksums", "log")}
def position():
    try:
        return int(re.search(r"next (\d+)", open(files["state"]).read())[1])
    except FileNotFoundError:
        return 0
process = subprocess.Popen([weir, "run", data, "--num-epochs", "1000000", *(f"--{name}={path}" for name, path in files.items())],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while position() < 20 * int(per_epoch):
    assert process.poll() is None
process.send_signal(signal.SIGKILL)
process.wait()
checksums = open(files["checksums"]).read().count("\n")
epochs = sum(json.loads(line)["type"] == "epoch" for line in open(files["log"]).read().split("\n")[:-1])
assert checksums >= position() and epochs >= position() // int(per_epoch), (position(), per_epoch, checksums, epochs)
END
run 1 run "$data" --batch-size 3 --num-epochs 2 --state "$work/state"
err "use a larger --num-epochs"
echo rubbish >"$work/state"
run 1 run "$data" --state "$work/state"
err "is not a saved state"
run 1 run "$data" --state "$work/no/folder"
err "cannot write the state"

# ---- crops and sizes of images; floats ----
run 0 run "$data" --checksums "$work/whole" --num-workers 2
run 0 run "$data" --checksums "$work/same" --num-workers 2 --crop 64x48+0+0 --image-size 64x48
check "a crop that is the whole image changes nothing" cmp "$work/same" "$work/whole"
err "cameras: top 64x48, wrist 64x48"
lacks "$work/out" "of the stored pixels" || check "and saves nothing" false
run 0 run "$data" --crop wrist=40x24+16+8,top=32x24+0+24 --image-size 20x12 --checksums "$work/v0" --num-workers 0
err "cameras: top 20x12 (of 32x24+0+24), wrist 20x12 (of 40x24+16+8)"
run 0 run "$data" --crop wrist=40x24+16+8,top=32x24+0+24 --image-size 20x12 --checksums "$work/v3" --num-workers 3 --log "$work/log"
check "views do not depend on workers" cmp "$work/v0" "$work/v3"
log "the log has the decoded pixels" '
decoding = tables[-1]["decoding"]
assert decoding["stored_pixels"] == 80 * 64 * 48 and 0 < decoding["decoded_pixels"] < decoding["stored_pixels"] / 2, decoding'
run 0 run "$data" --image-size 20x12 --lang zh
out "of the stored pixels were decoded"
run 0 run "$data" --dtype f32 --mean 0,0,0 --std 1,1,1 --checksums "$work/n1"
run 0 run "$data" --dtype f32 --mean imagenet --std imagenet --checksums "$work/n2"
run 0 run "$data" --dtype f32 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --checksums "$work/n3"
check "imagenet stands for its numbers" cmp "$work/n2" "$work/n3"
check "which are not nothing" [ "$(cmp "$work/n1" "$work/n2" | wc -l)" -eq 1 ]
for bad in "nose=8x8+0+0" "60x40+5+0"; do
    run 1 run "$data" --crop "$bad"
    one_line
    err "--crop"
done
for bad in "64x48" "8x8+0+0," "8x8+-1+0" "0x8+0+0" "99999999999x1+0+0"; do
    run 2 run "$data" --crop "$bad"
    err "is not a region"
done
run 2 run "$data" --mean imagenet
err "add --dtype f32, or with --device cuda also --dtype f16 or bf16"
for bad in 1,2 1,2,3,4 a,b,c 0,0,0; do
    run 2 run "$data" --dtype f32 --std "$bad"
    err "is not three numbers"
done
run 2 run "$data" --dtype f32 --mean 123.7,116.3,103.5
err "divide the values by 255"
run 2 run "$data" --image-size 20000x20000
err "16384"
run 1 run "$data" --num-epochs 3 --state "$work/no/state"
no_out "epoch 1/3"

# ---- the stand-in GPU ----
run 2 run "$data" --device gpu
err "use cpu, cuda or cuda:K"
run 2 run "$data" --dtype f16
err "add --device cuda"
run 2 run "$data" --sync-steps
err "add --device cuda"
run 2 run "$data" --device cuda --step-ms 1 --step-spin
err "--step-spin: has no effect with --device cuda, because steps are kernels"
for decoder in nvjpeg hybrid; do
    run 2 run "$data" --device cuda --decoder $decoder --on-warning fail
    err "--on-warning fail: a GPU does not report flaws of frames"
done
if [ -n "${WEIR_FAKE_CUDA_MODULE:-}" ]; then
    export WEIR_CUDA_MODULE=$WEIR_FAKE_CUDA_MODULE
    planar=(--dtype f32 --image-layout nchw --mean imagenet --std imagenet --num-epochs 2 --batch-size 3)
    run 0 run "$data" "${planar[@]}" --checksums "$work/host"
    for workers in 0 3; do
        run 0 run "$data" "${planar[@]}" --checksums "$work/gpu" --device cuda --num-workers "$workers"
        check "the GPU's batches have the host's checksums" cmp "$work/host" "$work/gpu"
    done
    run 0 run "$data" "${planar[@]}" --device cuda:0 --step-ms 2 --log "$work/log"
    err "device: GPU 0, stand-in; "
    out " | GPU busy "
    out " % | copies overlapped "
    out "GPU 0 (stand-in): busy "
    log "the log has the GPU's work" '
gpu = tables[-1]["gpu"]
assert runs[0]["used"]["gpu"]["name"] == gpu["name"] == "stand-in" and runs[0]["config"]["device"] == "cuda:0"
assert 0 < gpu["busy_fraction"] <= 1 and 0 <= gpu["copy_overlap_fraction"] <= 1 and not gpu["sync_steps"], gpu
assert gpu["memory_used_bytes"] >= runs[0]["used"]["gpu"]["memory_bytes"] > 0, gpu
rows = {s["name"]: s for s in gpu["stages"]}
counts = {"07_h2d_copy": 28, "07b_prepare_batch": 28, "10_val_forward_pass": 8, "20_train_forward_pass": 20}
assert all((rows[name]["kind"], rows[name]["count"]) == ("work", n) for name, n in counts.items()), rows
row = stage(tables[-1], "20_train_forward_pass")
assert (row["kind"], row["side"], row["count"]) == ("work", "consumer", 20), row
assert len(epochs) == 2 and all(0 <= e["copy_overlap_fraction"] <= 1 for e in epochs), epochs
assert all(s["side"] == "gpu" for s in rows.values()) and rows["20_train_forward_pass"]["min_s"] >= 0.002, rows
assert all(0 < e["gpu_busy_fraction"] <= 1 and e["data_wait_fraction"] <= 1 for e in epochs), epochs'
    run 0 run "$data" "${planar[@]}" --device cuda --step-ms 1 --every 1 --log "$work/log"
    run 0 report "$work/log"
    out "07_h2d_copy (gpu)"
    run 0 run "$data" --dtype bf16 --device cuda --step-ms 4 --sync-steps --lang zh
    out "(--sync-steps)"
    grep -A 20 "性能分析统计" "$work/out" >"$work/grepped"
    check "the Chinese table has the GPU's time of a step" \
        grep -qE "^20_train_forward_pass +\| .* 平均: +([4-9]|[0-9]{2,})\.[0-9]+ms$" "$work/grepped"
    check "grep -A 20 shows all of it" [ "$(grep -c "^====" "$work/grepped")" -eq 2 ]
    out " | GPU忙碌: "
    run 0 run "$data" --device cuda --on-error skip --no-timing
    run 0 run "$data" --device cuda --profile "$work/gpu-traces"
    out ", host data wait "
    for options in nvjpeg hybrid "hybrid --deterministic" auto; do
        # shellcheck disable=SC2086
        run 0 run "$data" "${planar[@]}" --checksums "$work/gpu" --device cuda --log "$work/log" --decoder $options
        check "batches of --decoder $options have the host's checksums" cmp "$work/host" "$work/gpu"
    done
    err "decodes: "
    run 0 run "$data" "${planar[@]}" --device cuda --decoder nvjpeg --log "$work/log"
    err "decodes: nvjpeg"
    out " frames by 7 JPEG engines in "
    log "the log has the decoder" '
decode = tables[-1]["gpu"]["decode"]
assert runs[0]["used"]["decoder"] == "nvjpeg" and len(decode["engines"]) == 1, decode
engine = decode["engines"][0]
assert engine["by"] == "7 JPEG engines" and engine["frames"] == 160 and engine["groups"] > 0, engine
assert decode["sent_back"] == 0 and decode["least_db"] == 99 and decode["compared"] > 0, decode
assert [s["kind"] for s in tables[-1]["gpu"]["stages"] if s["name"] == "03i_gpu_decode"] == ["work"]'
    run 2 run "$data" --decoder nvjpeg
    err "add --device cuda"
    run 0 run "$work/raw" --device cuda --decoder nvjpeg --train-split 1
    err "decodes: nvjpeg (the dataset has no JPEGs for the GPU to decode)"
    WEIR_FAKE_JPEG=fail=io:1 run 1 run "$data" --device cuda --decoder nvjpeg
    err "weir run: in a decode batch of "
    err ": GPU 0: decoding faulted"
    run 0 run "$data" --device cuda --decoder nvjpeg --log "$work/log"
    log "the frame to be compared is decoded by its own thread" '
sides = [s["side"] for s in tables[0]["stages"] if s["name"] == "03b_image_decode" and s["count"]]
assert sides == ["helper"], sides'
    run 0 run "$data" --device cuda --decoder nvjpeg --lang zh
    count '^[0-9]+[a-z]?_.* \| 总计: ' 16
    count '^另有 [0-9]+ 个环节未列出 \(英文表列出全部\)$' 1
    WEIR_FAKE_CUDA=none run 1 run "$data" --device cuda
    one_line
    err "--device cuda:0: no NVIDIA driver"
    run 1 run "$data" --device cuda:1
    one_line
    err "there is no GPU 1"
    # Each local rank uses its own GPU, or the only one that the launcher makes visible to it.
    while read -r expected gpus rank size; do
        WEIR_FAKE_CUDA=gpus=$gpus LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$size run 0 run "$data" --device cuda --log "$work/log"
        err "device: GPU ${expected//_/ }, stand-in; "
        log "the log has the GPU's number" "assert runs[0]['used']['gpu']['number'] == ${expected%%_*}, runs[0]['used']
assert tables[-1]['gpu']['number'] == ${expected%%_*} and runs[0]['used']['local_world_size'] == $size"
    done <<'END'
0_(local_rank_0_of_2) 2 0 2
1_(local_rank_1_of_2) 2 1 2
0_(the_only_GPU_visible_to_local_rank_1) 1 1 2
1_(for_local_rank_3;_4_local_ranks_share_2_GPUs) 2 3 4
0 2 0 1
END
    WEIR_FAKE_CUDA=gpus=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 run 0 run "$data" --device cuda:0
    err "device: GPU 0, stand-in; "
    WEIR_FAKE_CUDA=none LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 run 1 run "$data" --device cuda
    one_line
    err "--device cuda:0: no NVIDIA driver"
    WEIR_FAKE_CUDA=memory_bytes=100000 run 1 run "$data" --device cuda
    one_line
    err "make --batch-size or --prefetch smaller"
    WEIR_FAKE_CUDA=fail=lost:60 run 1 run "$data" --device cuda
    err "is lost"
    WEIR_CUDA_MODULE=/nowhere/module.so run 1 run "$data" --device cuda
    one_line
    err "WEIR_CUDA_MODULE=/nowhere/module.so cannot be loaded"
    unset WEIR_CUDA_MODULE
fi

finish
