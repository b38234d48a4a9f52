#!/bin/sh
# Measures a folder of `measure` on this machine's GPU: benchmarks/silicon/measure.sh [FOLDER [RESULTS]]
# Loops are deeper than the tolerances are meant for: --slack. Bits first, times after, answers that may fault last. Results survive a cut: run it again to go on.
set -u
folder=${1:-results/silicon_bundle}
results=${2:-${OUT:-.}/results.jsonl}
[ -e "$results" ] || ! [ -e "$folder/results.jsonl" ] || cp "$folder/results.jsonl" "$results"
python3 "$folder/run.py" --minutes "${MINUTES:-6}" --jobs "${JOBS:-6}" --rounds "${ROUNDS:-40}" \
    --launches 4 --slack 4 --seconds 15 --results "$results" 2>&1 | tee "$(dirname "$results")/measure.log"
