package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// tried are the sandboxes in which the fake was asked to run true. It answers with reply.
func (f *fake) tried(reply any, err error) *[]string {
	sent := new([]string)
	f.on["command/exec"] = func(_ *run, req *jsonrpc.Request) (any, error) {
		var p struct {
			Command       []string
			SandboxPolicy struct {
				Type          string
				WritableRoots []string
			}
		}
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		*sent = append(*sent, strings.Join(slices.Concat(p.Command, []string{p.SandboxPolicy.Type}, p.SandboxPolicy.WritableRoots), " "))
		return reply, err
	}
	return sent
}

// TestTrial runs two turns of two conversations in an app-server whose sandbox works, or does not.
func TestTrial(t *testing.T) {
	const why = "bwrap: No permissions to create a new namespace"
	exit := func(code int, stderr string) any {
		return map[string]any{"exitCode": code, "stdout": "", "stderr": stderr}
	}
	const said, never = "Codex's sandbox runs no command on this system: " + why + "; it needs user namespaces: ", "nothing can run under the approval policy never: " + "Codex's sandbox"
	const read, write, full = protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	for name, tt := range map[string]struct {
		system string
		policy protocol.ApprovalPolicy
		mode   protocol.SandboxMode
		review bool
		reply  any
		err    error
		tried  []string
		says   string // in a remark of the first turn of each conversation
		fails  string
	}{
		"works":                    {policy: "never", mode: write, reply: exit(0, ""), tried: []string{"true workspaceWrite /work"}},
		"works, read-only":         {policy: "never", mode: read, reply: exit(0, ""), tried: []string{"true readOnly"}},
		"never":                    {policy: "never", mode: write, reply: exit(1, why+"\n"), tried: []string{"true workspaceWrite /work"}, fails: never},
		"never, read-only":         {policy: "never", mode: read, reply: exit(1, why), tried: []string{"true readOnly"}, fails: never},
		"never, full access":       {policy: "never", mode: full, reply: exit(1, why)},
		"never, a review":          {policy: "never", mode: read, review: true, reply: exit(1, why), tried: []string{"true readOnly"}, says: said},
		"on-request":               {policy: "on-request", mode: write, reply: exit(1, why), tried: []string{"true workspaceWrite /work"}, says: said},
		"untrusted":                {policy: "untrusted", mode: read, reply: exit(1, why), tried: []string{"true readOnly"}, says: said},
		"finer rules":              {policy: `{"granular":{}}`, mode: read, reply: exit(1, why), tried: []string{"true readOnly"}, says: said},
		"without a word":           {policy: "never", mode: read, reply: exit(101, " "), tried: []string{"true readOnly"}, fails: "`true` ended with the exit code 101"},
		"another system":           {system: "darwin", policy: "never", mode: read, reply: exit(71, "sandbox_apply: Operation not permitted"), tried: []string{"true readOnly"}, fails: "sandbox_apply: Operation not permitted; use --engine native"},
		"no such program":          {policy: "never", mode: read, reply: exit(1, "bwrap: execvp true: No such file or directory"), tried: []string{"true readOnly"}},
		"too slow":                 {policy: "never", mode: read, reply: exit(124, ""), tried: []string{"true readOnly"}},
		"an error of the request":  {policy: "never", mode: read, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "unknown variant"), tried: []string{"true readOnly"}},
		"Windows":                  {system: "windows", policy: "never", mode: read, reply: exit(1, why)},
		"secrets are not repeated": {policy: "never", mode: read, reply: exit(1, "the key sk-abcdefghij"), tried: []string{"true readOnly"}, fails: "the key [redacted]"},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			tried := f.tried(tt.reply, tt.err)
			f.turn, f.policy = answered, `"never"`
			e := f.engine(appserver.Options{})
			system := tt.system
			if system == "" {
				system = "linux"
			}
			e.RunsOn(system)
			for range 2 {
				h := &recorder{}
				conv := must.Get(e.Start(t.Context(), protocol.Config{ApprovalPolicy: tt.policy, Sandbox: tt.mode, ReadOnly: tt.review}, h))(t)
				for n := range 2 {
					err := conv.Turn(t.Context(), text("go"))
					if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
						t.Errorf("turn %d: %v", n, err)
					}
				}
				var remarks []string
				for _, m := range h.all() {
					if m, is := m.(protocol.BackgroundEvent); is && m.Remark {
						remarks = append(remarks, m.Message)
					}
				}
				if (len(remarks) == 1) != (tt.says != "") || !strings.HasPrefix(strings.Join(remarks, ""), tt.says) {
					t.Errorf("remarks %q", remarks)
				}
			}
			must.Equal(t, "tried", tt.tried, *tried)
			if asked := slices.Contains(f.methods(), "turn/start"); asked == (tt.fails != "") {
				t.Errorf("Codex was asked to begin a turn: %t", asked)
			}
		})
	}
}

// TestTrialIsOfAMode tries each mode once, and again in a new app-server.
func TestTrialIsOfAMode(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		tried := f.tried(map[string]any{"exitCode": 0}, nil)
		f.turn = answered
		e := f.engine(appserver.Options{})
		e.RunsOn("linux")
		for range 2 {
			for _, mode := range []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxReadOnly, protocol.SandboxDangerFullAccess} {
				conv := must.Get(e.Start(t.Context(), protocol.Config{Sandbox: mode}, &recorder{}))(t)
				must.OK(t, conv.Turn(t.Context(), text("go")))
			}
			f.runs[len(f.runs)-1].cancel()
			synctest.Wait()
		}
		must.Equal(t, "tried", []string{"true readOnly", "true workspaceWrite /work", "true readOnly", "true workspaceWrite /work"}, *tried)
	})
}

// TestTrialIsInterrupted has a trial that does not end: a turn that waits for it can be interrupted, and one that does not wait has
// then ended. It has a limit.
func TestTrialIsInterrupted(t *testing.T) {
	for policy, waits := range map[protocol.ApprovalPolicy]bool{protocol.ApprovalNever: true, protocol.ApprovalOnRequest: false} {
		inBubble(t, string(policy), func(t *testing.T, f *fake) {
			f.turn = answered
			f.on["command/exec"] = never
			e := f.engine(appserver.Options{})
			e.RunsOn("linux")
			conv := must.Get(e.Start(t.Context(), protocol.Config{ApprovalPolicy: policy}, &recorder{}))(t)
			ctx, interrupt := context.WithCancel(t.Context())
			done := begin(ctx, conv, text("go"))
			synctest.Wait()
			must.Equal(t, "the turn has begun", !waits, slices.Contains(f.methods(), "turn/start"))
			interrupt()
			begun := time.Now()
			if err := <-done; errors.As(err, new(*engine.AbortError)) != waits || err != nil != waits || time.Since(begun) > time.Second {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
			must.OK(t, conv.Turn(t.Context(), text("again")))
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("the trial lasted %v", took)
			}
		})
	}
}
