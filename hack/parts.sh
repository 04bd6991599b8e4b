# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Runs parts of the tests in lanes; sourced by hack/test.sh and hack/nightly.sh, after hack/lib.sh. They say in $logs which folder takes what
# the parts print.
#
# A lane is a function that calls part for each of its parts, which run one after another. Lanes run side by side. A part that fails does
# not keep the others from running, so that one run names all failures.

# part NAME COMMAND...: runs a part, with its output in a log of its own. Where only the names are asked for, it prints its name.
part() {
  local name=$1 started=$SECONDS status=0 result=ok
  shift
  [[ $name =~ $pattern ]] || return 0
  if [[ -n $naming ]]; then
    echo "$name"
    return
  fi
  # In the background, and in a process group of its own: bash acts on a signal when what runs in the foreground has ended, and what go test
  # has started ends only if it gets the signal as well.
  set -m
  (
    set -e # a function that is a part ends with its first command that fails
    "$@"
  ) </dev/null >"$logs/$name.log" 2>&1 &
  child=$!
  set +m
  wait "$child" || status=$?
  child=
  echo "$name $status" >>"$logs/ended"
  ((status == 0)) || result=FAILED
  [[ ! -e $logs/$name.out ]] || result="left out"
  printf '[%2d of %d, %4d s] %-6s %s, %d s\n' "$(wc -l <"$logs/ended")" "$all" "$SECONDS" "$result" "$name" $((SECONDS - started))
  ((status == 0)) || {
    grep -vE '^(=== |--- PASS|ok  )' "$logs/$name.log" | tail -n 60
    failures "$name"
  } | sed "s/^/    $name: /"
}

# failures NAME: what each test of a part that has failed says, of those that go test -v names. Tests that run side by side say it long before the end.
failures() {
  awk '
    /^=== / { test = $3; next }
    $1 == "---" { if ($2 == "FAIL:") printf "%s%s\n", said[$3], $0; next }
    lines[test]++ < 40 { said[test] = said[test] $0 "\n" }
  ' "$logs/$1.log" | tail -n 200
}

# races [LASTING]: runs the race detector. Go, make and git are enough for the tests: a machine without a C compiler tells the storm without it, unless it is CI.
races() {
  local status=0
  hack/race.sh "$@" || status=$?
  if ((status == 69)) && [[ ${CI:-} != true ]]; then
    touch "$logs/race.out" # says parts.sh that it was left out
    go test -vet=off -v -count=1 -timeout 10m ./test/storm -run '^TestStorm$' -lasting="${1:-8s}"
    return
  fi
  return "$status"
}

# lane FUNCTION: runs a lane, and ends what it runs if it is told to end.
lane() {
  local child=
  trap 'child=${child:-${!:-}}; [[ -z $child ]] || { kill -- -"$child" 2>/dev/null; wait "$child"; }; exit 1' TERM HUP
  "$1"
}

# names LANE...: prints the names of the parts that match.
names() {
  local naming=1 one
  for one in "$@"; do "$one"; done
}

# run_lanes PATTERN LANE...: runs the parts whose names match the extended regular expression. Fails if one of them does, or if there is
# none. It leaves errexit off: called in a condition, it would have it off in all parts.
run_lanes() {
  local pattern=$1 naming='' all one other lanes=() passed failed left
  set +e
  shift
  all=$(names "$@" | wc -l)
  if ((all == 0)); then
    echo "no part has a name that matches \"$pattern\"; the parts are: $(pattern=. && names "$@" | xargs)" >&2
    return 1
  fi
  # Another run in this clone would take the logs from under the parts.
  mkdir -p "$(dirname "$logs")"
  if other=$(cat "$logs.pid" 2>/dev/null) && kill -0 "$other" 2>/dev/null; then
    echo "process $other runs parts into ${logs#"$root"/} already: wait for it, or end it" >&2
    return 1
  fi
  echo $$ >"$logs.pid"
  rm -rf "$logs"
  mkdir -p "$logs/tmp"
  : >"$logs/ended"
  export GOTMPDIR=$logs/tmp # go test removes nothing when it is terminated
  trap 'kill ${lanes[@]+"${lanes[@]}"} 2>/dev/null; wait; exit 130' INT
  trap 'kill ${lanes[@]+"${lanes[@]}"} 2>/dev/null; wait; exit 143' TERM HUP
  for one in "$@"; do
    lane "$one" &
    lanes+=($!)
  done
  wait
  rm -rf "$logs/tmp" "$logs.pid"
  passed=$(awk '$2 == 0' "$logs/ended" | wc -l)
  failed=$(awk '$2 != 0 { print $1 }' "$logs/ended" | xargs)
  # A lane that has died has not run all its parts.
  left=$(names "$@" | grep -vxF "$(cut -d ' ' -f 1 "$logs/ended")" | xargs)
  [[ ! -e $logs/race.out ]] || head -n 2 "$logs/race.log" >&2
  for one in $failed; do failures "$one" | grep -E '^ *--- FAIL' | sed "s/^/$one: /" >&2; done
  [[ -z $failed ]] || echo "FAILED: $failed; what each part prints is in ${logs#"$root"/}" >&2
  [[ -z $left ]] || echo "NOT RUN: $left" >&2
  echo "parts: $passed passed, $((all - passed)) failed"
  [[ -z $failed$left ]] && ((passed == all))
}
