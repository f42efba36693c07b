package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
		name      string
		tool      string
		arguments map[string]any
		fault     string // "" when it is let
		cwd       string
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
			got, err := c.Tool(t.Context(), tt.tool, tt.arguments)
			must(t, err)
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
		name      string
		config    map[string]any
		arguments map[string]any
		fault     string // "" when it is allowed
		overrides string
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
		{"trusted", true, dotted(list, []string{"/proc"}), "", `{"sandbox_workspace_write.writable_roots":["/proc"]}`},
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

// checkRoots calls codex, and checks the fault, or what reaches the engine if that is "": the
// overrides.
func checkRoots(t *testing.T, o *codexserver.Options, arguments map[string]any, fault, overrides string) {
	t.Helper()
	e := says("done")
	arguments["prompt"], arguments["sandbox"] = "p", "workspace-write"
	got, err := servertest.Connect(t, codexserver.New(e, o), nil).Tool(t.Context(), "codex", arguments)
	must(t, err)
	if fault != "" {
		if !got.IsError || !strings.Contains(got.Content, fault) || len(e.Turns()) != 0 {
			t.Errorf("got %+v, want %s", got, fault)
		}
		return
	}
	c := lastConfig(e)
	passed, err := json.Marshal(c.Overrides)
	must(t, err)
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
		got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p", "background": true})
		must(t, err)
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
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
						keys = map[string]json.RawMessage{}
					}
					text, err := json.Marshal(keys)
					must(t, err)
					if !sameJSON(t, tt.engine, string(text)) {
						t.Errorf("the engine got %s, want %s", text, tt.engine)
					}
				}
				events := slices.DeleteFunc(c.Heard(), func(line string) bool { return !strings.Contains(line, "argument config: ") })
				if len(events) != tt.events {
					t.Errorf("%d warnings among the events, want %d: %q", len(events), tt.events, events)
				}
			})
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	must(t, json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y))
	return cmp.Equal(x, y)
}
