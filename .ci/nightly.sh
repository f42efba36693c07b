# shellcheck shell=bash
# Steps that are not of the gate, because they take long or need much. .ci/run reads this file.
nightly=(install style newcomer machines busy go128 versions seatbelt helper tools types cluster models release fuzz hosts soak windows)

# on_disk runs a command whose temporary files are on the disk: the sandbox of Codex hides those in memory.
on_disk() (
  TMPDIR=$(mktemp -d /var/tmp/ci.XXXXXX) && export TMPDIR && chmod 1777 "$TMPDIR"
  "$@"
  rm -rf "$TMPDIR"
)

step_style() { # what newer Go writes shorter, and staticcheck of everything
  local m staticcheck
  staticcheck=$(go tool -n staticcheck)
  for m in . codexserver/gateway test/bench; do (cd "$m" && GOTOOLCHAIN=$older go fix -diff ./... && "$staticcheck" ./...); done
}

step_newcomer() { # the README's two commands in a fresh clone, with empty caches, by each release of Go
  local release
  for release in $older $newest; do
    GOTOOLCHAIN=$release go test -tags newcomer -count=1 -timeout 60m -v ./internal/house/readme
  done
}

step_go128() { # what changes with Go 1.28
  .ci/go128
}

step_machines() ( # the README's two commands on each of the machines that the tests know
  unset CODEXMCP_NIGHTLY # by which TestMachines has each machine, too
  go run ./internal/machines | while read -r name; do
    echo "-- $name"
    go run ./internal/machines "$name" sh -c 'go run ./codexserver/cmd/codex-mcp ask --demo || [ $? = 1 ]' </dev/null
    go run ./internal/machines "$name" go test -count=1 -timeout 30m ./... </dev/null
  done
)

step_busy() ( # three times the README's second command, beside 30 busy processes
  unset CODEXMCP_NIGHTLY
  for _ in {1..30}; do
    nice -n 19 sh -c 'while :; do :; done' &
  done
  # shellcheck disable=SC2046 # each is an argument
  trap 'kill $(jobs -p)' EXIT
  for _ in 1 2 3; do go test -count=1 -timeout 60m ./...; done
)

step_versions() { # the bridge on the oldest supported Codex, without what needs a newer one or is said of the newest
  CI=false on_disk real $codex_earlier -skip '^TestReal(Patches|Profiles|Schema)$|^TestRealGolden$/^crash_task'
}

step_seatbelt() ( # the profile of the sandbox for macOS beside that in the newest Codex's program for macOS, right by right
  dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
  (cd "$dir" && npm pack --silent "@openai/codex@$codex_newest-darwin-arm64" && tar xzf ./*.tgz)
  go test -tags seatbelt -count=1 -run '^TestSeatbeltAgainstCodex$' ./codexserver/internal/box -codex-macos "$dir/package/vendor/aarch64-apple-darwin/bin/codex"
)

step_helper() ( # the documented helper of the sandbox. The real Codex would use a bubblewrap in the PATH, so that only this test has it
  needs apt-get dpkg jq script python3
  dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
  (cd "$dir" && apt-get download -q bubblewrap && dpkg -x ./*.deb .)
  PATH=$dir/usr/bin:$PATH go test -tags bubblewrap -count=1 -run '^TestTerminalsAndSemaphores$' ./codexserver/internal/box
)

step_tools() { # Gradle, Maven, pytest, cargo, mix, PostgreSQL, vitest and Playwright in the sandbox, as a user
  needs gradle mvn cargo mix psql node python3
  locked codexserver/internal/box/testdata/tools
  go test -tags tools -count=1 -timeout 30m -run '^TestTools$' ./codexserver/internal/box
}

step_types() { # 30,000 random instances of each schema, whether its types are checked in or not
  go test -count=1 -timeout 60m ./mcptypes ./mcptypes/modern ./gen -roundtrips 30000
}

step_cluster() { # three nodes, three NATS servers, two fronts: each part dies once, nightly ten times, or is restarted, while tasks run
  (cd codexserver/gateway && go test -json -count=1 -timeout 60m ./cmd/codex-mcp-gateway) | go run ./internal/skips
}

step_models() { # the native engine on the real llama-server, also with a strict chat template, and behind Portkey's gateway
  locked codexserver/cmd/codex-mcp/testdata/models # a gateway and a tokenizer
  [[ -x $CODEX_NPM/llama/llama-server ]] || .ci/llama-server "$CODEX_NPM/llama"
  go test -tags models -count=1 -timeout 20m ./codexserver/cmd/codex-mcp
}

step_release() { # the commit, twice; for all systems nightly. Changes that are not committed are not in it
  needs zip ruby skopeo
  go test -tags release -count=1 -timeout 30m ./packaging
}

step_fuzz() { # every fuzz test for $FUZZ, or those of a share such as FUZZ_SHARE=2/4
  local dir name share=${FUZZ_SHARE:-1/1} log
  log=$(mktemp)
  git grep -E '^func Fuzz' -- '*_test.go' | sed -nE 's,^(.*)/[^/]*:func (Fuzz[A-Za-z0-9]+)\(.*,\1 \2,p' |
    awk -v of="${share#*/}" -v nth="${share%/*}" 'NR % of == nth % of' | while read -r dir name; do
    # On a slow machine the end of the time is reported as a failure, without an input.
    (cd "$dir" && go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZ:-1s}" . </dev/null >"$log" 2>&1) ||
      ! grep -qvE '^(fuzz: elapsed|--- FAIL: Fuzz|    context deadline exceeded$|FAIL|exit status|$)' "$log" || { cat "$log"; return 1; }
  done
}

step_hosts() { # Copilot CLI, Gemini CLI, opencode, Cline, Continue, and Claude Code with its Agent SDK, whose licence you accept: 1.5 GB from npm
  locked test/interop/hosts/programs
  (cd test/interop && go test -count=1 -parallel 6 -timeout 30m . -hosts)
  locked test/interop/claudecode
  needs tmux
  (cd test/interop && go test -tags claudecode -count=1 -parallel 1 -timeout 10m ./claudecode -claude "$CODEX_NPM/claudecode/node_modules/@anthropic-ai/claude-code-linux-x64")
}

step_soak() { # both engines' servers under faults for $SOAK, at least 2m, and every test with all that it can do, once more with the detector
  local bin
  needs curl wget python3 pip # which reach a host
  bin=$(mktemp -d)
  go build -o "$bin" ./codexserver/cmd/codex-mcp
  go build -C test/bench -o "$bin" ./soak
  "$bin/soak" -for "${SOAK:-15m}" "$bin/codex-mcp"
  rm -rf "$bin"
  export CODEXMCP_NIGHTLY=1
  on_disk go test -tags soak -count=1 -timeout 3h ./...
  racing go test -race -vet=off -count=1 -timeout 3h ./codexserver/... ./internal/... ./jsonrpc ./elicit
  (cd codexserver/gateway && racing go test -race -count=1 -timeout 2h ./...)
  (cd contrib && racing go test -race -count=1 -timeout 20m ./...)
  (cd test/bench && go test -count=1 -timeout 20m ./...)
  racing on_disk real $codex_newest -race
  (cd test/interop && racing go test -race -count=1 -parallel 6 -timeout 40m ./...)
}

# on_windows are the packages whose tests pass whole there; internal/skips/list.txt has those that are skipped.
on_windows=(
  codexserver codexserver/approval codexserver/appserver/appclient codexserver/client codexserver/cmd/codex-mcp/internal/{shared,terminal}
  codexserver/engine codexserver/internal/{approve,box,config,cut,decide,decide/rulefile,history,methods,record,run,thread,tools,trace,transcript,worker}
  codexserver/native/internal/{auth,mcpclient,model,rollout,search,summary,tool} codexserver/native/providertest
  codexserver/{page,protocol,setting,streamable} elicit examples/{appclient,client,elicit,embed,minimal,policy,quickstart,review} gen
  internal/{claim,era,gobuild,group,hosts,house,httpserve,lazyregexp,mcpcall,mcphttp,moduleproxy,outputschema,paths}
  internal/{plain,program,safefile,shellword,skips,stack,text,webaddr} jsonrpc mcptypes mcptypes/internal/codec mcptypes/modern packaging
)

step_windows() { # as root, the tests of the Windows build under Wine, and whole sessions of it
  needs mmdebstrap
  local wine=$CODEX_NPM/wine build
  grep -q "the tests of ${#on_windows[@]} packages" README.md || { echo "README.md has another number than ${#on_windows[@]}"; return 1; }
  GOOS=windows go list -test -export "${on_windows[@]/#/./}" >/dev/null & # compiles them, while Wine is fetched
  build=$!
  .ci/wine "$wine"
  wait "$build"
  GOOS=windows GOTMPDIR=$wine/tmp go test -json -p 2 -count=1 -short -vet=off -exec "$wine/exec" "${on_windows[@]/#/./}" |
    CI=true go run ./internal/skips windows
  go test -tags wine -count=1 -timeout 10m -run '^TestWine$' ./codexserver/cmd/codex-mcp
}

step_vulns() { # known flaws, from the database of Go's vulnerabilities
  local m
  for m in . codexserver/gateway; do (cd "$m" && go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...); done
}

step_bench() { # start, memory and turns, and the gateway beside a plain proxy, of the commit $base and of the working tree, in turns
  local dir name at
  dir=$(mktemp -d)
  git archive --prefix=base/ "$base" | tar -x -C "$dir"
  for name in before now; do
    at=$PWD
    [[ $name == now ]] || at=$dir/base
    mkdir "$dir/$name"
    go build -C "$at" -buildvcs=false -trimpath -ldflags="-s -w" -o "$dir/$name/" ./codexserver/cmd/codex-mcp
    go build -C "$at/codexserver/gateway" -buildvcs=false -trimpath -ldflags="-s -w" -o "$dir/$name/" ./cmd/codex-mcp-gateway github.com/nats-io/nats-server/v2
  done
  go build -C test/bench -o "$dir/" ./compare ./gateway
  "$dir/compare" "$dir/before/codex-mcp" --engine native -- "$dir/now/codex-mcp" --engine native
  "$dir/gateway" "$dir/before" "$dir/now"
  rm -rf "$dir"
}
