#!/bin/sh
# Tries the bridge on real versions of Codex from npm:
#
#	versions.sh smoke 0.125.0 0.153.4 …  each must pass the smoke run
#	versions.sh refused 0.59.0 0.42.0    each must be refused with what to do
#
# `.ci/run versions` runs all tests of the bridge on five versions.
#
# Prints one line for each version, and exits 1 when one of them fails.
set -u
cd "$(dirname "$0")/.." || exit 1
what=$1
shift
case $what in
smoke) run=TestSmokeReal ;;
refused) run=TestRefusedReal ;;
*) echo "usage: $0 smoke|refused VERSION..." >&2; exit 2 ;;
esac
status=0
for version; do
	dir=$(mktemp -d)
	if ! npm i --silent --prefix "$dir" "@openai/codex@$version" >/dev/null 2>"$dir/npm.log"; then
		echo "$what $version: not installed: $(tail -1 "$dir/npm.log")"
		status=1
	elif out=$(CODEX_BIN=$dir/node_modules/.bin/codex go test -tags realcodex -count=1 -v -run "^$run\$" . 2>&1); then
		echo "$what $version: ok; $(echo "$out" | grep -m1 '_test.go:' | sed 's/^ *[^ ]*: //' | cut -c1-200)"
	else
		echo "$what $version: FAILED"
		echo "$out"
		status=1
	fi
	rm -rf "$dir"
done
exit $status
