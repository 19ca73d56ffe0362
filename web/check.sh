#!/usr/bin/env bash
# The committed page is what npm builds from these sources, byte for byte.
set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd -- "$here" || exit 1
out=$here/../build/page-built
if ! cmp -s package-lock.json node_modules/.installed; then
  mkdir -p "$out"
  npm ci --no-audit --no-fund >"$out/npm.log" 2>&1 || {
    echo "npm ci failed (is the npm registry reached?): $(grep -m 1 -i err "$out/npm.log")"
    exit 1
  }
  cp package-lock.json node_modules/.installed
fi
TRIAX_PAGE_OUT=$out npm run --silent build >/dev/null || exit 1
cmp "$out/index.html" "$here/../src/triax/server/page/index.html" || {
  echo "src/triax/server/page/index.html is stale: npm ci && npm run build in web/"
  exit 1
}
