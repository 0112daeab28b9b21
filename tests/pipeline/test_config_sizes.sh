#!/bin/bash
# Mixes programs and libraries of two versions, the later one with one more option: test_config_sizes.sh OLD_PROGRAM
# NEW_PROGRAM EXAMPLE OLD_LIBRARY NEW_LIBRARY. OLD_PROGRAM and EXAMPLE (examples/loader) are built with this version's
# headers, NEW_PROGRAM with the later version's.
set -euo pipefail
old=$1 new=$2 example=$3 old_library=$(dirname "$4") new_library=$(dirname "$5")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
WEIR_HDF5_HELPER=$(dirname "$WEIR_PROGRAM")/weir-hdf5
export WEIR_HDF5_HELPER
"$WEIR_PROGRAM" synth "$work/data" --episodes 3 --steps 6 --size 64x48 --cameras top 2>/dev/null >"$work/log" || { cat "$work/log"; exit 1; }

# expect PATTERN LIBRARY COMMAND...: the first line of output must match; prints it.
expect() {
    local output
    output=$(LD_LIBRARY_PATH=$2 "${@:3}" 2>&1 || true)
    grep -Eq "$1" <<<"${output%%$'\n'*}" || { echo "FAIL: ${*:2}: no '$1' in: $output" >&2; exit 1; }
    echo "${output%%$'\n'*}"
}

fine='^([0-9]+) bytes: [1-9][0-9]* batches$'
was=$(expect "$fine" "$old_library" "$old" "$work/data")
now=$(expect "$fine" "$new_library" "$new" "$work/data")
[ "${was%% *}" -lt "${now%% *}" ] || { echo "FAIL: the later struct is not longer: $was, $now"; exit 1; }
[ "${was#* }" = "${now#* }" ] || { echo "FAIL: $was, $now"; exit 1; }
# This version's program with the later library: the option unknown to it has its default (7; 0 is refused).
[ "$(expect "$fine" "$new_library" "$old" "$work/data")" = "$was" ] || { echo "FAIL: not as before"; exit 1; }
LD_LIBRARY_PATH=$new_library "$example" "$work/data" >"$work/later"
LD_LIBRARY_PATH=$old_library "$example" "$work/data" >"$work/today"
diff <(grep -E '^(train|val) ' "$work/today") <(grep -E '^(train|val) ' "$work/later")
grep -q '^03b_image_decode' "$work/later"
# The option works; a later program runs with this version's library unless it sets the option.
expect "$fine" "$new_library" "$new" "$work/data" 9
expect '^-22: --more 3: must be from 7 to 9$' "$new_library" "$new" "$work/data" 3
[ "$(expect "$fine" "$old_library" "$new" "$work/data")" = "$now" ] || { echo "FAIL: not as with its own library"; exit 1; }
expect "^-95: struct weir_loader_config: the option at byte ${was%% *} is set, but this older library does not have it" \
    "$old_library" "$new" "$work/data" 8
echo "0 failures"
