#!/bin/sh
# Tests of scripts/gate-ci: gate_ci_test.sh SOURCE_FOLDER GPUBENCH_SIM. Runs the sim backend with a fake clock; builds
# nothing.
set -u
source=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
export GPUBENCH_SIM_SCRIPT=clock=100000

expect() { # WHAT EXIT_CODE TEXT COMMAND...
  what=$1 wanted=$2 text=$3
  shift 3
  "$@" >log.txt 2>&1
  code=$?
  if [ "$code" = "$wanted" ] && grep -q -e "$text" log.txt; then echo "ok: $what"; return; fi
  echo "FAILED: $what: exit $code, expected $wanted and '$text'"
  cat log.txt
  failures=$((failures + 1))
}

gate() { # BASE CANDIDATE the rest as for scripts/gate-ci
  base=$1 candidate=$2
  shift 2
  "$source/scripts/gate-ci" --base-program "$base" --candidate-program "$candidate" "$@"
}

cat >slow <<SCRIPT
#!/bin/sh
[ "\$1" = run ] || exec "$program" "\$@"
exec "$program" "\$@" --inject-slowdown gemm=25%
SCRIPT
cat >wrong <<SCRIPT
#!/bin/sh
GPUBENCH_SIM_SCRIPT="clock=100000;wrong_element@first.gemm" exec "$program" "\$@"
SCRIPT
cat >broken <<'SCRIPT'
#!/bin/sh
exit 2
SCRIPT
chmod +x slow wrong broken

expect "one program against itself passes" 0 'GATE  PASS' gate "$program" "$program" -- --tier smoke --filter sim/first
expect "three reports a side are kept" 0 'candidate-3.json' ls gate-ci-out
(cd gate-ci-out && [ ! base-2.json -ot candidate-1.json ]) || { echo "FAILED: sides take turns"; failures=$((failures + 1)); }
expect "a slower candidate fails" 1 'GATE  FAIL  1 regressed' gate "$program" "$work/slow" -- --tier smoke --filter sim/first
expect "a wrong candidate fails" 1 'PARITY FAILED' gate "$program" "$work/wrong" -- --tier smoke --filter sim/first
expect "flags before the dashes are the gate's" 0 'GATE  PASS' gate "$program" "$work/slow" --tau 30% --markdown 'a b.md' -- --tier smoke --filter sim/first
expect "a value with a blank stays one" 0 'gpubench gate: PASS' cat 'a b.md'
expect "one run a side cannot tell" 4 'GATE  INCONCLUSIVE' gate "$program" "$program" --repeat 1 -- --tier smoke --filter sim/first
expect "a program that does not run ends it" 2 'base, run 1 ended with exit 2' gate "$work/broken" "$program" -- --tier smoke
expect "an unknown revision is refused" 2 "git knows no revision 'no-such-revision'" "$source/scripts/gate-ci" --base no-such-revision
expect "a share of 300% is refused before anything runs" 2 "'3' is no share such as 3%" gate "$work/broken" "$program" --tau 3
expect "one of a suite too" 2 "'1' is no share such as 3%" gate "$work/broken" "$program" --tau=sim=1
expect "a number of runs is a number" 2 'not a whole number' gate "$program" "$program" --repeat x

[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
