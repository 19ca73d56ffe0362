#!/usr/bin/env bash
# ./triax: stdout is the program's alone, a second call builds nothing, the working directory and the
# exit code are the program's.
set -u
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
fail() { echo "check_wrapper: $*"; exit 1; }

first=$("$root/triax" --version 2>/dev/null) || fail "./triax --version fails"
[ "$(printf '%s\n' "$first" | wc -l)" -eq 1 ] || fail "--version prints more than one line: $first"

before=$(stat -c %Y.%Z "$root/build/run/.ninja_log")
said=$(cd / && "$root/triax" --version 2>&1) || fail "./triax from another folder fails"
[ "$said" = "$first" ] || fail "a second call says more than the program: $said"
[ "$(stat -c %Y.%Z "$root/build/run/.ninja_log")" = "$before" ] || fail "a second call built again"

"$root/triax" --no-such-flag >/dev/null 2>&1
[ $? -eq 2 ] || fail "wrong use does not come back as exit code 2"
