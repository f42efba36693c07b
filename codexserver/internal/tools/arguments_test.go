package tools_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestRefusedArguments has calls that begin nothing, and whose error names the argument.
func TestRefusedArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Connect(t, codexserver.New(e, nil), nil)
		const sandboxes = `argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"`
		for _, tt := range []struct{ tool, arguments, want string }{
			{"codex", `{}`, "argument /prompt is missing"},
			{"codex", `{"prompt":5}`, "argument /prompt: got number, want string"},
			{"codex", `{"prompt":"p","cwd":[1]}`, "argument /cwd: got array, want string"},
			{"codex", `{"prompt":"p","sandbox":"none"}`, sandboxes},
			{"codex", `{"prompt":"p","sandbox":""}`, sandboxes},
			{"codex", `{"prompt":"p","approval-policy":""}`, `argument /approval-policy: value must be one of "untrusted", "on-failure", "on-request", "never"`},
			{"codex", `{"prompt":"p","web-search":"live"}`, "argument /web-search: got string, want boolean"},
			{"codex-reply", `{"prompt":"p"}`, "argument /threadId is missing"},
			{"codex-reply", `{"prompt":"p","threadId":"a","sessionId":"b"}`, "arguments /threadId, /conversationId and /sessionId name different conversations"},
			{"codex-reply", `{"threadId":"a"}`, "argument /prompt is missing"},
			{"codex-reply", `{"prompt":"p","threadId":"a","outputSchema":{}}`, "unknown argument /outputSchema: did you mean output-schema?"},
			{"codex-reply", `{"prompt":"p","threadId":"a","Effort":"low"}`, "did you mean effort?"},
			{"codex-reply", `{"prompt":"p","threadId":"a","while-running":"steer","effort":"low"}`, "argument /effort: a running turn keeps its own"},
			{"codex-reply", `{"prompt":"p","threadId":"a","while-running":"steer","budget":{"tokens":1}}`, "argument /budget: a running turn keeps its own"},
			{"codex-reply", `{"prompt":"p","threadId":"a","while-running":"steer","output-schema":{}}`, "argument /output-schema: a running turn keeps its own"},
			{"codex", `{"prompt":"p","sandbox_mode":"x"}`, "unknown argument /sandbox_mode: did you mean sandbox?"},
			{"codex", `{"prompt":"p","approval_policy":"x"}`, "did you mean approval-policy?"},
			{"codex", `{"prompt":"p","approvalPolicy":"x"}`, "did you mean approval-policy?"},
			{"codex", `{"prompt":"p","base_instructions":"x"}`, "did you mean base-instructions?"},
			{"codex", `{"prompt":"p","include_plan_tool":"x"}`, "did you mean include-plan-tool?"},
			{"codex", `{"prompt":"p","developer_instructions":"x"}`, "did you mean developer-instructions?"},
			{"codex", `{"prompt":"p","Config":"x"}`, "did you mean config?"},
			{"codex", `{"prompt":"p","promt":"x"}`, "did you mean prompt?"},
			{"codex", `{"prompt":"p","reasoning_effort":"x"}`, "did you mean effort?"},
			{"codex", `{"prompt":"p","model_reasoning_effort":"x"}`, "did you mean "},
			{"codex", `{"prompt":"p","outputSchema":"x"}`, "did you mean output-schema?"},
			{"codex", `{"prompt":"p","schema":"x"}`, "did you mean output-schema?"},
			{"codex", `{"prompt":"p","image":"x"}`, "did you mean images?"},
			{"codex", `{"prompt":"p","web_search":"x"}`, "did you mean web-search?"},
			{"codex", `{"prompt":"p","check":"a\nb"}`, "argument /check: want one line with a command"},
			{"codex", `{"prompt":"p","check":" "}`, "argument /check: want one line with a command"},
			{"codex", `{"prompt":"p","check":"` + strings.Repeat("x", 5000) + `"}`, "argument /check: want one line with a command, of at most 4096 bytes"},
			{"codex-reply", `{"prompt":"p","threadId":"x","check":"x","while-running":"steer"}`, "argument /check: a running turn keeps its own"},
			{"codex", `{"prompt":"p","timeout":"x"}`, "the arguments are approval-policy, attempts, background, base-instructions, budget, check, compact-prompt, config, cwd, developer-instructions, effort, images, include-plan-tool, model, models, output-schema, profile, prompt, sandbox, web-search, worktree (keys of config.toml go into config)"},
			{"codex", `{"prompt":"p","a/b":"x"}`, "unknown argument /a~1b: the arguments are"},
			{"codex", `{"prompt":"p","":"x"}`, "unknown argument /: the arguments are"},
			{"codex", `{"prompt":"p","` + strings.Repeat("é", 1e5) + `":"x"}`, "/" + strings.Repeat("é", 50) + ": the arguments are"},
			{"nope", `{}`, `unknown tool "nope"`},
		} {
			r := use(t, c, tt.tool, tt.arguments, nil)
			if text := r.Content[0].Text; !r.IsError || len(r.Content) != 1 || !strings.Contains(text, tt.want) || tt.tool != "nope" && !strings.HasPrefix(text, tt.tool+": ") {
				t.Errorf("%s %.100s: %.400q, want %s", tt.tool, tt.arguments, text, tt.want)
			}
		}
		if n := len(e.Started()) + len(e.Resumed()); n != 0 {
			t.Errorf("%d conversations were started", n)
		}
	})
}

// TestNullArguments treats null as a missing argument. codex-reply ignores unknown arguments, as Codex's servers did.
func TestNullArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":null,"compact-prompt":null,"sandbox":null,"config":null,"timeout":null}}`)
		if !strings.Contains(got, `"text":"p"`) || lastConfig(e).DeveloperInstructions != nil || lastConfig(e).CompactPrompt != nil {
			t.Errorf("nulls: %s, %+v", got, lastConfig(e))
		}
		got = c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":"be an expert","compact-prompt":""}}`)
		if !strings.Contains(got, `"text":"p"`) || lastConfig(e).DeveloperInstructions == nil || *lastConfig(e).DeveloperInstructions != "be an expert" || lastConfig(e).CompactPrompt == nil {
			t.Errorf("the arguments of 2026: %s, %+v", got, lastConfig(e))
		}
		got = c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"config":{"model":"m"},"timeout":5}}`, servertest.ThreadOf(t, got)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("codex-reply with more than it knows: %s", got)
		}
	})
}

func TestThreadIDForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`))
		for _, name := range []string{"threadId", "conversationId", "sessionId"} {
			got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q",%q:%q}}`, name, "URN:UUID:"+strings.ToUpper(id)))
			if !strings.Contains(got, `"text":"q"`) || servertest.ThreadOf(t, got) != id {
				t.Errorf("%s: %s", name, got)
			}
		}
		got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"conversationId":%q}}`, id, strings.ToUpper(id)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("one id in two forms: %s", got)
		}
		for _, wrong := range []string{"(" + id + ")", id[1:], "urn:" + id} {
			got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q}}`, wrong))
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, wrong) {
				t.Errorf("%s: %s", wrong, got)
			}
		}
		has(t, "an id that is no UUID", c.Ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"q","threadId":"past"}}`), `"text":"q"`)
	})
}

// lastConfig returns the configuration of the conversation that was started last.
func lastConfig(e *servertest.Engine) protocol.Config {
	all := e.Started()
	return all[len(all)-1].Config
}

// says returns an engine whose turns return an answer.
func says(answer string) *servertest.Engine {
	return &servertest.Engine{
		Turn: func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
			host.Emit(protocol.AgentMessage{Message: answer})
			return nil
		},
		ModelList: &protocol.ModelList{
			Models: []protocol.Model{
				{Name: "one", IsDefault: true, Efforts: []protocol.ReasoningEffort{"low", "high"}, DefaultEffort: "low", Profiles: []string{"p"}},
				{Name: "two", Description: strings.Repeat("x", 1000)},
			},
			Notes: []string{"a note"},
		},
	}
}

// lastTurn returns the input of the last turn.
func lastTurn(e *servertest.Engine) protocol.TurnInput {
	all := e.Turns()
	return all[len(all)-1]
}

const png = "\x89PNG\r\n\x1a\n rest"

func pngURL() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png))
}

// TestTurnArguments checks that arguments about the conversation and the turn reach the engine.
func TestTurnArguments(t *testing.T) {
	dir := t.TempDir()
	boxtest.Lay(t, dir, "a.png="+png)
	e := says(`{"a":1}`)
	c := servertest.Dial(t, codexserver.New(e, nil), nil)
	got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p","cwd":%q,"effort":"high","output-schema":{"type":"object"},
		"images":["a.png",%q],"web-search":true,"sandbox":"workspace-write"}}`, dir, pngURL()))
	if !strings.Contains(got, `"output":{"a":1}`) || strings.Contains(got, "isError") {
		t.Errorf("got %s", got)
	}
	want := protocol.Config{Choices: protocol.Choices{Effort: "high", WebSearch: new(true)}}
	if lastConfig(e).Effort != want.Effort || lastConfig(e).WebSearch == nil || !*lastConfig(e).WebSearch {
		t.Errorf("the conversation got %+v", lastConfig(e))
	}
	if lastTurn(e).Effort != "" || string(lastTurn(e).OutputSchema) != `{"type":"object"}` || len(lastTurn(e).Items) != 3 || lastTurn(e).Items[1].ImageURL != pngURL() || lastTurn(e).Items[2].ImageURL != pngURL() {
		t.Errorf("the turn got %+v", lastTurn(e))
	}
	id := servertest.ThreadOf(t, got)
	got = c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"effort":"low","images":["a.png"],"output-schema":{"type":"array"}}}`, id))
	if lastTurn(e).Effort != "low" || len(lastTurn(e).Items) != 2 || string(lastTurn(e).OutputSchema) != `{"type":"array"}` {
		t.Errorf("the second turn got %+v: %s", lastTurn(e), got)
	}
	if !strings.Contains(got, `The answer does not fit output-schema: got object, want array`) || strings.Contains(got, `"output"`) {
		t.Errorf("an answer that does not fit: %s", got)
	}
	if c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"r","threadId":%q,"output-schema":null,"effort":null,"images":null}}`, id)); lastTurn(e).Effort != "" || len(lastTurn(e).Items) != 1 || lastTurn(e).OutputSchema != nil {
		t.Errorf("the third turn got %+v", lastTurn(e))
	}
}

// TestTurnArgumentsRefused checks that a wrong argument starts nothing, and that the error names it and says why.
func TestTurnArgumentsRefused(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	boxtest.Lay(t, outside, "secret.png="+png)
	boxtest.Lay(t, dir, "text.png=a text", "link.png -> "+filepath.Join(outside, "secret.png"), "folder -> "+outside, "large.png", "fit.png="+png, "rest.png="+png)
	for name, size := range map[string]int64{"large.png": 20<<20 + 1, "fit.png": 20 << 20, "rest.png": 12<<20 - 8} {
		must.OK(t, os.Truncate(filepath.Join(dir, name), size))
	}
	e := says("ok")
	c := servertest.Dial(t, codexserver.New(e, nil), nil)
	turn := servertest.ThreadOf(t, c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p","cwd":%q}}`, dir)))
	begun := len(e.Turns())
	for arguments, want := range map[string]string{
		`"effort":"High!"`:    "/effort: want a word",
		`"effort":5`:          "/effort: got number, want string",
		`"output-schema":"x"`: "/output-schema: got string, want object",
		`"output-schema":{"$ref":"http://127.0.0.1:1/x"}`: "/output-schema: ",
		`"output-schema":{"$ref":"file:///etc/passwd"}`:   "/output-schema: ",
		`"output-schema":{"type":"text"}`:                 "/output-schema: at /type: got",
		`"images":"a.png"`:                                "/images/0: ", `"images":"[a.png"`: "/images: got string, want array",
		`"images":[1]`: "/images/0: got number, want string", `"images":[""]`: "/images/0: it is empty",
		`"images":["https://example.com/a.png"]`: "/images/0: the server fetches nothing",
		`"images":["file:///etc/passwd"]`:        "/images/0: the server fetches nothing",
		`"images":["none.png"]`:                  "/images/0: ", `"images":["text.png"]`: "/images/0: not an image",
		`"images":["/dev/zero"]`: "a device, not a regular file", `"images":["."]`: "a folder, not a regular file",
		`"images":["link.png"]`:                                  "/images/0: " + filepath.Join(dir, "link.png") + " leads out of the working folder",
		`"images":["folder/secret.png"]`:                         "leads out of the working folder",
		`"images":["large.png"]`:                                 "/images/0: it has more than 20971520 bytes",
		`"images":["fit.png","fit.png"]`:                         "/images/1: it has more than 12582912 bytes, or the images together",
		`"images":["fit.png","rest.png","` + pngURL() + `"]`:     "/images/2: it has more than 8 bytes, or the images together",
		`"images":["data:image/png;base64,AAAA"]`:                "/images/0: not an image",
		`"images":["data:image/png,abc"]`:                        "/images/0: want a data URL with base64",
		`"images":["data:image/png;base64,***"]`:                 "/images/0: its base64 cannot be read",
		`"images":["data:image/svg+xml;base64,PHN2Zy8+"]`:        "/images/0: not an image",
		`"images":["1","2","3","4","5","6","7","8","9","a","b"]`: "/images: 11 are more than 10",
	} {
		for _, tool := range []string{`{"name":"codex","arguments":{"prompt":"p","cwd":` + fmt.Sprintf("%q", dir), `{"name":"codex-reply","arguments":{"prompt":"p","threadId":` + fmt.Sprintf("%q", turn)} {
			got := c.Ask(t, "tools/call", tool+","+arguments+`}}`)
			if !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) {
				t.Errorf("%.60s %.80s: %.400s, want %s", tool, arguments, got, want)
			}
		}
	}
	if n := len(e.Turns()) - begun; n != 0 {
		t.Errorf("%d turns began", n)
	}
}

func TestModels(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(says(""), nil), nil)
	got := c.Ask(t, "tools/call", `{"name":"codex-models"}`)
	for _, want := range []string{
		`"structuredContent":{"models":[{"model":"one","default":true,"profiles":["p"],"efforts":["low","high"],"defaultEffort":"low"},{"model":"two","description":"xxx`,
		`"notes":["a note"]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if len(got) > 1500 {
		t.Errorf("a description of %d bytes is not cut", len(got))
	}
	if list := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil).Ask(t, "tools/list", `{}`); strings.Contains(list, `"name":"codex-models"`) {
		t.Error("an engine that lists no models has the tool")
	}
}

// TestFolders calls tools with paths inside and outside of Options.Folders.
func TestFolders(t *testing.T) {
	top := boxtest.Folder(t)
	own, second, other := filepath.Join(top, "own"), filepath.Join(top, "second"), filepath.Join(top, "own-other")
	for _, repository := range []string{"own/repository", "own-other"} {
		boxtest.Lay(t, filepath.Join(top, repository), ".git/objects/", ".git/refs/", ".git/HEAD=ref: refs/heads/main\n")
	}
	boxtest.Lay(t, top, "own/sub/", "own-other/inner/", "own/a.png="+png, "second/a.png="+png, "own-other/a.png="+png, "own/up -> ..", "own/in -> @/second",
		"own/in.png -> @/second/a.png", "own/out -> @/own-other", "own/out.png -> @/own-other/a.png", "own/absent -> @/own-other/absent")
	e := says("done")
	c := servertest.Connect(t, codexserver.New(e, &codexserver.Options{Home: filepath.Join(top, "home"), Calls: codexserver.CallOptions{Folders: []string{own, second, other + "/inner"}}}), nil)
	const outside = " does not lie in one of the folders"
	for _, tt := range []struct {
		name, tool string
		arguments  map[string]any
		fault      string // "" when it is let
		cwd        string
	}{
		{"no cwd", "codex", map[string]any{}, "", own},
		{"a folder", "codex", map[string]any{"cwd": second}, "", second},
		{"below", "codex", map[string]any{"cwd": own + "/sub"}, "", own + "/sub"},
		{"a link to a folder", "codex", map[string]any{"cwd": own + "/in"}, "", second},
		{"another", "codex", map[string]any{"cwd": other}, "argument /cwd: " + other + outside, ""},
		{"the root", "codex", map[string]any{"cwd": "/"}, "argument /cwd: /" + outside, ""},
		{"above", "codex", map[string]any{"cwd": own + "/.."}, "argument /cwd: " + top + outside, ""},
		{"not there", "codex", map[string]any{"cwd": other + "/absent"}, "argument /cwd: " + other + "/absent" + outside, ""},
		{"a link out", "codex", map[string]any{"cwd": own + "/out"}, "argument /cwd: " + own + "/out" + outside, ""},
		{"a link up", "codex", map[string]any{"cwd": own + "/up"}, "argument /cwd: " + own + "/up" + outside, ""},
		{"a link to nothing", "codex", map[string]any{"cwd": own + "/absent"}, "argument /cwd: ", ""},
		{"an image", "codex", map[string]any{"images": []string{"a.png", second + "/a.png", "in.png"}}, "", own},
		{"another's image", "codex", map[string]any{"images": []string{"a.png", other + "/a.png"}}, "argument /images/1: " + other + "/a.png" + outside, ""},
		{"an image above", "codex", map[string]any{"images": []string{"../own-other/a.png"}}, "argument /images/0: ", ""},
		{"a link to an image", "codex", map[string]any{"images": []string{"out.png"}}, "argument /images/0: " + own + "/out.png" + outside, ""},
		{"a worktree of another's repository", "codex", map[string]any{"cwd": other + "/inner", "worktree": true}, "argument /cwd: its git repository: " + other + outside, ""},
		{"a review of another's repository", "codex-review", map[string]any{"cwd": other + "/inner", "target": "uncommitted"}, "argument /cwd: its git repository: " + other + outside, ""},
		{"a review elsewhere", "codex-review", map[string]any{"cwd": other, "target": "uncommitted"}, "argument /cwd: " + other + outside, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.tool == "codex" {
				tt.arguments["prompt"] = "p"
			}
			before := len(e.Turns())
			got := must.Get(c.Tool(t.Context(), tt.tool, tt.arguments))(t)
			if tt.fault == "" {
				if got.IsError || lastConfig(e).Cwd != tt.cwd {
					t.Errorf("got %+v, in %q", got, lastConfig(e).Cwd)
				}
				return
			}
			if !got.IsError || !strings.Contains(got.Content, tt.fault) || len(e.Turns()) != before {
				t.Errorf("got %+v, want %s", got, tt.fault)
			}
		})
	}
}

// TestFoldersOfConfig makes folders writable by the argument config, on a server with Options.Folders and on one without.
// They reach the engine as absolute paths. A call that the configuration trusts may set any key, but with folders.
func TestFoldersOfConfig(t *testing.T) {
	top := boxtest.Folder(t)
	own, second, other := filepath.Join(top, "own"), filepath.Join(top, "second"), filepath.Join(top, "other")
	boxtest.Lay(t, top, "own/.git/", "own/sub/", "second/", "other/", "own/out -> @/other", "own/in -> @/second")
	const (
		outside = " does not lie in one of the folders"
		table   = "argument /config/sandbox_workspace_write"
	)
	roots := func(paths ...string) map[string]any {
		return map[string]any{"sandbox_workspace_write": map[string]any{"writable_roots": paths}}
	}
	dotted := func(key string, value any) map[string]any { return map[string]any{key: value} }
	const list = "sandbox_workspace_write.writable_roots"
	for _, tt := range []struct {
		name              string
		config, arguments map[string]any
		fault             string // "" when it is allowed
		overrides         string
	}{
		{"a folder", roots(second), nil, "", given(second)},
		{"a dotted key", map[string]any{"sandbox_workspace_write.writable_roots": []string{second}}, nil, "", given(second)},
		{"a link in", roots("in"), nil, "", given(second)},
		{"no folder", roots(), nil, "", given()},
		{"network", map[string]any{"sandbox_workspace_write.network_access": true}, nil, "", `{"sandbox_workspace_write":{"network_access":true}}`},
		{"less of the temporary folders", map[string]any{"sandbox_workspace_write": map[string]any{"exclude_slash_tmp": true}}, nil, "", `{"sandbox_workspace_write":{"exclude_slash_tmp":true}}`},
		{"a worktree without folders", roots(), map[string]any{"worktree": true}, "argument /worktree: ", ""},
		{"another's", roots(second, other), nil, table + "/writable_roots/1: " + other + outside, ""},
		{"another's by a dotted key", map[string]any{"sandbox_workspace_write.writable_roots": []string{other}}, nil, table + "/writable_roots/0: " + other + outside, ""},
		{"the root", roots("/"), nil, table + "/writable_roots/0: /" + outside, ""},
		{"a link out", roots("out"), nil, table + "/writable_roots/0: " + own + "/out" + outside, ""},
		{"above", roots("../other"), nil, table + "/writable_roots/0: " + other + outside, ""},
		{"an empty name", roots(""), nil, table + "/writable_roots: want an array of folders", ""},
		{"too many", roots(slices.Repeat([]string{own}, 33)...), nil, table + "/writable_roots: 33 are more than 32", ""},
		{"a text", map[string]any{"sandbox_workspace_write.writable_roots": other}, nil, table + "/writable_roots: want an array of folders", ""},
		{"an object", map[string]any{"sandbox_workspace_write.writable_roots": map[string]any{"0": other}}, nil, table + "/writable_roots: want an array of folders", ""},
		{"/tmp", map[string]any{"sandbox_workspace_write": map[string]any{"exclude_slash_tmp": false}}, nil, table + "/exclude_slash_tmp: leave it out or set it to true", ""},
		{"$TMPDIR", map[string]any{"sandbox_workspace_write.exclude_tmpdir_env_var": "no"}, nil, table + "/exclude_tmpdir_env_var: leave it out or set it to true", ""},
		{"the file of instructions", map[string]any{"model_instructions_file": other + "/a"}, nil, `argument /config: a call may not set "model_instructions_file"; no setting allows it on a server that limits the folders of calls`, ""},
		{"a program", map[string]any{"mcp_servers.x.command": "sh"}, nil, "", `{}`},
	} {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, trusted %v", tt.name, trusted), func(t *testing.T) {
				o := &codexserver.Options{Home: filepath.Join(top, "home"), Calls: codexserver.CallOptions{Folders: []string{own, second}, TrustedCalls: trusted}}
				arguments := map[string]any{"config": tt.config}
				maps.Copy(arguments, tt.arguments)
				checkRoots(t, o, arguments, tt.fault, tt.overrides)
			})
		}
	}
	for _, tt := range []struct {
		name      string
		trusted   bool
		config    map[string]any
		fault     string // "" if the call is allowed
		overrides string
	}{
		{"nested", false, map[string]any{"sandbox_workspace_write": map[string]any{"writable_roots": []string{"/.git/hooks", other}, "network_access": false}}, "",
			`{"sandbox_workspace_write":{"network_access":false,"writable_roots":["/.git/hooks","` + other + `"]}}`},
		{"dotted", false, dotted(list, []string{"/proc"}), "", given("/proc")},
		{"quoted", false, dotted(`"sandbox_workspace_write".'writable_roots'`, []string{"/proc"}), "", given("/proc")},
		{"relative", false, dotted(list, []string{"more", "../x"}), "", given(own+"/more", top+"/x")},
		{"null", false, dotted(list, nil), "", `{}`},
		{"none", false, dotted(list, []string{}), "", given()},
		{"too many", false, dotted(list, slices.Repeat([]string{"/x"}, 33)), "33 are more than 32 folders", ""},
		{"not a list", false, dotted(list, "/proc"), "/writable_roots: want an array of folders", ""},
		{"an element", false, dotted(list+".0", "/proc"), "/writable_roots: want an array of folders", ""},
		{"a profile", false, dotted("profiles.p."+list, []string{"/proc"}), "a call may not set", ""},
		{"trusted", true, dotted(list, []string{"/proc"}), "", given("/proc")},
	} {
		t.Run("free, "+tt.name, func(t *testing.T) {
			o := &codexserver.Options{Calls: codexserver.CallOptions{TrustedCalls: tt.trusted}}
			checkRoots(t, o, map[string]any{"cwd": own, "config": tt.config}, tt.fault, tt.overrides)
		})
	}
}

// given is the configuration of a call that makes folders writable, as it reaches an engine.
func given(folders ...string) string {
	text, _ := json.Marshal(map[string]any{"sandbox_workspace_write": map[string]any{"writable_roots": append([]string{}, folders...)}})
	return string(text)
}

// checkRoots calls codex, and checks the fault, or what reaches the engine if that is "": the overrides.
func checkRoots(t *testing.T, o *codexserver.Options, arguments map[string]any, fault, overrides string) {
	t.Helper()
	e := says("done")
	arguments["prompt"], arguments["sandbox"] = "p", "workspace-write"
	got := must.Get(servertest.Connect(t, codexserver.New(e, o), nil).Tool(t.Context(), "codex", arguments))(t)
	if fault != "" {
		if !got.IsError || !strings.Contains(got.Content, fault) || len(e.Turns()) != 0 {
			t.Errorf("got %+v, want %s", got, fault)
		}
		return
	}
	c := lastConfig(e)
	passed := must.Get(json.Marshal(c.Overrides))(t)
	if got.IsError || !sameJSON(t, overrides, string(passed)) || c.FromCall == (o.Calls.TrustedCalls && o.Calls.Folders == nil) {
		t.Errorf("got %+v; the engine got %s, want %s", got, passed, overrides)
	}
}

// TestLimitOfTurns refuses a call for one turn more than Options.Turns.
func TestLimitOfTurns(t *testing.T) {
	end := make(chan struct{})
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		select {
		case <-end:
		case <-ctx.Done():
		}
		host.Emit(protocol.AgentMessage{Message: "done"})
		return nil
	})
	c := servertest.Connect(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{Turns: 2}}), nil)
	var threads []string
	for range 2 {
		got := must.Get(c.Tool(t.Context(), "codex", map[string]any{"prompt": "p", "background": true}))(t)
		threads = append(threads, got.Thread)
	}
	for tool, arguments := range map[string]map[string]any{
		"codex": {"prompt": "p"}, "codex-reply": {"prompt": "p", "threadId": threads[0]},
	} {
		got, err := c.Tool(t.Context(), tool, arguments)
		if want := tool + ": 2 turns are under way"; err != nil || !got.IsError || !strings.HasPrefix(got.Content, want) {
			t.Errorf("%s: %+v, %v; want %s", tool, got, err, want)
		}
	}
	close(end)
	for _, id := range threads {
		if got, err := c.Tool(t.Context(), "codex-wait", map[string]any{"threadIds": []string{id}}); err != nil || got.IsError {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	// Neither a call without a turn nor one that has ended counts.
	for range 5 {
		if got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p", "cwd": 1}); err != nil || !got.IsError {
			t.Errorf("a wrong call: %+v, %v", got, err)
		}
		if got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p"}); err != nil || got.IsError {
			t.Errorf("afterwards: %+v, %v", got, err)
		}
	}
}

// TestCallConfig checks that a key of a call's config reaches the engine, is left out with
// a warning, or is refused, also by the method newConversation.
func TestCallConfig(t *testing.T) {
	const (
		hostile = `{"model_providers":{"x":{"base_url":"http://evil","env_key":"HOME"}},"model_provider":"x"}`
		along   = `{"mcp_servers":{"happy":{"command":"c"}},"notify":["sh"],"nosuch":1,"model_verbosity":"low"}`
	)
	for _, tt := range []struct {
		name           string
		trusted        bool
		method, config string
		engine         string // what it gets; "" when it is not asked
		result         []string
		events         int // warnings among them
	}{
		{"on the list", false, "tools/call", `{"model_verbosity":"low"}`, `{"model_verbosity":"low"}`, []string{`"content":[{"type":"text","text":"p"}`}, 0},
		{"left out", false, "tools/call", along, `{"model_verbosity":"low"}`, []string{
			`"content":[{"type":"text","text":"p"},{"type":"text","text":"\nargument config: \"mcp_servers.happy.command\", \"notify\" left out`,
			`calls.trusted = true in codex-mcp.toml`, `\"nosuch\" left out: no such key is known`, `"content":"p\n\nargument config`,
		}, 2},
		{"refused", false, "tools/call", hostile, "", []string{
			`"isError":true`, `codex: argument /config: a call may not set \"model_providers.x.base_url\", \"model_providers.x.env_key\"; calls.trusted = true in codex-mcp.toml allows it`,
		}, 0},
		{"none", false, "tools/call", `null`, `{}`, []string{`"text":"p"`}, 0},
		{"trusted", true, "tools/call", hostile, hostile, []string{`"content":[{"type":"text","text":"p"}`}, 0},
		{"trusted along", true, "tools/call", along, along, []string{`"content":[{"type":"text","text":"p"}`}, 0},
		{"a method", false, "newConversation", hostile, "", []string{`argument /config: a call may not set "model_providers.x.base_url", "model_providers.x.env_key"; calls.trusted = true in codex-mcp.toml allows it`}, 0},
		{"a method along", false, "newConversation", along, `{"model_verbosity":"low"}`, []string{`"conversationId"`}, 0},
		{"a trusted method", true, "newConversation", along, along, []string{`"conversationId"`}, 0},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			e := &servertest.Engine{Turn: servertest.Echo}
			c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{TrustedCalls: tt.trusted}}), nil)
			params := `{"config":` + tt.config + `}`
			if tt.method == "tools/call" {
				params = `{"name":"codex","arguments":{"prompt":"p","config":` + tt.config + `}}`
			}
			result := c.Ask(t, tt.method, params)
			for _, part := range tt.result {
				if !strings.Contains(result, part) {
					t.Errorf("the result lacks %s: %s", part, result)
				}
			}
			if asked := len(e.Started()) > 0; asked != (tt.engine != "") {
				t.Fatalf("the engine was asked: %v", asked)
			}
			if tt.engine != "" {
				got := lastConfig(e)
				if got.FromCall == tt.trusted {
					t.Errorf("FromCall = %v", got.FromCall)
				}
				keys := got.Overrides
				if keys == nil {
					keys = protocol.Overrides{}
				}
				text := must.Get(json.Marshal(keys))(t)
				if !sameJSON(t, tt.engine, string(text)) {
					t.Errorf("the engine got %s, want %s", text, tt.engine)
				}
			}
			events := slices.DeleteFunc(c.Heard(), func(line string) bool { return !strings.Contains(line, "argument config: ") })
			if len(events) != tt.events {
				t.Errorf("%d warnings among the events, want %d: %q", len(events), tt.events, events)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	must.OK(t, json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y))
	return cmp.Equal(x, y)
}
