package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// unload unloads a conversation, and fails the test if that does not work.
func unload(t *testing.T, c engine.Conversation) {
	t.Helper()
	if !native.Unload(c) {
		t.Fatal("the conversation was not unloaded")
	}
}

// arguments is a call that sets everything that a call can set.
func arguments(b *bench) protocol.Config {
	return protocol.Config{
		Model:                 "chosen",
		Cwd:                   b.cwd,
		ApprovalPolicy:        protocol.ApprovalUntrusted,
		Sandbox:               protocol.SandboxWorkspaceWrite,
		BaseInstructions:      new("the base instructions"),
		DeveloperInstructions: new("the developer instructions"),
		CompactPrompt:         new("the compact prompt"),
		IncludePlanTool:       new(true),
		FromCall:              true,
		Overrides: map[string]json.RawMessage{
			"sandbox_workspace_write.writable_roots": json.RawMessage(`["` + filepath.ToSlash(b.home) + `"]`),
			"sandbox_workspace_write.network_access": json.RawMessage(`true`),
			"tools.view_image":                       json.RawMessage(`false`),
			"model_reasoning_effort":                 json.RawMessage(`"low"`),
		},
	}
}

// duration matches the duration of a command in a request to the model.
var duration = regexp.MustCompile(`duration_seconds\\":[0-9.]+`)

// TestUnloadedConversationIsUnchanged checks that an unloaded conversation sends the same
// requests as one that stayed in memory, whatever the configuration has become.
func TestUnloadedConversationIsUnchanged(t *testing.T) {
	for _, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			run := func(away bool) (bodies []string) {
				call := providertest.Turn{Text: []string{"on it"}, ToolCalls: []providertest.ToolCall{providertest.Shell("c1", "echo", "hi")}}
				b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{}, call, providertest.Say("one"), call, providertest.Say("two"))
				c := b.start(t, &host{}, arguments(b))
				turn(t, c, say("first"))
				if away {
					unload(t, c)
					loosen(t, b)
				}
				turn(t, c, say("second"))
				for _, r := range b.provider.Requests() {
					body := strings.NewReplacer(c.ID(), "ID", b.cwd, "CWD", b.home, "HOME").Replace(string(r.Body))
					bodies = append(bodies, duration.ReplaceAllString(body, "DURATION"))
				}
				validRequests(t, b.provider)
				return bodies
			}
			want, got := run(false), run(true)
			if d := cmp.Diff(want, got); d != "" || len(want) != 4 {
				t.Errorf("%d requests (-stayed +unloaded):\n%s", len(want), d)
			}
		})
	}
}

// loosen makes the configuration allow everything.
func loosen(t *testing.T, b *bench) {
	t.Helper()
	path := filepath.Join(b.home, "config.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	loose := strings.NewReplacer(`"untrusted"`, `"never"`, `model = "scripted"`, `model = "other"`).Replace(string(text))
	write(t, path, loose)
}

// TestRolloutDoesNotLoosen writes a looser policy into the rollout: the conversation keeps its
// own, unloaded or not.
func TestRolloutDoesNotLoosen(t *testing.T) {
	for _, away := range []bool{true, false} {
		t.Run(fmt.Sprint("unloaded: ", away), func(t *testing.T) {
			b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("two"))
			asked := 0
			h := &host{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Decision {
				asked++
				return elicit.Denied
			}}
			c := b.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxReadOnly})
			turn(t, c, say("first"))
			if away {
				unload(t, c)
			}
			loosen(t, b)
			appendTo(t, configured(t, h).RolloutPath, `{"timestamp":"2026-01-01T00:00:00.000Z","type":"turn_context","payload":{"cwd":"/","approval_policy":"never",`+
				`"sandbox_policy":{"mode":"danger-full-access"},"model":"loose","summary":"auto"}}`+"\n")
			turn(t, c, say("second"))
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			if _, err := os.Stat(filepath.Join(b.cwd, "made")); err == nil {
				t.Error("a refused command ran")
			}
			inOrder(t, lastRequest(b), `"model":"scripted"`, "first", "approval_policy", "untrusted", "read-only", "second")
		})
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestUnloadEndsSessionApprovals checks that the user is asked again.
func TestUnloadEndsSessionApprovals(t *testing.T) {
	call := providertest.Call(providertest.Shell("c1", "touch", "made"))
	b := setup(t, "", native.Limits{}, call, providertest.Say("one"), call, providertest.Say("two"), call, providertest.Say("three"))
	asked := 0
	c := b.start(t, &host{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Decision {
		asked++
		return elicit.ApprovedForSession
	}}, protocol.Config{})
	turn(t, c, say("first"))
	turn(t, c, say("second"))
	if asked != 1 {
		t.Fatalf("asked %d times within the session", asked)
	}
	unload(t, c)
	turn(t, c, say("third"))
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestIdle checks that a conversation is unloaded after Limits.Idle without a turn, that a used
// one is not, and that closing it in between works.
func TestIdle(t *testing.T) {
	b := setup(t, "", native.Limits{})
	synctest.Test(t, func(t *testing.T) {
		e, err := native.New(&native.Options{CodexHome: b.home, Limits: native.Limits{Idle: time.Hour}, Environ: []string{"HOME=" + b.home}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c, err := e.Start(t.Context(), protocol.Config{Cwd: b.cwd}, &host{})
		if err != nil {
			t.Fatal(err)
		}
		wait := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		for range 3 { // a turn of nothing is a use
			wait(59 * time.Minute)
			if native.Unloaded(c) {
				t.Fatal("the conversation was unloaded too soon")
			}
			turn(t, c, protocol.TurnInput{})
		}
		wait(61 * time.Minute)
		if !native.Unloaded(c) {
			t.Error("the conversation was not unloaded")
		}
		if err := c.Turn(t.Context(), protocol.TurnInput{}); err != nil || native.Unloaded(c) {
			t.Errorf("the turn after that: %v", err)
		}
		closed(t, c)
		wait(2 * time.Hour)
	})
}

// TestUnloadedWithoutItsRollout removes the rollout of an unloaded conversation: its turn fails,
// and works again when the file is back.
func TestUnloadedWithoutItsRollout(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	path := configured(t, h).RolloutPath
	turn(t, c, say("first"))
	unload(t, c)
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	h.take()
	err := c.Turn(t.Context(), say("second"))
	if err == nil || !strings.Contains(err.Error(), "was unloaded") {
		t.Fatalf("without its file: %v", err)
	}
	if d := cmp.Diff([]string{"task_started", "error " + err.Error(), "task_complete null"}, h.take()); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if err := os.Rename(path+".aside", path); err != nil {
		t.Fatal(err)
	}
	turn(t, c, say("third"))
	inOrder(t, lastRequest(b), "first", "one", "third")
}
