#!/usr/bin/env bash
# Make a virtual environment that has pip, also where Debian has split `ensurepip` off into a package.
set -euo pipefail
python=$1 venv=$2
if [ -z "$python" ]; then
  echo "mire needs Python 3.11 or newer; none found on PATH. Set PYTHON=/path/to/python3." >&2
  exit 1
fi
"$python" - <<'PY' || { echo "mire needs Python 3.11 or newer; $python is older. Set PYTHON=/path/to/python3." >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY
if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    "$python" -m venv "$venv"
  else
    echo "$python cannot make virtual environments: install its venv package (Debian: python3-venv)." >&2
    exit 1
  fi
fi
