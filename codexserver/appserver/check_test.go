package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// checked is what command/exec was sent.
type checked struct {
	Command            []string
	Env                map[string]*string
	SandboxPolicy      struct{ Type string }
	DisableOutputCap   bool
	StreamStdoutStderr bool
	ProcessID          string
}

// executes makes the fake run commands: each answer is an exit code with its output to standard error, streamed if that is
// asked for.
func (f *fake) executes(answers ...string) *[]checked {
	sent := &[]checked{}
	f.on["command/exec"] = func(r *run, req *jsonrpc.Request) (any, error) {
		var p checked
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		answer := answers[len(*sent)]
		*sent = append(*sent, p)
		code, output := 0, ""
		if answer != "" {
			code, output = 1, answer
		}
		if p.StreamStdoutStderr {
			r.notify("command/exec/outputDelta", `{"processId":%q,"stream":"stderr","deltaBase64":%s,"capReached":false}`, p.ProcessID, must.Get(json.Marshal([]byte(output)))(r.t))
			output = ""
		}
		return map[string]any{"exitCode": code, "stdout": "", "stderr": output}, nil
	}
	return sent
}

// TestCheckIsAskedAbout runs checks on systems with a sandbox of Codex's, and without one.
func TestCheckIsAskedAbout(t *testing.T) {
	const on, full, write = `{"windows":{"sandbox":"elevated"}}`, protocol.SandboxDangerFullAccess, protocol.SandboxWorkspaceWrite
	const inside, readOnly, leaves, none, again = "the check of the turn; if approved, it runs in the sandbox", "the check of the turn; if approved, it runs in the read-only sandbox",
		"LEAVES the check of the turn: there is no sandbox on this system", "NONE the check of the turn", "LEAVES the sandbox stopped the check of the turn; retry without sandbox?"
	stopped := "touch: cannot touch '" + filepath.Join(t.TempDir(), "x") + "': Read-only file system\n"
	for name, tt := range map[string]struct {
		system, config string
		policy         protocol.ApprovalPolicy
		mode           protocol.SandboxMode
		line           string
		answers        []string // of command/exec
		decide         elicit.Decision
		asked, ran     []string // the questions, and the sandboxes
		why            string
	}{
		"linux, never":                  {"linux", "", "never", write, "make", []string{""}, "", nil, []string{"workspaceWrite"}, ""},
		"linux, on-request":             {"linux", "", "on-request", write, "make", []string{""}, "", nil, []string{"workspaceWrite"}, ""},
		"linux, untrusted":              {"linux", "", "untrusted", write, "make", []string{""}, elicit.Approved, []string{inside}, []string{"workspaceWrite"}, ""},
		"linux, untrusted, safe":        {"linux", "", "untrusted", write, "pwd", []string{""}, "", nil, []string{"readOnly"}, ""},
		"linux, untrusted, full":        {"linux", "", "untrusted", full, "make", []string{""}, elicit.Approved, []string{none}, []string{"dangerFullAccess"}, ""},
		"linux, full":                   {"linux", "", "on-request", full, "make", []string{stopped}, "", nil, []string{"dangerFullAccess"}, ""},
		"a rule asks":                   {"linux", "", "never", write, "ask me", []string{""}, elicit.Approved, []string{inside}, []string{"workspaceWrite"}, ""},
		"a rule asks, safe":             {"linux", "", "untrusted", write, "ask me", []string{""}, elicit.Denied, []string{inside}, nil, "was not run"},
		"stopped, never":                {"linux", "", "never", write, "make", []string{stopped}, "", nil, []string{"workspaceWrite"}, "the sandbox stopped it"},
		"stopped, on-request":           {"linux", "", "on-request", write, "make", []string{stopped, ""}, elicit.Approved, []string{again}, []string{"workspaceWrite", "dangerFullAccess"}, ""},
		"stopped, and fails outside":    {"linux", "", "on-request", write, "make", []string{stopped, stopped}, elicit.Approved, []string{again}, []string{"workspaceWrite", "dangerFullAccess"}, ""},
		"stopped, declined":             {"linux", "", "on-request", write, "make", []string{stopped}, elicit.Denied, []string{again}, []string{"workspaceWrite"}, "the sandbox stopped it"},
		"stopped, unknown decision":     {"linux", "", "on-request", write, "make", []string{stopped}, "perhaps", []string{again}, []string{"workspaceWrite"}, "the sandbox stopped it"},
		"stopped, untrusted":            {"linux", "", "untrusted", write, "make", []string{stopped, ""}, elicit.Approved, []string{inside, again}, []string{"workspaceWrite", "dangerFullAccess"}, ""},
		"stopped, safe":                 {"linux", "", "untrusted", write, "pwd", []string{stopped}, elicit.Denied, []string{again}, []string{"readOnly"}, "the sandbox stopped it"},
		"fails":                         {"linux", "", "on-request", write, "make", []string{"FAIL\n"}, "", nil, []string{"workspaceWrite"}, ""},
		"windows, never":                {"windows", "", "never", write, "make", nil, "", nil, nil, "there is no sandbox on this system"},
		"windows, on-request":           {"windows", "", "on-request", write, "make", []string{"FAIL\n"}, elicit.Approved, []string{leaves}, []string{"dangerFullAccess"}, ""},
		"windows, declined":             {"windows", "", "on-request", write, "make", nil, elicit.Denied, []string{leaves}, nil, "was not run"},
		"windows, read-only":            {"windows", "", "on-request", protocol.SandboxReadOnly, "make", []string{""}, elicit.Approved, []string{leaves}, []string{"dangerFullAccess"}, ""},
		"windows, untrusted":            {"windows", "", "untrusted", write, "make", []string{""}, elicit.Approved, []string{"LEAVES the check of the turn"}, []string{"dangerFullAccess"}, ""},
		"windows, untrusted, safe":      {"windows", "", "untrusted", write, "pwd", []string{""}, elicit.Approved, []string{leaves}, []string{"dangerFullAccess"}, ""},
		"windows, full":                 {"windows", "", "never", full, "make", []string{"FAIL\n"}, "", nil, []string{"dangerFullAccess"}, ""},
		"windows with a sandbox":        {"windows", on, "never", write, "make", []string{"FAIL\n"}, "", nil, []string{"workspaceWrite"}, ""},
		"windows with an unknown word":  {"windows", `{"windows":{"sandbox":"soft"}}`, "never", write, "make", nil, "", nil, nil, "there is no sandbox on this system"},
		"windows, safe, with a sandbox": {"windows", on, "untrusted", write, "pwd", []string{""}, "", nil, []string{"readOnly"}, ""},
		"finer rules":                   {"linux", "", `{"granular":{}}`, write, "make", []string{""}, elicit.Approved, []string{inside}, []string{"workspaceWrite"}, ""},
		"a read-only question":          {"linux", "", "untrusted", protocol.SandboxReadOnly, "make", []string{""}, elicit.Approved, []string{readOnly}, []string{"readOnly"}, ""},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			if tt.config != "" {
				f.config = json.RawMessage(tt.config)
			}
			f.cwd = t.TempDir()
			sent := f.executes(tt.answers...)
			var asked []string
			h := &recorder{exec: func(_ context.Context, q approval.Command) elicit.Outcome {
				words := q.Reason
				switch {
				case q.LeavesSandbox:
					words = "LEAVES " + words
				case q.NoSandbox:
					words = "NONE " + words
				}
				if asked = append(asked, words); !q.Once || !q.FromEngine || q.CallID != "id" || q.Confinable == (q.LeavesSandbox || q.NoSandbox) {
					t.Errorf("asked %+v", q)
				}
				return elicit.Outcome{Decision: tt.decide}
			}}
			e := f.engine(appserver.Options{Ask: [][]string{{"ask"}}})
			e.RunsOn(tt.system)
			conv := must.Get(e.Start(t.Context(), protocol.Config{Cwd: f.cwd, ApprovalPolicy: tt.policy, Sandbox: tt.mode}, h))(t)
			why, err := conv.(engine.Checker).Check(t.Context(), engine.Line{ID: "id", Text: tt.line, Limit: time.Minute})
			must.OK(t, err)
			if !strings.Contains(why, tt.why) || tt.why == "" && why != "" {
				t.Errorf("why %q", why)
			}
			must.Equal(t, "asked", tt.asked, asked)
			var ran []string
			for i, p := range *sent {
				ran = append(ran, p.SandboxPolicy.Type)
				if streams := tt.system != "windows"; p.DisableOutputCap != streams || p.StreamStdoutStderr != streams {
					t.Errorf("sent %+v", p)
				}
				if end, _ := h.wait(t, "exec_command_end").(protocol.ExecCommandEnd); i == 0 && end.Stderr != tt.answers[0] {
					t.Errorf("the check printed %q", end.Stderr)
				}
			}
			must.Equal(t, "ran", tt.ran, ran)
		})
	}
}

// TestSetUpIsAskedAbout checks that questions say of a set-up that it is one, before it runs and after the sandbox stopped it.
func TestSetUpIsAskedAbout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.cwd = t.TempDir()
		f.executes("touch: cannot touch '"+filepath.Join(t.TempDir(), "x")+"': Read-only file system\n", "")
		var asked []string
		h := &recorder{exec: func(_ context.Context, q approval.Command) elicit.Outcome {
			asked = append(asked, q.Reason)
			return elicit.Outcome{Decision: elicit.Approved}
		}}
		conv := must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Cwd: f.cwd, ApprovalPolicy: "untrusted", Sandbox: "workspace-write"}, h))(t)
		l := engine.Line{ID: "id", Text: "npm ci", Limit: time.Minute, SetUp: true}
		must.Equal(t, "why", "", must.Get(conv.(engine.Checker).Check(t.Context(), l))(t))
		must.Equal(t, "asked", []string{
			"the set-up of the worktree; if approved, it runs in the sandbox", "the sandbox stopped the set-up of the worktree; retry without sandbox?",
		}, asked)
	})
}

// TestCheckAborts ends the turn with the answer to a check's question.
func TestCheckAborts(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.cwd = t.TempDir()
		sent := f.executes()
		conv := must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Cwd: f.cwd, ApprovalPolicy: "untrusted", Sandbox: "workspace-write"}, decide(elicit.Abort)))(t)
		if _, err := conv.(engine.Checker).Check(t.Context(), engine.Line{ID: "id", Text: "make", Limit: time.Minute}); err == nil || len(*sent) > 0 {
			t.Errorf("error %v, %d ran", err, len(*sent))
		}
	})
}

// TestCheckIsLetOutByARule has a rule let a check leave the sandbox, which it may only as a plain command of a program that no
// command can write.
func TestCheckIsLetOutByARule(t *testing.T) {
	for line, want := range map[string]string{"true": "", "true >x": "more than plain commands", "./planted": "a rule lets it run outside the sandbox, but"} {
		inBubble(t, line, func(t *testing.T, f *fake) {
			f.cwd = t.TempDir()
			must.OK(t, testenv.WriteProgram(filepath.Join(f.cwd, "planted"), []byte("#!/bin/sh\n")))
			sent := f.executes("touch: cannot touch '"+filepath.Join(f.cwd, "x")+"': Read-only file system\n", "")
			h := &recorder{exec: func(context.Context, approval.Command) elicit.Outcome {
				return elicit.Outcome{Decision: elicit.Approved, Ruled: true}
			}}
			conv := must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Cwd: f.cwd, ApprovalPolicy: "on-request", Sandbox: "workspace-write"}, h))(t)
			why := must.Get(conv.(engine.Checker).Check(t.Context(), engine.Line{ID: "id", Text: line, Limit: time.Minute}))(t)
			if want != "" && (!strings.Contains(why, "the sandbox stopped it") || len(*sent) != 1) || want == "" && (why != "" || len(*sent) != 2) {
				t.Errorf("why %q, %d ran", why, len(*sent))
			}
			told := ""
			for _, e := range h.all() {
				if m, is := e.(protocol.BackgroundEvent); is && m.Refused != nil {
					told = m.Refused.Reason
				}
			}
			if !strings.Contains(told, want) || want == "" && told != "" {
				t.Errorf("refused: %q", told)
			}
		})
	}
}

// TestCheckEnvironmentOnTheBridge compares what a check is sent with the policy of the conversation's commands.
func TestCheckEnvironmentOnTheBridge(t *testing.T) {
	for _, name := range servertest.KeyVariables {
		t.Setenv(name, "sk-"+name)
	}
	t.Setenv("OWN_ONLY", "own")
	t.Setenv("A_TOKEN", "token")
	const providers = `"model_providers":{"a":{"env_key":"FIRST_CRED","env_http_headers":{"x":"FIRST_HEADER"}},"b":{"env_key":"SECOND_CRED","env_http_headers":{"x":"SECOND_HEADER"}}},
		"mcp_servers":{"s":{"url":"http://x","bearer_token_env_var":"SERVER_CRED","env_http_headers":{"y":"SERVER_HEADER"}}}`
	client := &engine.Origin{Folder: "/", Environ: []string{"CLIENT_ONLY=client", "OWN_ONLY=the client's", "OPENAI_API_KEY=sk-client", "B_TOKEN=token"}}
	for name, tt := range map[string]struct {
		origin *engine.Origin
		policy string
		want   map[string]string // of the names below
	}{
		"own":              {nil, `{"exclude":["EXCLUDED*"]}`, map[string]string{"OWN_ONLY": "own", "A_TOKEN": "token"}},
		"own, strict":      {nil, `{"exclude":["EXCLUDED*"],"ignore_default_excludes":false}`, map[string]string{"OWN_ONLY": "own"}},
		"own, and set":     {nil, `{"exclude":["EXCLUDED*"],"set":{"SET":"s"},"include_only":["OWN*","SET"]}`, map[string]string{"OWN_ONLY": "own", "SET": "s"}},
		"nothing":          {nil, `{"inherit":"none"}`, map[string]string{}},
		"set and left out": {nil, `{"inherit":"none","set":{"SET":"s"},"include_only":["OTHER"]}`, map[string]string{}},
		"a client's":       {client, `{"exclude":["EXCLUDED*"]}`, map[string]string{"OWN_ONLY": "the client's", "CLIENT_ONLY": "client"}},
		"a client's, all":  {client, `{"exclude":["EXCLUDED*"],"ignore_default_excludes":true}`, map[string]string{"OWN_ONLY": "the client's", "CLIENT_ONLY": "client", "B_TOKEN": "token"}},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.config, f.cwd = json.RawMessage(`{"shell_environment_policy":`+tt.policy+`,`+providers+`}`), t.TempDir()
			sent := f.executes("")
			ctx := t.Context()
			if tt.origin != nil {
				ctx = engine.WithOrigin(ctx, *tt.origin)
			}
			conv := must.Get(f.engine(appserver.Options{}).Start(ctx, protocol.Config{Cwd: f.cwd, ApprovalPolicy: "never", Sandbox: "workspace-write"}, &recorder{}))(t)
			must.Equal(t, "why", "", must.Get(conv.(engine.Checker).Check(t.Context(), engine.Line{ID: "id", Text: "true", Limit: time.Minute}))(t))
			got, env := map[string]string{}, (*sent)[0].Env
			for _, entry := range os.Environ() {
				if name, _, _ := strings.Cut(entry, "="); name != "" && !slices.Contains(slices.Collect(maps.Keys(env)), name) && !strings.HasPrefix(name, "ANTHROPIC") {
					t.Errorf("%s of the app-server is left as it is", name)
				}
			}
			for _, name := range slices.Concat(servertest.KeyVariables, []string{"OWN_ONLY", "CLIENT_ONLY", "SET", "A_TOKEN", "B_TOKEN"}) {
				if value := env[name]; value != nil {
					got[name] = *value
				}
			}
			must.Equal(t, fmt.Sprint("environment of ", name), tt.want, got)
		})
	}
}
