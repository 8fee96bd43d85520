#!/bin/sh
# Every case that needs several GPUs, in one go, packed into one archive:
#
#     tools/multi_gpu.sh FOLDER [pytest options, such as --effort full]
#
# FOLDER/machine.json    what the probe read; FOLDER/topology.txt, p2p_*.txt: nvidia-smi's own view, for comparison
# FOLDER/tests.txt       the tests marked gpu
# FOLDER/peers.txt       links, host copies, staging, copies between GPUs and allreduce; the run is in FOLDER/run
# FOLDER.tar.gz          all of it
#
# Without several GPUs it says what is missing and measures what there is. PYTHON names the interpreter (default:
# .venv/bin/python, else python3). MACHINE=FILE measures a simulated machine instead, to try the script out.
# Ends with 1 where a step failed; the other steps run all the same.
set -u

if [ $# -lt 1 ]; then
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.." || exit 2
. tools/steps.sh

if [ -n "${MACHINE:-}" ]; then
    cp "$MACHINE" "$out/machine.json" || exit 2
    set -- --machine "$out/machine.json" "$@"
else
    "$PYTHON" -m suite probe --json >"$out/machine.json" 2>"$out/machine.txt" || failed=1
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi topo -m >"$out/topology.txt" 2>&1
        for way in r w a n; do nvidia-smi topo -p2p $way >"$out/p2p_$way.txt" 2>&1; done
    fi
    step tests "$PYTHON" -m pytest tests/ -m gpu -rs -v
fi
step peers "$PYTHON" -m pytest benchmarks/test_link.py benchmarks/test_host_copy.py benchmarks/test_host_staging.py \
    benchmarks/test_peer_copy.py benchmarks/test_allreduce.py --report-dir "$out/run" \
    --benchmark-json "$out/peers.json" -rs "$@"

tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")" || failed=1
echo "== packed: $out.tar.gz"
exit "$failed"
