//go:build realcodex

package appserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

// managedCodex is a program that runs Codex in a mount namespace of its own, where an administrator
// has requirements, and h.example is this machine.
const managedCodex = `#!/bin/sh
exec unshare --user --map-root-user --mount sh -ec '
mount -t tmpfs none %[1]q
mkdir -p %[1]q/new/codex %[1]q/work
cp %[3]q %[1]q/new/codex/requirements.toml
printf "127.0.0.1 localhost h.example\n" > %[1]q/new/hosts
mount -t overlay overlay -o lowerdir=/etc,upperdir=%[1]q/new,workdir=%[1]q/work /etc
exec %[2]q "$@"' codex "$@"
`

// manage restarts Codex with the requirements of an administrator.
func (r *real) manage(t *testing.T, requirements string) {
	t.Helper()
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r.options.Path = filepath.Join(dir, "codex")
	writeFile(t, filepath.Join(dir, "requirements.toml"), requirements)
	if err := os.WriteFile(r.options.Path, fmt.Appendf(nil, managedCodex, t.TempDir(), codex, filepath.Join(dir, "requirements.toml")), 0o700); err != nil {
		t.Fatal(err)
	}
	r.restart(t)
}

// TestRealNetwork has a command reach a host that no rule allows. Codex asks about the host.
func TestRealNetwork(t *testing.T) {
	needs(t, newQuestions)
	for _, test := range []struct {
		decides elicit.Decision
		reached bool
	}{{elicit.Approved, true}, {elicit.Denied, false}, {elicit.ApprovedForSession, true}, {elicit.Abort, false}}[:nightly.Number(2, 4)] {
		t.Run(string(test.decides), func(t *testing.T) {
			t.Parallel()
			reached := make(chan string, 9)
			site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host }))
			defer site.Close()
			at, err := url.Parse(site.URL)
			if err != nil {
				t.Fatal(err)
			}
			fetch := func(id string) providertest.Turn {
				return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": "curl -sS http://h.example:" + at.Port(), "yield_time_ms": 20000}))
			}
			r := newReal(t, "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n[features]\nnetwork_proxy = true", fetch("c1"), report, fetch("c2"), report)
			// Without this, Codex decides about hosts by its configuration and does not ask.
			r.manage(t, "[experimental_network]\nenabled = true\nallow_local_binding = true\n")
			var asked []protocol.ExecApprovalRequest
			h := &recorder{exec: func(_ context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
				asked = append(asked, q)
				return elicit.Outcome{Decision: test.decides}
			}}
			conv := r.start(t, h, protocol.Config{})
			err = conv.Turn(t.Context(), text("go"))
			if len(asked) != 1 || strings.Join(asked[0].Command, " ") != "network-access http h.example" || !asked[0].Once || asked[0].LeavesSandbox {
				t.Errorf("%v; asked %+v, answer %q, events %v", err, asked, h.answer(), h.types())
			}
			if (len(reached) == 1) != test.reached {
				t.Errorf("%v; reached %d times, answer %q", err, len(reached), h.answer())
			}
			if test.decides == elicit.Abort {
				return
			}
			if err != nil {
				t.Error(err)
			}
			asked = nil
			err = conv.Turn(t.Context(), text("again"))
			if err != nil || len(asked) != 1 {
				t.Errorf("the second time: %v, asked %+v, answer %q", err, asked, h.answer())
			}
		})
	}
}
