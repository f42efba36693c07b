package appserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestTurnChoices checks that turn/start has what a call chooses for a turn, and the effort in later turns too.
func TestTurnChoices(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.turn = answered
		sent := f.keep("turn/start")
		conv := start(t, f.engine(appserver.Options{}), &recorder{})
		first := text("go")
		first.Items = append(first.Items, protocol.InputItem{Type: protocol.InputImage, ImageURL: "data:image/png;base64,AAAA"})
		first.Effort, first.OutputSchema = "high", json.RawMessage(`{"type":"object"}`)
		for _, in := range []protocol.TurnInput{first, text("on")} {
			must.OK(t, conv.Turn(t.Context(), in))
		}
		for i, want := range []string{
			`{"threadId":%q,"input":[{"type":"text","text":"go"},{"type":"image","url":"data:image/png;base64,AAAA"},{"type":"text","text":"<output_schema>\nYour last message is only JSON that follows this schema, with nothing around it:\n{\"type\":\"object\"}\n</output_schema>"}],"effort":"high","sandboxPolicy":{"type":"readOnly","networkAccess":false},"approvalPolicy":"on-request"}`,
			`{"threadId":%q,"input":[{"type":"text","text":"on"}],"effort":"high","sandboxPolicy":{"type":"readOnly","networkAccess":false},"approvalPolicy":"on-request"}`,
		} {
			must.Equal(t, fmt.Sprintf("turn %d", i+1), loose(t, fmt.Sprintf(want, threadID)), loose(t, (*sent)[i]))
		}
	})
}

// TestThreadChoices checks that thread/start has what a call chooses for a conversation, and
// thread/resume in a new app-server too.
func TestThreadChoices(t *testing.T) {
	base := t.TempDir()
	folder := func(name string) string {
		boxtest.Lay(t, base, name+"/")
		return filepath.Join(base, name)
	}
	work, a, b, named, git, home := folder("work"), folder("a"), folder("b"), folder("named"), folder("repo/.git/hooks"), folder("home")
	inner, deep, within := folder("work/inner"), folder("a/deep"), folder("home/sessions")
	sockets := folder("home/codex-mcp/run")
	link := filepath.Join(base, "link")
	must.OK(t, os.Symlink(b, link))
	const ws = protocol.SandboxWorkspaceWrite
	bounded := map[string]any{"exclude_slash_tmp": true, "exclude_tmpdir_env_var": true, "writable_roots": []string{named}}
	roots := func(list ...string) string {
		text := must.Get(json.Marshal(list))(t)
		return `{"sandboxPolicy":{"type":"workspaceWrite","networkAccess":false,"excludeSlashTmp":true,"excludeTmpdirEnvVar":true,"writableRoots":` + string(text) + `}}`
	}
	const fault = "argument /config/sandbox_workspace_write/writable_roots: "
	ofCall := func(mode protocol.SandboxMode, roots ...string) protocol.Config {
		text := must.Get(json.Marshal(roots))(t)
		return protocol.Config{Sandbox: mode, FromCall: true, Overrides: raw("sandbox_workspace_write.writable_roots", string(text))}
	}
	around := ofCall(ws, work)
	around.Cwd = inner
	for _, tt := range []struct {
		name string
		file map[string]any // Codex's configuration
		cfg  protocol.Config
		want string // parameters, but for the folder and the sandbox read-only; the sandbox is that of the turn
		fail string
	}{
		{"effort", nil, protocol.Config{Choices: protocol.Choices{Effort: "xhigh"}}, `{"config":{"model_reasoning_effort":"xhigh"}}`, ""},
		{"effort over a key", nil, protocol.Config{Choices: protocol.Choices{Effort: "low"}, Overrides: raw("model_reasoning_effort", `"high"`)}, `{"config":{"model_reasoning_effort":"low"}}`, ""},
		{"web search", nil, protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}}, `{"config":{"web_search":"live"}}`, ""},
		{"no web search", map[string]any{"web_search": "live"}, protocol.Config{Choices: protocol.Choices{WebSearch: new(false)}}, `{"config":{"web_search":"disabled"}}`, ""},
		{"web search as configured", map[string]any{"web_search": "cached"}, protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}}, `{}`, ""},
		{"web search disabled", map[string]any{"web_search": "disabled"}, protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}}, "", `argument /web-search: the configuration has web_search = "disabled"`},
		{"roots", map[string]any{"sandbox_workspace_write": bounded}, ofCall(ws, deep, a, inner, work, named, filepath.Join(base, "none")), roots(a, named), ""},
		{"a link", map[string]any{"sandbox_workspace_write": bounded}, ofCall(ws, link), roots(b), ""},
		{"in another mode", map[string]any{"sandbox_mode": "read-only"}, ofCall("", a), `{}`, ""},
		{"a git folder", nil, ofCall(ws, a, git), "", fault + git + " is read-only for commands: it is a git folder or lies in one"},
		{"the system", nil, ofCall(ws, "/proc/self"), "", fault + "/proc/self is read-only for commands: it belongs to the system's /proc"},
		{"all", nil, ofCall(ws, "/"), "", fault + "/ is read-only for commands: it is the whole file system"},
		{"codex's folder", nil, ofCall(ws, home), "", fault + home + " is read-only for commands: it is or holds"},
		{"in codex's folder", nil, ofCall(ws, within), "", fault + within + " is read-only for commands: it lies in"},
		{"this server's folder", nil, ofCall(ws, sockets), "", fault + sockets + " is read-only for commands: it is or lies in"},
		{"in this server's folder", nil, protocol.Config{Sandbox: ws, Cwd: sockets}, "", "argument /cwd: " + sockets + " is or lies in"},
		{"around the working folder", map[string]any{"sandbox_workspace_write": bounded}, around, "", fault + work + " has " + inner + " in it"},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			f.home, f.turn, f.config, f.cwd = home, answered, tt.file, work
			params, turns := f.keep("thread/start", "thread/resume"), f.keep("turn/start")
			if tt.cfg.Cwd == "" {
				tt.cfg.Cwd = work
			}
			conv, err := f.engine(appserver.Options{}).Start(t.Context(), tt.cfg, &recorder{})
			if tt.fail != "" {
				var fault *engine.ConfigError
				if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.fail) {
					t.Errorf("error %v, want %q", err, tt.fail)
				}
				return
			}
			must.OK(t, err)
			f.runs[0].wire.Close()
			synctest.Wait()
			must.OK(t, conv.Turn(t.Context(), text("in another process")))
			if len(*params) != 2 {
				t.Fatalf("%d threads were loaded", len(*params))
			}
			want := loose(t, tt.want).(map[string]any)
			if sandbox := want["sandboxPolicy"]; sandbox != nil {
				must.Equal(t, "the turn", sandbox, loose(t, (*turns)[0]).(map[string]any)["sandboxPolicy"])
				delete(want, "sandboxPolicy")
			}
			want["cwd"], want["sandbox"] = work, "read-only"
			for i, sent := range *params {
				got := loose(t, withoutExclude(t, sent)).(map[string]any)
				if i == 1 {
					delete(got, "threadId")
					delete(got, "excludeTurns")
				}
				must.Equal(t, fmt.Sprintf("load %d", i+1), want, got)
			}
		})
	}
}

// TestGuardedFiles refuses conversations whose commands could write a guarded file, or what a link in
// Codex's home leads to, which Codex's sandbox does not protect.
func TestGuardedFiles(t *testing.T) {
	top := t.TempDir()
	in := func(path string) string { return filepath.Join(top, path) }
	boxtest.Lay(t, top, "work/deep/", "other/", "logs/", "temp/", "home/codex-mcp.toml -> "+in("work/config.toml"))
	t.Setenv("TMPDIR", in("temp"))
	const apart = `"exclude_slash_tmp":true,"exclude_tmpdir_env_var":true`
	for name, tt := range map[string]struct {
		guarded, config string
		refused         string // the folder
	}{
		"the working folder":       {"work/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{` + apart + `}}`, "work"},
		"below the working folder": {"work/deep/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{` + apart + `}}`, "work"},
		"a missing folder":         {"work/none/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{` + apart + `}}`, "work"},
		"below a root":             {"other/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{"writable_roots":["TOP/other"],` + apart + `}}`, "other"},
		"below $TMPDIR":            {"temp/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{"exclude_slash_tmp":true}}`, "temp"},
		"not below $TMPDIR":        {"temp/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{` + apart + `}}`, ""},
		"elsewhere":                {"logs/log", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{"writable_roots":["TOP/other"],` + apart + `}}`, ""},
		"read-only":                {"work/log", `{}`, ""},
		"a link":                   {"", `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{` + apart + `}}`, "work"},
		"a link, read-only":        {"", `{}`, ""},
		"a link, full access":      {"", `{"sandbox_mode":"danger-full-access"}`, ""},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.cwd = in("work")
			var o appserver.Options
			want := "commands could write in " + in(tt.refused) + ", which holds " + in(tt.guarded)
			if tt.guarded != "" {
				o.Guarded = []string{in(tt.guarded)}
			} else {
				f.home, want = in("home"), "which commands could write"
			}
			e := f.engine(o)
			f.config = json.RawMessage(strings.ReplaceAll(tt.config, "TOP", top))
			_, err := e.Start(t.Context(), protocol.Config{Cwd: in("work")}, &recorder{})
			if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

// TestModelList joins Codex's pages to one list, in which the configured model is the default.
func TestModelList(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		pages := map[string]string{
			`{}`: `{"data":[{"id":"a","model":"a","description":"A","isDefault":true,"defaultReasoningEffort":"low",
				"supportedReasoningEfforts":[{"reasoningEffort":"low","description":"d"},{"reasoningEffort":"max","description":"d"}]}],"nextCursor":"2"}`,
			`{"cursor":"2"}`: `{"data":[{"id":"m","model":"m","description":"M","isDefault":false,"defaultReasoningEffort":"medium",
				"supportedReasoningEfforts":[{"reasoningEffort":"medium","description":"d"}]}],"nextCursor":null}`,
		}
		f.on["model/list"] = func(_ *run, req *jsonrpc.Request) (any, error) {
			return json.RawMessage(pages[string(req.Params)]), nil
		}
		e := f.engine(appserver.Options{})
		list, err := e.Models(t.Context())
		want := &protocol.ModelList{Models: []protocol.Model{
			{Name: "m", Description: "M", Efforts: []protocol.ReasoningEffort{"medium"}, DefaultEffort: "medium", IsDefault: true},
			{Name: "a", Description: "A", Efforts: []protocol.ReasoningEffort{"low", "max"}, DefaultEffort: "low"},
		}}
		if diff := cmp.Diff(want, list); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		f.config = map[string]any{}
		want.Models = []protocol.Model{want.Models[1], want.Models[0]}
		want.Models[0].IsDefault, want.Models[1].IsDefault = true, false
		list, err = e.Models(t.Context())
		if diff := cmp.Diff(want, list); diff != "" || err != nil {
			t.Errorf("nothing configured: %v (-want +got):\n%s", err, diff)
		}
		var many []string
		for i := range 150 {
			many = append(many, fmt.Sprintf(`{"model":"m%d"}`, i))
		}
		pages[`{}`], pages[`{"cursor":"2"}`] = `{"data":[`+strings.Join(many, ",")+`],"nextCursor":"2"}`, `{"data":[`+strings.Join(many, ",")+`],"nextCursor":"2"}`
		if list, err = e.Models(t.Context()); err != nil || len(list.Models) != 200 || len(list.Notes) != 1 {
			t.Errorf("a list without an end: %d models, %q, %v", len(list.Models), list.Notes, err)
		}
		pages[`{}`], pages[`{"cursor":"2"}`] = `{"data":[],"nextCursor":"2"}`, `{"data":[],"nextCursor":"2"}`
		if list, err = e.Models(t.Context()); err != nil || len(list.Models) != 0 {
			t.Errorf("pages without models: %+v, %v", list, err)
		}
		f.on["model/list"] = refusal("not today")
		if _, err = e.Models(t.Context()); err == nil {
			t.Error("a Codex that lists no models is no error")
		}
	})
}
