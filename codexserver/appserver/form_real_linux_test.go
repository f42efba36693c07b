//go:build realcodex

package appserver_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealFormIsOver checks that a turn for the form of an answer changes nothing for the next one: not in this server, not in one
// that resumes the conversation, and not for who goes on with it in Codex itself.
func TestRealFormIsOver(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\nmodel_reasoning_effort = \"xhigh\"\n", providertest.Turn{Repeat: true, Text: []string{"{}"}})
	models := must.Get(r.engine.Models(t.Context()))(t).Models
	n := slices.IndexFunc(models, func(m protocol.Model) bool {
		return slices.Contains(m.Efforts, "low") && slices.Contains(m.Efforts, "xhigh")
	})
	if n < 0 {
		t.Fatalf("no model has these efforts: %+v", models)
	}
	file := filepath.Join(r.home, "config.toml")
	writeFile(t, file, strings.Replace(string(must.Get(os.ReadFile(file))(t)), "mock-model", models[n].Name, 1))
	r.restart(t)
	conv := r.start(t, &recorder{}, protocol.Config{Choices: protocol.Choices{Effort: "high"}})
	path := ""
	var efforts, policies []string
	look := func() {
		t.Helper()
		var request struct{ Reasoning struct{ Effort string } }
		must.OK(t, json.Unmarshal([]byte(r.last()), &request))
		efforts = append(efforts, request.Reasoning.Effort)
		path = must.Get(fileOf(t, r.engine, conv.ID()))(t)
		policy := ""
		for line := range strings.Lines(string(must.Get(os.ReadFile(path))(t))) {
			var l struct {
				Type    string
				Payload struct {
					ApprovalPolicy string                `json:"approval_policy"`
					SandboxPolicy  struct{ Type string } `json:"sandbox_policy"`
				}
			}
			if must.OK(t, json.Unmarshal([]byte(line), &l)); l.Type == "turn_context" {
				policy = l.Payload.ApprovalPolicy + " " + l.Payload.SandboxPolicy.Type
			}
		}
		policies = append(policies, policy)
	}
	turn := func(form bool) {
		t.Helper()
		if form {
			must.OK(t, conv.(engine.Former).Form(t.Context(), formOf("again")))
		} else {
			must.OK(t, conv.Turn(t.Context(), text("go")))
		}
		look()
	}
	turn(false)
	turn(true)
	turn(false)
	turn(true)
	r.restart(t)
	conv = r.resume(t, conv, &recorder{}, protocol.Config{})
	turn(false)
	turn(true)
	must.OK(t, r.engine.Close())
	byHand := exec.Command(must.Get(appserver.Find(""))(t), "exec", "resume", "--skip-git-repo-check", conv.ID(), "on")
	byHand.Dir, byHand.Env = r.cwd, append(os.Environ(), "CODEX_HOME="+r.home)
	if out, err := byHand.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.restart(t)
	look()
	const own, form = "on-request workspace-write", "never read-only"
	must.Equal(t, "efforts", []string{"high", "low", "high", "low", "high", "low", "xhigh"}, efforts)
	must.Equal(t, "policies", []string{own, form, own, form, own, form, "never workspace-write"}, policies) // exec asks nobody
}
