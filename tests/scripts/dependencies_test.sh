#!/bin/sh
# Tests of ensure_dependencies while another process holds apt's locks: dependencies_test.sh SOURCE_FOLDER. apt-get is a
# script that reports a lock N times, with the messages of apt 2.6 and 3.0; sleep only counts.
set -u
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir bin
cat >bin/apt-get <<'APT'
#!/bin/sh
for argument; do case $argument in update | install) verb=$argument ;; esac; done
echo "$verb $LC_ALL $DEBIAN_FRONTEND" >>calls
if read -r left <"$verb.locked" && [ "$left" -gt 0 ]; then
  echo $((left - 1)) >"$verb.locked"
  echo 'Reading package lists...'
  echo "E: Could not get lock /var/lib/$verb/lock. It is held by process 4242 (unattended-upgr)" >&2
  exit 100
fi
[ ! -e "$verb.fails" ] || { echo "E: Failed to fetch" >&2; exit 100; }
APT
printf '#!/bin/sh\necho "$1" >>slept\n' >bin/sleep
printf '#!/bin/sh\necho 1000\n' >bin/id
printf '#!/bin/sh\necho sudo >>calls\nexec "$@"\n' >bin/sudo
chmod +x bin/*
PATH=$work/bin:$PATH
. "$source/scripts/dependencies.sh"
gpubench_dependencies() { echo 'command|no-such-command|nothing-there|a test'; }
failures=0

try() { # UPDATES_LOCKED INSTALLS_LOCKED; afterwards: $code, log.txt, calls, slept
  rm -f calls slept
  : >slept
  echo "$1" >update.locked
  echo "$2" >install.locked
  ensure_dependencies run 2>log.txt
  code=$?
}
expect() { # WHAT COMMAND...
  what=$1
  shift
  if "$@"; then echo "ok: $what"; return; fi
  echo "FAILED: $what: exit $code"
  cat log.txt calls
  failures=$((failures + 1))
}
said() { [ "$(grep -c 'apt is busy' log.txt)" = "$1" ]; }
slept_s() { [ "$(awk '{ s += $1 } END { print s + 0 }' slept)" = "$1" ]; }

try 0 0
expect "where nobody holds a lock, nothing is waited for" slept_s 0
expect "and both commands succeed" [ "$code" = 0 ]
expect "root is asked for, and told that nobody answers questions, in English" grep -qx 'install C noninteractive' calls
try 3 2
expect "held locks are waited for, at each command" slept_s 25
expect "and then it is installed" [ "$code" = 0 ]
expect "the wait is said once" said 1
expect "with who holds the lock" grep -q 'held by process 4242 (unattended-upgr)); waiting up to 10 minutes' log.txt
try 1000 0
expect "a lock that is never let go is an error" [ "$code" = 3 ]
expect "after ten minutes" slept_s 600
expect "which says what to do" grep -q 'still busy after 10 minutes; run this again once that process has ended' log.txt
expect "and installing is not tried" sh -c '! grep -q install calls'
: >install.fails
try 1 0
expect "another failure is not waited for" slept_s 5
expect "and is reported as such" grep -q 'apt could not install what is missing' log.txt
expect "with exit code 3" [ "$code" = 3 ]

# The use of sudo is reported, and confirmed on a terminal.
rm -f install.fails
try 0 0
expect "that it goes through sudo is said" grep -q 'installing with apt through sudo: nothing-there' log.txt
expect "and where nobody can answer, nobody is asked" sh -c '! grep -q "may it" log.txt'
on_a_terminal() { true; }
echo n >answer
try 0 0 <answer
expect "on a terminal it is asked for" grep -q 'may it? \[y/N\]' log.txt
expect "and a no ends it" [ "$code" = 3 ]
expect "before anything was run as root" [ ! -e calls ]
expect "with the command for somebody else" grep -q 'as root, run: apt-get install --no-install-recommends nothing-there' log.txt
: >answer
try 0 0 <answer
expect "no answer is a no" [ "$code" = 3 ]
echo y >answer
try 0 0 <answer
expect "a yes installs" [ "$code" = 0 ]
printf '#!/bin/sh\necho 0\n' >bin/id
echo n >answer
try 0 0 <answer
expect "root is not asked" [ "$code" = 0 ]

# All downloads are pinned by version and hash.
for list in cuda-wheels.txt=10 cuda-tools.txt=2; do
  wheels=$source/scripts/${list%=*}
  expect "there are wheels in ${list%=*}" [ "$(grep -vc '^#' "$wheels")" = "${list#*=}" ]
  expect "each is pinned to a version and a hash" \
    sh -c "! grep -v '^#' '$wheels' | grep -vE '^[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}\$'"
done
expect "scripts name none themselves" sh -c "! grep -qE 'nvidia-[a-z0-9-]+==' '$source/scripts/bootstrap' '$source/scripts/dependencies.sh'"

# The disassembler is fetched only if it is missing; an error says what to do.
mkdir -p fresh/.cuda/tools/nvidia/cu13/bin
printf '#!/bin/sh\necho "$*" >>%s/pip.calls\ncase $* in *--version) exit 0 ;; esac\n[ ! -e %s/pip.fails ]\n' "$PWD" "$PWD" >bin/python3
chmod +x bin/python3
fetch() { (cd fresh && ensure_disassembler) 2>log.txt && code=0 || code=$?; }
if ! command -v cuobjdump >/dev/null 2>&1 && [ ! -x /usr/local/cuda/bin/cuobjdump ]; then
  fetch
  expect "it is fetched" grep -q -- '--require-hashes .*--target .cuda/tools --requirement scripts/cuda-tools.txt' pip.calls
  expect "which is said" grep -q 'fetching cuobjdump and nvdisasm' log.txt
  : >pip.fails
  fetch
  expect "a failure is one" [ "$code" = 3 ]
  expect "which says what to do" grep -q 'install cuobjdump and nvdisasm of the CUDA toolkit instead, or try again' log.txt
fi
for tool in cuobjdump nvdisasm; do
  printf '#!/bin/sh\n' >fresh/.cuda/tools/nvidia/cu13/bin/$tool
  chmod +x fresh/.cuda/tools/nvidia/cu13/bin/$tool
done
rm -f pip.calls
fetch
expect "where it is there, nothing is fetched" [ ! -e pip.calls ]
[ "$failures" = 0 ]
