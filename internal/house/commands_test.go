//go:build readme && unix

package house_test

import (
	"strings"
	"testing"
)

// typed is a line that a page tells its reader to type.
type typed struct {
	page, line string
}

// commandLines returns the lines of scripts, and the lines after "$ " in recordings.
func commandLines(t *testing.T) []typed {
	t.Helper()
	var all []typed
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			for line := range strings.Lines(b.text) {
				line = strings.TrimSpace(line)
				prompted, ok := strings.CutPrefix(line, "$ ")
				switch {
				case b.lang == "sh" && line != "" && line[0] != '#':
					all = append(all, typed{p.file, line})
				case b.lang == "text" && ok:
					all = append(all, typed{p.file, prompted})
				}
			}
		}
	}
	return all
}

// elsewhere names a file that runs a command of the pages, and a text in it.
var elsewhere = map[string][2]string{
	"go build ./...":   {".ci/run", "go build ./..."},
	"go test ./...":    {".ci/run", "step_test()"},
	".ci/run":          {".github/workflows/ci.yml", "- run: .ci/run\n"},
	".ci/run vet race": {".github/workflows/ci.yml", ".ci/run build vet lint test race readme"},

	"sh hello.sh  # ~/hello": {recordings, `"sh", "hello.sh"`},
	"codex-mcp page":         {commandTests + "pagecommand_linux_test.go", `built(t), append([]string{"page"}`},

	"mkdir mcptypes/v20270131":                          contributing,
	"cp -r schema/2026-07-28 schema/2027-01-31":         contributing,
	"cp -r mcptypes/modern/testdata mcptypes/v20270131": contributing,
	"sed 's/2026-07-28/2027-01-31/g; s/package modern/package v20270131/; s/Package modern/Package v20270131/' mcptypes/modern/doc.go > mcptypes/v20270131/doc.go": contributing,
	"go run ./gen -schema schema/2027-01-31/schema.json -take upstream.json":                                                                                       contributing,
	"go generate ./mcptypes/v20270131": contributing,

	"npm install --global @codexmcp/codex-mcp":                                                                       {"packaging/hostile_test.go", "npm install --global @"},
	"npm install --global ./codexmcp-codex-mcp-linux-x64-0.2.0.tgz ./codexmcp-codex-mcp-0.2.0.tgz":                   {"packaging/release_test.go", "func tryNPM("},
	"sha256sum --ignore-missing -c SHA256SUMS":                                                                       {"packaging/signature_test.go", "## Checking a release"},
	"ssh-keygen -Y verify -f allowed_signers -I release@codexmcp -n codex-mcp-release -s SHA256SUMS.sig <SHA256SUMS": {"packaging/signature_test.go", "## Checking a release"},
}

const (
	commandTests = "codexserver/cmd/codex-mcp/"
	recordings   = commandTests + "terminal_linux_test.go"
)

// contributing is the test that runs the commands of CONTRIBUTING.md for a version of MCP.
var contributing = [2]string{"gen/versions_test.go", "func TestContributing("}

// byHand has the commands that the gate does not run, with the reason.
var byHand = map[string]string{
	"go test ./codexserver/cmd/codex-mcp -update":                                                     "writes the files that the gate compares",
	"CODEX_BIN=codex go test -tags realcodex ./codexserver/cmd/codex-mcp -run TestRealGolden -update": "the same",
	"go test ./codexserver/internal/config -update":                                                   "the same",
	"go test ./codexserver/appserver -update":                                                         "the same",
	"go test ./gen -update":                                                                           "the same",
	"go test ./internal/house -run 'API|Arrows|Program|Limit' -update":                                "the same",
	"npm install --prefix /tmp/claude @anthropic-ai/claude-code@2.1.330":                              "Claude Code's licence does not let CI install it",
	"go test -tags release -run '^TestRelease$' ./packaging -claude /tmp/claude/node_modules/.bin":    "the same",
	"ssh -L 8765:127.0.0.1:8765 workstation":                                                          "needs a second machine",
	"go mod edit -replace github.com/codexmcp/codexmcp=../..":                                         "changes go.mod, which the step tidy checks",
	"go mod tidy": "the same",
	"go mod edit -dropreplace github.com/codexmcp/codexmcp": "the same",
}
