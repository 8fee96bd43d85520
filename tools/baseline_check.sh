#!/bin/sh
# Does a comparison stay silent on an unchanged machine, and speak up when something copies beside it?
#
#     tools/baseline_check.sh FOLDER [RUNS] [pytest arguments]
#
# FOLDER/same.txt        RUNS runs (5) as a baseline against RUNS more: no change may be called
# FOLDER/busy.txt        the baseline against a run with another program copying on GPU 0: to be called, busy GPU named
# FOLDER/judged.txt      `pytest benchmarks/ --baseline` with that program: fails, each case measured twice
#
# Ends with 0 where the first says nothing and the second is worse. PYTHON names the interpreter (default:
# .venv/bin/python, else python3). LOAD is the other program's command line (default: copies with cupy).
set -u

if [ $# -lt 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
runs=${2:-5}
[ $# -ge 2 ] && shift
shift
cd "$(dirname "$0")/.." || exit 2
if [ -z "${PYTHON:-}" ]; then
    if [ -x .venv/bin/python ]; then PYTHON=.venv/bin/python; else PYTHON=python3; fi
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
where="--report-dir=$out --baseline-dir=$out"

bench() {
    # shellcheck disable=SC2086 # one option a word
    "$PYTHON" -m pytest benchmarks/ -q $where "$@"
}

compare() {
    "$PYTHON" -m suite compare "$1" "$2" --baseline-dir "$out"
}

for name in before after; do
    for _ in $(seq "$runs"); do
        bench --save-baseline "$name" "$@" >"$out/$name.log" 2>&1
    done
done
compare before after >"$out/same.txt" 2>&1
same=$?
head -n 3 "$out/same.txt"

load=${LOAD:-"$PYTHON -c 'import cupy
there = cupy.empty(1 << 28, dtype=cupy.uint8)
here = cupy.cuda.alloc_pinned_memory(1 << 28)
while True:
    there.data.copy_from_host(here.ptr, 1 << 28)
    there.data.copy_to_host(here.ptr, 1 << 28)'"}
setsid sh -c "$load" &
group=$!
trap 'kill -- "-$group" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
sleep "${SETTLE:-5}"
bench --save-baseline busy "$@" >"$out/busy.log" 2>&1
bench --baseline before "$@" >"$out/judged.txt" 2>&1
compare before busy >"$out/busy.txt" 2>&1
busy=$?
head -n 3 "$out/busy.txt"
grep '^baseline before' "$out/judged.txt"

[ "$same" -eq 0 ] && [ "$busy" -eq 1 ]
