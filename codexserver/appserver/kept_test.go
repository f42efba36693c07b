package appserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// keptFile is the file of what calls chose for the fake's thread.
func keptFile(home string) string {
	return filepath.Join(home, "codex-mcp", "threads", threadID+".json")
}

// TestChosenStaysChosen begins conversations whose server ends before their turn, so that the rollout has no policies.
// Another server resumes them: what the calls chose still holds, and nothing is looser than that, than the
// configuration, or than the last turn. Another program's conversations have the last turn alone.
func TestChosenStaysChosen(t *testing.T) {
	type keys = map[string]any
	const noTurn = `{"type":"event_msg","payload":{"type":"x"}}`
	const untrusted, onRequest, never = protocol.ApprovalUntrusted, protocol.ApprovalOnRequest, protocol.ApprovalNever
	const reading, writing, full = protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	writeAll := keys{"sandbox_mode": "workspace-write", "sandbox_workspace_write": keys{"writable_roots": []string{"/a", "/b"}, "network_access": true}}
	configured := `{"networkAccess":true,"type":"workspaceWrite","writableRoots":["/a","/b"]} "on-request"`
	wide := keys{"sandbox_mode": "danger-full-access", "approval_policy": "never"}
	table := func(text string) protocol.Config {
		return protocol.Config{Overrides: raw("sandbox_workspace_write", text)}
	}
	for _, tt := range []struct {
		name   string
		config keys
		call   protocol.Config // that begins
		had    string          // the last turn_context; default none
		again  protocol.Config // that resumes, and ends before its turn, too
		alone  bool            // another program's
		keep   bool
		want   string
	}{
		{name: "nothing", config: writeAll, want: configured},
		{name: "untrusted", config: writeAll, call: protocol.Config{ApprovalPolicy: untrusted}, want: `{"networkAccess":true,"type":"workspaceWrite","writableRoots":["/a","/b"]} "untrusted"`},
		{name: "untrusted in the call's config", config: wide, call: protocol.Config{Overrides: raw("approval_policy", `"untrusted"`)}, want: all + ` "untrusted"`},
		{name: "read-only", config: writeAll, call: protocol.Config{Sandbox: reading}, want: reads + ` "on-request"`},
		{name: "within full access", config: wide, call: protocol.Config{Sandbox: writing}, want: writes + ` "never"`},
		{name: "fewer roots", config: writeAll, call: table(`{"writable_roots":["/b"]}`), want: `{"networkAccess":true,"type":"workspaceWrite","writableRoots":["/b"]} "on-request"`},
		{name: "no network", config: writeAll, call: table(`{"network_access":false}`), want: `{"networkAccess":false,"type":"workspaceWrite","writableRoots":["/a","/b"]} "on-request"`},
		{name: "no temporary folders", config: writeAll, call: table(`{"exclude_slash_tmp":true,"exclude_tmpdir_env_var":true}`), want: `{"excludeSlashTmp":true,"excludeTmpdirEnvVar":true,"networkAccess":true,"type":"workspaceWrite","writableRoots":["/a","/b"]} "on-request"`},
		{name: "more is not kept", config: keys{}, call: protocol.Config{Sandbox: full, ApprovalPolicy: never}, want: reads + ` "on-request"`},
		{name: "nor if others may keep it", config: keys{}, call: protocol.Config{Sandbox: full, ApprovalPolicy: never}, keep: true, want: reads + ` "on-request"`},
		{name: "a looser policy is not kept", config: keys{"approval_policy": "untrusted"}, call: protocol.Config{ApprovalPolicy: never}, want: reads + ` "untrusted"`},
		{name: "the last turn had less", config: wide, call: protocol.Config{ApprovalPolicy: never, Sandbox: writing}, had: turnContext("read-only", "", "untrusted"), want: reads + ` "untrusted"`},
		{name: "the last turn had more", config: wide, call: protocol.Config{ApprovalPolicy: untrusted, Sandbox: reading}, had: turnContext("danger-full-access", "", "never"), want: reads + ` "untrusted"`},
		{name: "the last turn had more, approved", config: keys{}, call: protocol.Config{ApprovalPolicy: untrusted}, had: turnContext("danger-full-access", "", "never"), keep: true, want: reads + ` "untrusted"`},
		{name: "the last turn had what was approved", config: keys{}, call: protocol.Config{Sandbox: full}, had: turnContext("danger-full-access", "", "never"), keep: true, want: all + ` "never"`},
		{name: "another program's turn had more", config: keys{}, alone: true, had: turnContext("danger-full-access", "", "never"), want: reads + ` "on-request"`},
		{name: "another program's turn had more, approved", config: keys{}, alone: true, had: turnContext("danger-full-access", "", "never"), keep: true, want: all + ` "never"`},
		{name: "another program's turn had more folders", config: writeAll, alone: true, had: turnContext("workspace-write", `,"writable_roots":["/b","/c"]`, "on-request"), want: `{"networkAccess":false,"type":"workspaceWrite","writableRoots":["/b"]} "on-request"`},
		{name: "another program's turn had more folders, approved", config: writeAll, alone: true, had: turnContext("workspace-write", `,"writable_roots":["/c"],"exclude_slash_tmp":true`, "never"), keep: true,
			want: `{"excludeSlashTmp":true,"networkAccess":false,"type":"workspaceWrite","writableRoots":["/c"]} "never"`},
		{name: "another program's turn had less", config: wide, alone: true, had: turnContext("workspace-write", `,"network_access":true`, "untrusted"), want: `{"networkAccess":true,"type":"workspaceWrite"} "untrusted"`},
		{name: "a later call chooses less", config: wide, had: turnContext("danger-full-access", "", "never"), again: protocol.Config{ApprovalPolicy: untrusted, Sandbox: reading}, want: reads + ` "untrusted"`},
		{name: "a later call chooses one of them", config: wide, call: protocol.Config{Sandbox: reading}, again: protocol.Config{ApprovalPolicy: untrusted}, want: reads + ` "untrusted"`},
		{name: "a later call chooses more", config: wide, call: protocol.Config{ApprovalPolicy: untrusted, Sandbox: reading}, again: protocol.Config{ApprovalPolicy: onRequest, Sandbox: writing}, want: writes + ` "never"`},
		{name: "a later call chooses more than the last turn", config: wide, call: protocol.Config{Sandbox: reading}, had: turnContext("read-only", "", "untrusted"), again: protocol.Config{Sandbox: writing}, want: reads + ` "untrusted"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := writeRollout(t, noTurn)
			if tt.had != "" {
				path = writeRollout(t, tt.had)
			}
			cwd := t.TempDir()
			bubble(t, func(t *testing.T, f *fake) {
				f.config, f.rollout, f.cwd = tt.config, path, cwd
				tt.call.Cwd, tt.again.Cwd = cwd, cwd
				if !tt.alone {
					must.Get(f.engine(appserver.Options{}).Start(t.Context(), tt.call, &recorder{}))(t)
				}
				if tt.again.ApprovalPolicy != "" || tt.again.Sandbox != "" {
					must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(path), tt.again, &recorder{}))(t)
				}
				got, err := limitsOf(t, f, func(e *appserver.Engine, h engine.Host) (engine.Conversation, error) {
					return e.Resume(t.Context(), savedAt(path), protocol.Config{Cwd: cwd, Keep: func(protocol.Access) bool { return tt.keep }}, h)
				})
				must.OK(t, err)
				must.Equal(t, "limits of the turn", tt.want, got)
				if info, err := os.Stat(keptFile(f.home)); (err != nil) != tt.alone || err == nil && info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
					t.Errorf("the file: %v, %v", info, err)
				}
			})
		})
	}
}

// TestChosenSearch resumes a conversation whose call switched the web search off or on. Off stays. On is a wish: it needs an
// approval as it did before, and is none where the configuration has disabled the search since.
func TestChosenSearch(t *testing.T) {
	for name, tt := range map[string]struct {
		call   *bool
		keep   bool
		config string // of later
		want   string
	}{
		"off": {new(false), true, "", "disabled"}, "on": {new(true), false, "", ""}, "on, approved": {new(true), true, "", "live"},
		"on, disabled since": {new(true), true, "disabled", ""}, "on, configured since": {new(true), false, "cached", ""}, "not said": {nil, true, "", ""},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.rollout = writeRollout(t)
			must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Choices: protocol.Choices{WebSearch: tt.call}}, &recorder{}))(t)
			if tt.config != "" {
				f.config = map[string]any{"web_search": tt.config}
			}
			sent := f.keep("thread/resume")
			again := protocol.Config{Keep: func(protocol.Access) bool { return tt.keep }}
			must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(f.rollout), again, &recorder{}))(t)
			if got := regexp.MustCompile(`"web_search":"([a-z]*)"`).FindStringSubmatch((*sent)[0] + `"web_search":""`)[1]; got != tt.want {
				t.Errorf("sent %s", *sent)
			}
		})
	}
}

// TestChoicesAreKept resumes a conversation whose server ended before its first turn, and then one whose turn changed the
// effort. What the calls chose still holds, but for what the call that resumes it chooses.
func TestChoicesAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.rollout, f.turn = writeRollout(t), answered
		chosen := protocol.Choices{BaseInstructions: new("BASE"), DeveloperInstructions: new("EXPERT"), Effort: "low"}
		must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Choices: chosen, Overrides: raw("compact_prompt", `"SUM"`)}, &recorder{}))(t)
		sent := f.keep("thread/resume")
		conv := must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(f.rollout), protocol.Config{}, &recorder{}))(t)
		in := text("go")
		in.Effort = "high"
		must.OK(t, conv.Turn(t.Context(), in))
		again := protocol.Config{Choices: protocol.Choices{DeveloperInstructions: new("OTHER")}}
		must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(f.rollout), again, &recorder{}))(t)
		for i, parts := range [][]string{
			{`"baseInstructions":"BASE"`, `"developerInstructions":"EXPERT"`, `"compact_prompt":"SUM"`, `"model_reasoning_effort":"low"`},
			{`"baseInstructions":"BASE"`, `"developerInstructions":"OTHER"`, `"compact_prompt":"SUM"`, `"model_reasoning_effort":"high"`},
		} {
			for _, part := range parts {
				if !strings.Contains((*sent)[i], part) {
					t.Errorf("resume %d lacks %s: %s", i, part, (*sent)[i])
				}
			}
		}
	})
}

// TestChosenCannotBeRead resumes a conversation whose file is not one that a server wrote. Nothing starts.
func TestChosenCannotBeRead(t *testing.T) {
	const fine = `"approval_policy":"untrusted","sandbox_policy":{"mode":"read-only"}`
	for name, tt := range map[string]struct{ text, want string }{
		"fine":               {fmt.Sprintf(`{"id":%q,%s}`, threadID, fine), ""},
		"fine, with members": {fmt.Sprintf(`{"id":%q,"of_tomorrow":{},%s}`, threadID, fine), ""},
		"empty":              {"", "EOF"},
		"cut":                {fmt.Sprintf(`{"id":%q,%s`, threadID, fine), "EOF"},
		"of another":         {fmt.Sprintf(`{"id":%q,%s}`, agentID, fine), "member id: "},
		"no sandbox":         {fmt.Sprintf(`{"id":%q,"approval_policy":"never"}`, threadID), "member sandbox_policy: the mode "},
		"an unknown sandbox": {fmt.Sprintf(`{"id":%q,"approval_policy":"never","sandbox_policy":{"mode":"none"}}`, threadID), "member sandbox_policy: the mode "},
		"an unknown policy":  {fmt.Sprintf(`{"id":%q,"approval_policy":"sometimes","sandbox_policy":{"mode":"read-only"}}`, threadID), "member approval_policy: "},
		"too large":          {strings.Repeat(" ", 1<<20+1), "more than 1048576 bytes"},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.rollout = writeRollout(t)
			must.OK(t, os.MkdirAll(filepath.Dir(keptFile(f.home)), 0o700))
			writeFile(t, keptFile(f.home), tt.text)
			_, err := f.engine(appserver.Options{}).Resume(t.Context(), savedAt(f.rollout), protocol.Config{}, &recorder{})
			resumed := strings.Contains(strings.Join(f.methods(), " "), "thread/resume")
			if tt.want == "" {
				must.OK(t, err)
				return
			}
			for _, part := range []string{"nothing was started: ", keptFile(f.home), tt.want, "this choice does not count"} {
				if err == nil || !strings.Contains(err.Error(), part) || resumed {
					t.Errorf("%v, want %q", err, part)
				}
			}
		})
	}
}

// TestChosenCannotBeKept begins a conversation where its choice can be written neither to the home nor, in another one, to
// the store. The client does not get it.
func TestChosenCannotBeKept(t *testing.T) {
	for _, stored := range []bool{false, true} {
		bubble(t, func(t *testing.T, f *fake) {
			o, want := appserver.Options{}, filepath.Join(f.home, "codex-mcp")
			if stored {
				m, d := workertest.Mirror(t, f.home, t.TempDir(), 1)
				d.Fail = func(string) (error, bool) { return os.ErrPermission, false }
				o, want = appserver.Options{Store: m}, keptFile(f.home)
			} else {
				writeFile(t, want, "")
			}
			h := &recorder{}
			_, err := f.engine(o).Start(t.Context(), protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, h)
			if err == nil || !strings.Contains(err.Error(), "nothing was started: ") || !strings.Contains(err.Error(), want) || len(h.all()) > 0 {
				t.Errorf("%v, %q", err, h.types())
			}
		})
	}
}

// TestChosenIsInTheStore begins a conversation of a server with a store, which another machine goes on with.
func TestChosenIsInTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		disk := t.TempDir()
		m, _ := workertest.Mirror(t, f.home, disk, 1)
		must.Get(f.engine(appserver.Options{Store: m}).Start(t.Context(), protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, &recorder{}))(t)
		kept := map[string]any{}
		must.OK(t, json.Unmarshal(must.Get(os.ReadFile(keptFile(disk)))(t), &kept))
		must.Equal(t, "policy in the store", "untrusted", kept["approval_policy"])
	})
}
