#!/usr/bin/env bash
# Every shell and Python script parses.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
status=0
while IFS= read -r -d '' file; do
  [ -f "$file" ] || continue
  IFS= read -r first <"$file" 2>/dev/null || true
  case "$file:$first" in
    *.sh:* | *:'#!'*bash*) bash -n "$file" || status=1 ;;
    *.py:*) python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || status=1 ;;
  esac
done < <(find triax test .ci tools tests bench web \( -path tests/golden -o -path tests/fuzz -o -path web/node_modules \) -prune -o \
  -type f -print0 2>/dev/null)
exit $status
