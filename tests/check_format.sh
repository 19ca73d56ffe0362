#!/usr/bin/env bash
# Every C++ source is as clang-format 19 writes it. To fix: clang-format-19 -i FILE
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc' '*.inl' |
  while IFS= read -r -d '' file; do [ -f "$file" ] && printf '%s\0' "$file"; done |
  xargs -0 -r -P "$(nproc)" -n 16 clang-format-19 --dry-run -Werror
