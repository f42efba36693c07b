package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// toy is the configuration of the server that this binary plays.
func toy(more string) string {
	return fmt.Sprintf("---\n[mcp_servers.toy]\ncommand = %q\nenv = { PLAY = \"mcp server\" }\n%s\n", os.Args[0], more)
}

// elicitHost is a host whose client answers questions of MCP servers.
type elicitHost struct {
	*host
	params string
}

func (h *elicitHost) Elicit(_ context.Context, f *approval.Foreign) (json.RawMessage, error) {
	params, err := f.Question().Params(elicit.Client{}, nil)
	h.params = string(params)
	return json.RawMessage(`{"action":"accept","content":{}}`), err
}

func TestToolsOfMCPServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tool, arguments, output string
		events                        []string
	}{
		{"call", "toy__echo", `{"x": "1"}`, `[{"type":"text","text":"echo:1"}]`, []string{"mcp_tool_call_begin", "mcp_tool_call_end"}},
		{"question", "toy__ask_me", `{}`, `[{"type":"text","text":"{\"action\":\"accept\",\"content\":{}} <nil>"}]`, []string{"mcp_tool_call_begin", "mcp_tool_call_end"}},
		{"question, declined by the configuration", "toy__ask_me", `{}`, `[{"type":"text","text":"{\"action\":\"decline\"`, []string{"mcp_tool_call_begin", "mcp_tool_call_end"}},
		{"error", "toy__fail", `{}`, `tool call error: toy/fail: `, []string{"mcp_tool_call_begin", "mcp_tool_call_end"}},
		{"long error", "toy__flood", `{}`, `tool call error: toy/flood: `, []string{"mcp_tool_call_begin", "mcp_tool_call_end"}},
		{"crash", "toy__die", `{}`, `tool call error: toy/die: `, []string{"mcp_tool_call_begin", "mcp_tool_call_end"}},
		{"half JSON", "toy__echo", `{"x":`, "[The arguments of this call were no JSON object. Call the tool again with one. They were:\n{\"x\":\n]\nthe arguments are not JSON: ", nil},
		{"no object", "toy__echo", `[1]`, "[The arguments of this call were no JSON object. Call the tool again with one. They were:\n[1]\n]\nthe arguments are not a JSON object", nil},
		{"unknown", "toy__none", `{}`, `unsupported call: toy__none; the tools are shell, read, list, search, edit, write, view_image, toy__`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, toy(""), native.Limits{},
				providertest.Call(providertest.ToolCall{ID: "c1", Name: tt.tool, Arguments: tt.arguments}), providertest.Say("ok"))
			if tt.name == "question, declined by the configuration" {
				change(t, filepath.Join(b.home, "config.toml"), `approval_policy = "untrusted"`,
					"approval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = false } }")
			}
			h := &elicitHost{host: &host{}}
			turn(t, b.start(t, h, protocol.Config{}), say("use it"))
			got := b.provider.Requests()[1].ToolOutputs()
			if len(got) != 1 || !strings.HasPrefix(got[0].Output, tt.output) {
				t.Errorf("outputs %q, want %q", got, tt.output)
			}
			if n := len(got[0].Output); n > 300<<10 {
				t.Errorf("the model got %d bytes", n)
			}
			events := slices.DeleteFunc(h.take(), func(e string) bool { return !strings.HasPrefix(e, "mcp_") })
			if d := cmp.Diff(tt.events, events); d != "" && len(tt.events)+len(events) > 0 {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if asks := strings.Contains(h.params, `The MCP server \"toy\" asks: \"May I?\"`); asks != (tt.name == "question") || !asks && h.params != "" {
				t.Errorf("the user was asked %q", h.params)
			}
		})
	}
}

func TestBrokenMCPServerIsAWarning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, want string }{
		{"no program", "---\n[mcp_servers.bad]\ncommand = \"no_such_program_here\"\n", "bad"},
		{"neither", "---\n[mcp_servers.bad]\nargs = [\"x\"]\n", "it has neither a command nor a url"},
		{"no encryption", "---\n[mcp_servers.bad]\nurl = \"http://192.0.2.1/mcp\"\n", "want https"},
		{"not MCP", "---\n[mcp_servers.bad]\ncommand = \"echo\"\nargs = [\"hello\"]\n", "it ended before it answered: exit status 0"},
		{"silent", "---\n[mcp_servers.bad]\ncommand = \"sleep\"\nargs = [\"600\"]\nstartup_timeout_sec = 0.2\n", "in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, tt.config, native.Limits{}, providertest.Say("ok"))
			h := &host{}
			turn(t, b.start(t, h, protocol.Config{}), say("hi"))
			warning := strings.Join(h.news(), "")
			if !strings.Contains(warning, `"bad" did not start`) || !strings.Contains(warning, tt.want) {
				t.Errorf("warning %q, want %q", warning, tt.want)
			}
		})
	}
}

// missing returns the names of the MCP servers that events name, and forgets these.
func (h *host) missing() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.events {
		if m, ok := m.(protocol.BackgroundEvent); ok && m.Missing != nil {
			names = append(names, m.Missing.Server)
		}
	}
	h.events = nil
	return names
}

// TestMissingMCPServers has MCP servers that do not start, each in another way, and one that does: each turn names the first ones.
func TestMissingMCPServers(t *testing.T) {
	t.Parallel()
	tables, want := servertest.BrokenServers(t)
	b := setup(t, toy("")+tables, native.Limits{}, providertest.Say("one"), providertest.Say("two"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	for range 2 {
		turn(t, c, say("hi"))
		must.Equal(t, "missing", want, h.missing())
	}
}

// TestRequiredMCPServer has a required server that does not start: the turn fails before the model is asked, and the next one tries
// again.
func TestRequiredMCPServer(t *testing.T) {
	t.Parallel()
	testenv.NeedsUnix(t, "sh")
	mark := filepath.Join(t.TempDir(), "ready")
	b := setup(t, fmt.Sprintf("---\n[mcp_servers.db]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"test -e %s && exec '%s'\"]\nenv = { PLAY = \"mcp server\" }\nrequired = true\n", mark, os.Args[0]),
		native.Limits{}, providertest.Say("ok"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	for range 2 {
		err := c.Turn(t.Context(), say("hi"))
		must.Fail(t, "the turn", `the required MCP server "db" did not start: `, err)
		must.Equal(t, "missing", []string{"db"}, h.missing())
	}
	must.Equal(t, "requests", 0, len(b.provider.Requests()))
	write(t, mark, "")
	turn(t, c, say("hi"))
	if names := h.missing(); names != nil || !strings.Contains(lastRequest(b), `"db__echo"`) {
		t.Errorf("missing %v, the request %s", names, lastRequest(b))
	}
}

// TestMCPServerAgain starts a server again that ended, once in a turn, and does not repeat the call in which it ended.
func TestMCPServerAgain(t *testing.T) {
	t.Parallel()
	call := func(id, name string) providertest.Turn {
		return providertest.Call(providertest.ToolCall{ID: id, Name: "toy__" + name, Arguments: `{"x":"1"}`})
	}
	b := setup(t, toy(""), native.Limits{}, call("a", "die"), call("b", "echo"), call("c", "die"), call("d", "echo"), providertest.Say("one"), call("e", "echo"), providertest.Say("two"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	const again = `the MCP server "toy" had ended, and was started again`
	for turns, want := range [][]string{{again}, {again}} {
		turn(t, c, say("go"))
		must.Equal(t, fmt.Sprint("turn ", turns), want, h.news())
	}
	all := b.provider.Requests()
	outputs := all[len(all)-1].ToolOutputs()
	for i, want := range []string{"tool call error: toy/die: ", "echo:1", "tool call error: toy/die: ", "tool call error: toy/echo: ", "echo:1"} {
		if i >= len(outputs) || !strings.Contains(outputs[i].Output, want) {
			t.Errorf("output %d of %q, want %q", i, outputs, want)
		}
	}
}

// TestFolderOfMCPServers starts a server that prints its folder and its PATH.
func TestFolderOfMCPServers(t *testing.T) {
	for _, tt := range []struct{ name, config, want string }{
		{"default", "", "home"},
		{"relative", "cwd = \"sub\"\n", "cwd/sub"},
		{"absolute", "cwd = \"/\"\n", "/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "place")
			b := setup(t, fmt.Sprintf("---\n[mcp_servers.toy]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"pwd >%s; echo $PATH >>%s; exec '%s'\"]\nenv = { PLAY = \"mcp server\" }\n%s\n", file, file, os.Args[0], tt.config),
				native.Limits{}, providertest.Say("ok"))
			write(t, filepath.Join(b.cwd, "sub", "x"), "x")
			t.Setenv("PATH", filepath.Join(b.cwd, "sub")+string(filepath.ListSeparator)+os.Getenv("PATH"))
			b.reopen(t)
			turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
			got := read(t, file)
			folder, path, _ := strings.Cut(string(got), "\n")
			want := strings.NewReplacer("home", b.home, "cwd", b.cwd).Replace(tt.want)
			if folder != want || strings.Contains(path, b.cwd) {
				t.Errorf("it runs in %s with the PATH %s, want %s", folder, path, want)
			}
		})
	}
}

// TestMCPServerByURL has the model call a tool of a server over HTTP, and a server that the
// repository's own configuration names.
func TestMCPServerByURL(t *testing.T) {
	var foreign atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	defer stranger.Close()
	name := "toy"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if h := r.Header; h.Get("Authorization") != "Bearer secret-token" || h.Get("X-Plain") != "plain" || h.Get("X-Extra") != "from-environ" || h["X-Unset"] != nil || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		result := map[string]string{
			"server/discover": fmt.Sprintf(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":%q,"version":"1"}}}`, name),
			"tools/list":      `{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
			"tools/call":      `{"resultType":"complete","content":[{"type":"text","text":"heard"}]}`,
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	defer s.Close()
	b := setup(t, fmt.Sprintf("---\n[mcp_servers.far]\nurl = %q\nbearer_token_env_var = \"FAR_TOKEN\"\n", s.URL)+
		"http_headers = { X-Plain = \"plain\" }\nenv_http_headers = { X-Extra = \"FAR_EXTRA\", X-Unset = \"NO_SUCH\" }\n", native.Limits{})
	write(t, filepath.Join(b.cwd, ".codex", "config.toml"), fmt.Sprintf("[mcp_servers.evil]\nurl = %q\nbearer_token_env_var = \"FAR_TOKEN\"\n", stranger.URL))
	environ := append(os.Environ(), "FAR_TOKEN=secret-token", "FAR_EXTRA=from-environ", "HOME="+b.home)
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: environ})
	b.provider.Add(
		providertest.Call(providertest.ToolCall{ID: "c1", Name: "far__echo", Arguments: `{}`}, providertest.Shell("c2", "env")), providertest.Say("ok"))
	h := &host{exec: allow}
	turn(t, b.start(t, h, protocol.Config{}), say("use it"))
	got := b.provider.Requests()[1].ToolOutputs()
	if len(got) != 2 || got[0].Output != `[{"type":"text","text":"heard"}]` || strings.Contains(got[1].Output, "FAR_TOKEN") {
		t.Errorf("outputs %q", got)
	}
	inOrder(t, strings.Join(h.take(), " "), "mcp_tool_call_begin mcp_tool_call_end")
	must.Equal(t, "requests to the server of the repository", int32(0), foreign.Load())

	name = "codex-mcp" // as if the engine's own server had that URL
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: environ, Self: os.Args[0]})
	b.provider.Add(providertest.Say("ok"))
	turn(t, b.start(t, h, protocol.Config{}), say("again"))
	without(t, lastRequest(b), "far__echo") // the own server
	inOrder(t, strings.Join(h.take(), " "), "background_event")
}

func TestNotesAreLoggedOnce(t *testing.T) {
	b := setup(t, "tools = {web_search = {context_size = \"low\"}}", native.Limits{}, providertest.Say("ok"))
	var log bytes.Buffer
	b.engine = open(t, native.Options{CodexHome: b.home, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		b.start(t, &host{}, protocol.Config{})
	}
	must.Equal(t, "notes", 1, strings.Count(log.String(), "web search is off"))
}

func TestToolsOfMCPServersAsConfigured(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		want         []string // the tools that are offered
	}{
		{"all", "", []string{"toy__ask_me", "toy__die", "toy__echo", "toy__fail"}},
		{"enabled", `enabled_tools = ["echo", "fail"]`, []string{"toy__echo", "toy__fail"}},
		{"asked about", `tools = { echo = { approval_mode = "prompt" } }`, []string{"toy__ask_me", "toy__die", "toy__fail"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, toy(tt.config), native.Limits{}, providertest.Say("ok"))
			turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
			for _, name := range []string{"toy__ask_me", "toy__die", "toy__echo", "toy__fail"} {
				must.Equal(t, name+" is offered", slices.Contains(tt.want, name), strings.Contains(lastRequest(b), `"`+name+`"`))
			}
		})
	}
}

// TestOwnServerIsLeftOut checks that a conversation never starts the program that serves it,
// here this binary, and that the model and the client are not informed.
func TestOwnServerIsLeftOut(t *testing.T) {
	b := setup(t, toy("[mcp_servers.wrapped]\ncommand = \"env\"\nargs = [\"PLAY=mcp server\", \""+os.Args[0]+"\"]\n"), native.Limits{})
	for _, tt := range []struct {
		self    string
		offered bool
	}{{"", true}, {os.Args[0], false}} {
		var log bytes.Buffer
		b.engine = open(t, native.Options{CodexHome: b.home, Self: tt.self, Logger: slog.New(slog.NewTextHandler(&log, nil)), Environ: []string{"PATH=" + os.Getenv("PATH")}})
		for range 2 {
			h := &host{}
			b.provider.Add(providertest.Say("ok"))
			turn(t, b.start(t, h, protocol.Config{}), say("hi"))
			for _, name := range []string{"toy__echo", "wrapped__echo"} {
				must.Equal(t, fmt.Sprintf("self %q offers %s", tt.self, name), tt.offered, strings.Contains(lastRequest(b), `"`+name+`"`))
			}
			without(t, strings.Join(h.take(), " "), "background_event")
		}
		if n := strings.Count(log.String(), "is left out: it is this server"); (n == 2) == tt.offered {
			t.Errorf("self %q: logged %d times:\n%s", tt.self, n, log.String())
		}
	}
}

// TestChangedToolsOfMCPServers has a server whose tools change in a call: the next request of the turn offers the new
// ones, and no request those that went.
func TestChangedToolsOfMCPServers(t *testing.T) {
	t.Parallel()
	call := func(id, name string) providertest.Turn {
		return providertest.Call(providertest.ToolCall{ID: id, Name: "toy__" + name, Arguments: `{}`})
	}
	b := setup(t, toy(`disabled_tools = ["fail"]`), native.Limits{}, call("a", "change"), call("b", "later"), call("c", "echo"), providertest.Say("ok"))
	turn(t, b.start(t, &host{}, protocol.Config{}), say("go"))
	for i, r := range b.provider.Requests() {
		for name, offered := range map[string]bool{"change": true, "echo": i == 0, "later": i > 0, "fail": false} {
			must.Equal(t, fmt.Sprintf("request %d offers %s", i, name), offered, strings.Contains(string(r.Body), `"name":"toy__`+name+`","description"`))
		}
	}
	outputs := b.provider.Requests()[3].ToolOutputs()
	for i, want := range []string{"echo:", "echo:", "unsupported call: toy__echo; the tools are "} {
		if !strings.Contains(outputs[i].Output, want) {
			t.Errorf("output %d of %q, want %q", i, outputs, want)
		}
	}
}

// TestInstructionsOfMCPServers has what servers say about their use, and what the model reads of it.
func TestInstructionsOfMCPServers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 16<<10)
	for _, tt := range []struct{ name, said, config, want string }{
		{"none", ``, "", ""},
		{"some", `"  Call echo first.\n"`, "", "## \"toy\"\n\nCall echo first."},
		{"blank", `" \n"`, "", ""},
		{"a number", `7`, "", ""},
		{"long", `"` + long + `yz"`, "", long + " [cut: 16386 bytes in all]"},
		{"of no tools", `"Call echo first."`, "enabled_tools = []", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, strings.Replace(toy(tt.config), "env = { ", fmt.Sprintf("env = { INSTRUCTIONS = %q, ", tt.said), 1), native.Limits{}, providertest.Say("one"), providertest.Say("two"))
			c := b.start(t, &host{}, protocol.Config{})
			turn(t, c, say("hi"))
			turn(t, c, say("again"))
			for i, r := range b.provider.Requests() {
				var body struct {
					Messages []struct{ Content string }
				}
				must.OK(t, json.Unmarshal(r.Body, &body))
				_, after, found := strings.Cut(body.Messages[0].Content, "# MCP servers\n")
				if found != (tt.want != "") || !strings.HasSuffix(after, tt.want) {
					t.Errorf("request %d: the first message ends in %q, want %q", i, after, tt.want)
				}
			}
		})
	}
}

// TestEnvironmentOfMCPServers starts a server that prints its environment.
func TestEnvironmentOfMCPServers(t *testing.T) {
	testenv.NeedsUnix(t, "sh")
	environ := []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "LC_ALL=de_DE.UTF-8", "LC_TIME=C", "TERM=dumb", "TZ=UTC", "DISPLAY=:0", "A_KEY=1", "OPENAI_API_KEY=2", "EMPTY="}
	const usual = "LANG=C.UTF-8 LC_ALL=de_DE.UTF-8 TERM=dumb TZ=UTC"
	for _, tt := range []struct{ name, config, want, warning string }{
		{"usual", "", usual, ""},
		{"names", `env_vars = ["A_KEY", "OPENAI_API_KEY", "EMPTY", "NO_SUCH", "", "a_key", "DISPLAY=:0"]`, "A_KEY=1 EMPTY= LANG=C.UTF-8 LC_ALL=de_DE.UTF-8 OPENAI_API_KEY=2 TERM=dumb TZ=UTC", ""},
		{"tables", `env_vars = [{ name = "A_KEY" }, "DISPLAY", { name = "LC_TIME", source = "local" }]`, "A_KEY=1 DISPLAY=:0 LANG=C.UTF-8 LC_ALL=de_DE.UTF-8 LC_TIME=C TERM=dumb TZ=UTC", ""},
		{"env wins", "env_vars = [\"A_KEY\"]\nenv.A_KEY = \"own\"\nenv.TZ = \"CET\"", "A_KEY=own LANG=C.UTF-8 LC_ALL=de_DE.UTF-8 TERM=dumb TZ=CET", ""},
		{"elsewhere", `env_vars = ["EMPTY", { name = "A_KEY", source = "remote" }]`, "", "env_vars.1: A_KEY is on another machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "environ")
			config := fmt.Sprintf(`---
[mcp_servers.toy]
command = "/bin/sh"
args = ["-c", "env >\"$1\"; PLAY='mcp server' exec \"$0\"", %q, %q]
%s
`, os.Args[0], file, tt.config)
			b := setup(t, config, native.Limits{}, providertest.Say("ok"))
			b.engine = open(t, native.Options{CodexHome: b.home, Environ: environ})
			h := &host{}
			turn(t, b.start(t, h, protocol.Config{}), say("hi"))
			if warning := strings.Join(h.news(), ""); !strings.Contains(warning, tt.warning) || tt.warning == "" && warning != "" {
				t.Fatalf("warning %q, want %q", warning, tt.warning)
			}
			var got []string
			if tt.warning == "" {
				got = strings.Split(strings.TrimSpace(string(read(t, file))), "\n")
			}
			got = slices.DeleteFunc(got, func(entry string) bool {
				name, _, _ := strings.Cut(entry, "=")
				return slices.Contains([]string{"PATH", "PWD", "OLDPWD", "SHLVL", "_"}, name) // the shell has made most of them
			})
			slices.Sort(got)
			must.Equal(t, "environment", tt.want, strings.Join(got, " "))
		})
	}
}
