# Shared by the stages of scripts/validate-gpu: time limits, the record of each stage, summary.txt, the archive.
# Sourced; needs a POSIX shell, timeout, tar and gzip. Global: out, archive, began, deadline, budget, only, rehearse, and
# budgeted: the sum in seconds to which the stages' limits refer.

most_archive_bytes=${GPUBENCH_MOST_ARCHIVE_BYTES:-16777216}  # the variable is for tests
most_log_bytes=8388608
unreached='' child='' name='' stage_end=0 share_end=0
whole=''  # if a number, stages only add their limits to it

now() { date +%s; }

gpu_seen() { nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || [ -e /dev/nvidia0 ]; }

# share N: limits the next command to an N-th of the stage's remaining time.
share() { share_end=$(($(now) + (stage_end - $(now)) / $1)); }

# limited LOG COMMAND...: appends the output to $out/LOG. Returns the exit code, or 124 if it was stopped at the limit of the
# stage or share. Sends SIGTERM before the limit, so that the command can write its report, and SIGKILL at the limit.
limited() {
  log=$1
  shift
  end=$stage_end
  [ "$share_end" -le "$(now)" ] || [ "$share_end" -ge "$end" ] || end=$share_end
  share_end=0
  left=$((end - $(now)))
  [ "$left" -gt 0 ] || return 124
  writing=$((left < 12 ? (left + 3) / 4 : 3))
  timeout -k "$writing" "$((left - writing > 0 ? left - writing : 1))" "$@" >>"$out/$log" 2>&1 &
  child=$!  # in the background, so that signals to this script are handled at once
  wait "$child"
  code=$?
  child=
  shorten "$out/$log"
  [ $code -ne 137 ] || [ "$(now)" -lt $((end - 1)) ] || code=124  # killed: it ignored SIGTERM
  echo "exit code $code: $*" >>"$out/exit-codes.txt"
  return $code
}

# gtest_xml LOG XML PROGRAM: writes XML from the log of a GoogleTest program that ended before it wrote its XML.
gtest_xml() {
  [ ! -s "$2" ] && [ -s "$1" ] || return 0
  awk -v program="$3" '
    function put(state) { n++; line[n] = sprintf("  <testcase name=\"%s\">%s</testcase>", open, state); open = "" }
    /^\[ RUN      \] / {open = substr($0, 14); gsub(/[^A-Za-z0-9_.\/ -]/, "_", open)}
    /^\[       OK \] / && open != "" {put("")}
    /^\[  SKIPPED \] / && open != "" {put("<skipped/>")}
    /^\[  FAILED  \] / && open != "" {bad++; put("<failure message=\"see the log\"/>")}
    END {
      if (open != "") {errors++; put("<error message=\"the program ended during this test\"/>")}
      printf "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"%d\">\n", program, n, bad, errors
      for (i = 1; i <= n; i++) print line[i]
      print "</testsuite>"
    }' "$1" >"$2"
}

# A log above 8 MiB keeps its first 2 MiB and last 4 MiB.
shorten() {
  bytes=$(wc -c <"$1")
  [ "$bytes" -gt "$most_log_bytes" ] || return 0
  { head -c 2097152 "$1"; printf '\n[validate-gpu: %s bytes left out here]\n' $((bytes - 6291456)); tail -c 4194304 "$1"; } >"$1.short"
  mv "$1.short" "$1"
}

# worse STATUS [WORDS]: updates the result of the stage; fail outweighs cut, cut outweighs skip and pass.
worse() {
  case $status/$1 in fail/* | cut/skip | cut/pass) ;; *) status=$1 ;; esac
  [ -z "${2:-}" ] || words=${words:+$words; }$2
}

wanted() {
  case ",$only," in ,, | *",$1,"*) return 0 ;; esac
  case $1 in standard-*) case ",$only," in *,standard,*) return 0 ;; esac ;; esac
  return 1
}

# stage NAME LIMIT COMMAND...: runs the command if there is time, records the result, updates summary and archive.
stage() {
  wanted "$1" || return 0
  if [ -n "$whole" ]; then
    whole=$((whole + $2))
    return 0
  fi
  name=$1 limit=$(($2 * budget / budgeted))
  shift 2
  stage_began=$(now)
  left=$((deadline - stage_began - 3))  # 3 s for the archive
  if [ "$left" -lt 2 ]; then
    unreached="$unreached $name"
    return 0
  fi
  [ "$limit" -ge 2 ] || limit=2
  [ "$limit" -le "$left" ] || limit=$left
  stage_end=$((stage_began + limit))
  echo "validate-gpu: $name (at most $limit s)" >&2
  status=pass words=
  "$@"
  record
  finish
}

record() { printf '%s\t%s\t%s\t%s\n' "$name" "$status" "$(($(now) - stage_began))" "$words" >>"$out/stages.tsv"; }

summarize() {
  {
    what=validation
    [ -z "$rehearse" ] || what="REHEARSAL on the CPU backend, which says nothing about a GPU"
    echo "gpubench $what, $(date -u +%Y-%m-%dT%H:%M:%SZ), budget $budget s, $(($(now) - began)) s used"
    [ ! -s "$out/version.txt" ] || head -n 1 "$out/version.txt"
    [ ! -s "$out/gpus.txt" ] || cat "$out/gpus.txt"
    echo
    awk -F '\t' '{printf "%-22s %-5s %5d s  %s\n", $1, $2, $3, $4}' "$out/stages.tsv"
    echo
    echo "not reached:${unreached:- none}"
    [ ! -s "$out/left-out.txt" ] || { echo "left out of the archive for its size:"; cat "$out/left-out.txt"; }
  } >"$out/summary.txt"
}

# The files of the archive, without those in left-out.txt.
kept() {
  touch "$out/left-out.txt"
  # shellcheck disable=SC2045
  for file in $(ls "$out"); do  # these names have no spaces
    grep -qxF "$file" "$out/left-out.txt" || echo "${out##*/}/$file"
  done
}

# Writes summary and archive; replaces the old archive when the new one is complete.
finish() {
  while :; do
    summarize
    # shellcheck disable=SC2046
    tar -C "$(dirname "$out")" -cf - $(kept) | gzip -c >"$archive.part"
    bytes=$(wc -c <"$archive.part")
    [ "$bytes" -gt "$most_archive_bytes" ] || break
    largest=$(largest_file)
    [ -n "$largest" ] || break
    echo "$largest" >>"$out/left-out.txt"
  done
  mv "$archive.part" "$archive"
}

# The largest file that may be left out: first logs, last reports.
largest_file() {
  for kind in '\.log$' '\.txt$' '\.xml$' '\.json$'; do
    # shellcheck disable=SC2010
    for file in $(ls -S "$out" | grep "$kind"); do
      case $file in summary.txt | left-out.txt | exit-codes.txt) continue ;; esac
      grep -qxF "$file" "$out/left-out.txt" || { echo "$file"; return 0; }
    done
  done
}

# On a signal: ends the command and writes the archive.
stopped() {
  trap '' INT TERM
  [ -z "$child" ] || { kill -TERM "$child" 2>/dev/null; wait "$child" 2>/dev/null; }
  if [ -n "${stage_began:-}" ] && ! grep -q "^$name	" "$out/stages.tsv"; then
    status=cut words="interrupted"
    record
  fi
  unreached="$unreached (interrupted; the stages after $name)"
  finish
  exit "$1"
}
