package policy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func TestDecideFetch(t *testing.T) {
	sandboxes := []protocol.SandboxPolicy{
		{Mode: "read-only"}, {Mode: "read-only", NetworkAccess: true}, {Mode: "workspace-write"},
		{Mode: "workspace-write", NetworkAccess: true}, {Mode: "danger-full-access"},
		{Mode: "none", NetworkAccess: true}, {},
	}
	// Per policy: a listed host in each sandbox, then another host.
	for p, want := range map[protocol.ApprovalPolicy][2][7]policy.Action{
		"untrusted":  {{run, run, run, run, run, refuse, refuse}, {ask, ask, ask, ask, ask, refuse, refuse}},
		"on-request": {{run, run, run, run, run, refuse, refuse}, {ask, ask, ask, run, run, refuse, refuse}},
		"on-failure": {{run, run, run, run, run, refuse, refuse}, {ask, ask, ask, run, run, refuse, refuse}},
		"never":      {{run, run, run, run, run, refuse, refuse}, {refuse, refuse, refuse, run, run, refuse, refuse}},
		"sometimes":  {},
		"":           {},
	} {
		for i, listed := range []bool{true, false} {
			for k, sandbox := range sandboxes {
				got := policy.DecideFetch(policy.FetchInput{Policy: p, Sandbox: sandbox, Listed: listed})
				if got.Action != want[i][k] || got.Confinable || (got.Reason != "") != (got.Action == policy.Refuse) {
					t.Errorf("%s, %+v, listed %t: %v (%q), want %v", p, sandbox, listed, got.Action, got.Reason, want[i][k])
				}
			}
		}
	}
}

// TestFetchPage checks that the table of docs/reference/native.md is what DecideFetch decides.
func TestFetchPage(t *testing.T) {
	var want strings.Builder
	words := map[policy.Action]string{policy.Run: "may", policy.Ask: "asks", policy.Refuse: "never"}
	for _, p := range []protocol.ApprovalPolicy{"untrusted", "on-request", "on-failure", "never"} {
		cell := func(listed, network bool) string {
			return words[policy.DecideFetch(policy.FetchInput{Policy: p, Listed: listed, Sandbox: protocol.SandboxPolicy{Mode: "workspace-write", NetworkAccess: network}}).Action]
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", p, cell(true, false), cell(false, false), cell(false, true))
	}
	page, err := os.ReadFile("../../../docs/reference/native.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "|---|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("docs/reference/native.md has another table than\n%s", want.String())
	}
}
