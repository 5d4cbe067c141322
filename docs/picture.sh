#!/bin/sh
# A picture of the top of a report: picture.sh REPORT.html OUT.png
set -eu
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
chromium --headless --no-sandbox --disable-gpu --disable-background-networking \
  --user-data-dir="$profile" --hide-scrollbars --window-size=1160,1500 \
  --screenshot="$2" "file://$(realpath "$1")" 2>/dev/null
