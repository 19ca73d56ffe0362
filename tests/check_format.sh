#!/usr/bin/env bash
# Every C++ source is as clang-format 19 writes it. To fix: clang-format-19 -i FILE
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
find src tests bench \( -name '*.h' -o -name '*.cc' -o -name '*.inl' \) -print0 2>/dev/null |
  xargs -0 -r -P "$(nproc)" -n 16 clang-format-19 --dry-run -Werror
