#!/usr/bin/env bash
# clients.sh TRIAX: the official clients and the chat page against a server with random weights, on
# free ports of this machine. Works in build/clients; screenshots go to build/page. The last line
# counts the checks. `clients.sh TRIAX page|clients [PART OF A NAME]` runs some of them.
set -u
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
triax=$(readlink -f -- "${1:?which triax}")
which=${2:-all} only=${3:-}
work=$root/build/clients
mkdir -p "$work"
cp "$root"/tests/e2e/*.mjs "$root"/tests/e2e/package*.json "$work/"
cd -- "$work" || exit 1

die() { printf '%s\n' "$*"; echo "0 passed, 1 failed"; exit 1; }

if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --no-audit --no-fund --ignore-scripts >npm.log 2>&1 ||
    die "npm ci failed (is the npm registry reached?): $(grep -m 1 -i 'err' npm.log); all of it in $work/npm.log"
  cp package-lock.json node_modules/.installed
fi
if [ ! -f model/config.json ]; then
  rm -rf model.new
  "$triax" synth --config "$root/src/triax/cli/data/nano.json" --out model.new --seed 1 >synth.log 2>&1 ||
    die "no model could be made: $(tail -n 1 synth.log)"
  mv model.new model
fi

passed=0 failed=0
# part NAME COMMAND...: its checks are shown, and counted from its last line.
part() {
  local name=$1 last
  shift
  "$@" 2>&1 | tee "$name.log"
  last=$(tail -n 1 "$name.log")
  if [[ $last =~ ^([0-9]+)" passed, "([0-9]+)" failed"$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  else
    failed=$((failed + 1))
    echo "$name did not come to its end; see $work/$name.log"
  fi
}
[ "$which" = page ] || part clients node run_clients.mjs "$triax" model "$only"
[ "$which" = clients ] || part page node page.mjs "$triax" model "$root/build/page" "$only"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
