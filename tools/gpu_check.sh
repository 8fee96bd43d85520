#!/bin/sh
# Everything that needs an NVIDIA GPU, in one go, all output below one folder:
#
#     tools/gpu_check.sh FOLDER [NVBANDWIDTH]
#
# FOLDER/tests.txt       the tests marked gpu
# FOLDER/bench.txt       a quick `pytest benchmarks/`, its run in FOLDER/run, its samples in FOLDER/bench.json
# FOLDER/compare.txt     nvbandwidth and lanecheck in turn, where a program is given; every run in FOLDER/compare.json
# FOLDER/repeat.txt      how well copies repeat, ten times each; every run in FOLDER/repeat.json
# FOLDER/machine.json    what the probe read
#
# PYTHON names the interpreter (default: .venv/bin/python, else python3). Ends with 1 where a step failed; the other
# steps run all the same.
set -u

if [ $# -lt 1 ]; then
    sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
nvbandwidth=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.." || exit 2
. tools/steps.sh

"$PYTHON" -m suite probe --json >"$out/machine.json" 2>"$out/machine.txt" || failed=1
step tests "$PYTHON" -m pytest tests/ -m gpu -rs -v
step bench "$PYTHON" -m pytest benchmarks/ --effort quick --report-dir "$out/run" --benchmark-json "$out/bench.json"
step repeat "$PYTHON" tools/repeat_copies.py --json "$out/repeat.json"
if [ -n "$nvbandwidth" ]; then
    step compare "$PYTHON" tools/compare_nvbandwidth.py --nvbandwidth "$nvbandwidth" --json "$out/compare.json" \
        --times "${TIMES:-5}"
fi
exit "$failed"
