#!/usr/bin/env bash
# Format and clang-tidy.   usage: scripts/lint.sh BUILD_DIR | scripts/lint.sh format
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs -0 clang-format --dry-run -Werror
echo "format: clean"
[ "$1" != format ] || exit 0
scripts/sources.sh src | grep -z '\.cc$' \
  | xargs -0 -n 1 -P "${LINT_JOBS:-2}" clang-tidy -p "$1" --quiet --warnings-as-errors='*' 2>/dev/null
echo "clang-tidy: clean"
