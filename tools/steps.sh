# Sourced by the scripts beside it, from the repository's root, after they set `out`: an interpreter that finds the
# project (PYTHON, else .venv's, else python3), and `step NAME COMMAND …`, which keeps the output in $out/NAME.txt.

if [ -z "${PYTHON:-}" ]; then
    if [ -x .venv/bin/python ]; then PYTHON=.venv/bin/python; else PYTHON=python3; fi
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
failed=0

step() {
    name=$1
    shift
    began=$(date +%s)
    "$@" >"$out/$name.txt" 2>&1
    status=$?
    [ "$status" -eq 0 ] || failed=1
    tail -n "${LINES_SHOWN:-12}" "$out/$name.txt"
    echo "== $name: ended with $status after $(($(date +%s) - began)) s, see $out/$name.txt"
}
