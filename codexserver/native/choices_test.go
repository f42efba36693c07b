package native_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const choicesSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// TestChoicesReachTheModel checks that the request has what the call chooses, and nothing that it does not choose.
func TestChoicesReachTheModel(t *testing.T) {
	const image = "data:image/png;base64,iVBORw0KGgo="
	for wire, want := range map[string][]string{
		"chat": {
			`{"type":"image_url","image_url":{"url":"` + image + `"}},{"type":"image_url","image_url":{"url":"` + image + `"}}`, `"tool_choice":"none"`, `"reasoning_effort":"high"`,
			`"response_format":{"type":"json_schema","json_schema":{"name":"codex_output_schema","strict":true,"schema":` + choicesSchema + `}}`,
		},
		"responses": {
			`{"type":"web_search"}`, `"tool_choice":"none"`, `"reasoning":{"effort":"high"}`,
			`"text":{"format":{"type":"json_schema","name":"codex_output_schema","strict":true,"schema":` + choicesSchema + `}}`,
			`{"type":"input_image","image_url":"` + image + `"},{"type":"input_image","image_url":"` + image + `"}`,
		},
	} {
		t.Run(wire, func(t *testing.T) {
			b := setup(t, "model_reasoning_effort = \"medium\"\n---\nwire_api = \""+wire+"\"", native.Limits{},
				providertest.Say("plain"), providertest.Say("one"), providertest.Say(`{"n":1}`), providertest.Say("plain"), providertest.Say("resumed"))
			turn(t, b.start(t, &host{}, protocol.Config{}), say("plain"))
			for _, part := range []string{"effort", "json_schema", "web_search"} { // which the call did not choose
				without(t, lastRequest(b), part)
			}
			cfg := protocol.Config{}
			if wire == "responses" {
				cfg.WebSearch = new(true)
			}
			h := &host{}
			c := b.start(t, h, cfg)
			in := say("look")
			write(t, filepath.Join(b.cwd, "a.png"), "\x89PNG\r\n\x1a\n") // the same
			in.Items = append(in.Items, protocol.InputItem{Type: protocol.InputImage, ImageURL: image}, protocol.InputItem{Type: protocol.InputLocalImage, Path: "a.png"})
			in.Effort, in.OutputSchema = "high", json.RawMessage(choicesSchema)
			turn(t, c, in)
			words := must.Get(json.Marshal(outputschema.Words(in.OutputSchema)))(t)
			works := lastRequest(b)
			inOrder(t, works, strings.Trim(string(words), `"`))
			without(t, works, "json_schema")
			without(t, works, `"none"`)
			must.OK(t, c.(engine.Former).Form(t.Context(), protocol.TurnInput{Items: protocol.TextInput("again"), OutputSchema: in.OutputSchema, Again: true}))
			inOrder(t, lastRequest(b), want...)
			if head, form := toolsOf(works), toolsOf(lastRequest(b)); head == "" || head != form { // which the provider's cache has
				t.Errorf("the tools are %s, for the form %s", head, form)
			}
			turn(t, c, say("next"))
			if got := lastRequest(b); strings.Contains(got, "json_schema") || strings.Contains(got, "follows this schema") || !strings.Contains(got, `"high"`) {
				t.Errorf("the next turn: %s", got)
			}
			path := configured(t, h).RolloutPath
			closed(t, c)
			b.reopen(t)
			r := b.resume(t, path, protocol.Config{Keep: keepAll}, &host{})
			defer r.Close()
			turn(t, r, say("again"))
			if got := lastRequest(b); !strings.Contains(got, `"high"`) || strings.Contains(got, `{"type":"web_search"}`) != (wire == "responses") {
				t.Errorf("after a restart: %s", got)
			}
		})
	}
}

// TestSettingsReachTheProvider checks which settings of config.toml and of the call are in the first
// request, and which refuse the conversation.
func TestSettingsReachTheProvider(t *testing.T) {
	const responses = "\n---\nwire_api = \"responses\"\n"
	var none protocol.Config
	on, off := protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}}, protocol.Config{Choices: protocol.Choices{WebSearch: new(false)}}
	for _, tt := range []struct {
		name, extra string
		cfg         protocol.Config
		want, fails string // "" is no web search
	}{
		{"built-in instructions", "", none, `"role":"system","content":"You are Codex, a coding agent.`, ""},
		{"the caller's instructions", "", protocol.Config{Choices: protocol.Choices{BaseInstructions: new("Be a poet.")}}, `"role":"system","content":"Be a poet.`, ""},
		{"a file's instructions", `experimental_instructions_file = "base.md"`, none, `"role":"system","content":"Be a painter.`, ""},
		{"the call's effort, unknown model", `model_reasoning_effort = "medium"`, protocol.Config{Choices: protocol.Choices{Effort: "low"}}, `"reasoning_effort":"low"`, ""},
		{"effort", "model_reasoning_effort = \"max\"\nmodel_supports_reasoning_summaries = true" + responses, none, `"reasoning":{"effort":"max"`, ""},
		{"live", `web_search = "live"` + responses, none, `{"type":"web_search"}`, ""},
		{"cached", `web_search = "cached"` + responses, none, `{"type":"web_search","external_web_access":false}`, ""},
		{"settings", "web_search = \"live\"\ntools.web_search = { context_size = \"low\", allowed_domains = [\"a.com\"], location = { country = \"NL\" } }" + responses, none,
			`{"type":"web_search","filters":{"allowed_domains":["a.com"]},"search_context_size":"low","user_location":{"country":"NL","type":"approximate"}}`, ""},
		{"settings alone", `tools.web_search = { context_size = "low" }` + responses, none, "", ""},
		{"on", responses, on, `{"type":"web_search"}`, ""},
		{"off", "web_search = \"live\"" + responses, off, "", ""},
		{"with the settings of the configuration", "web_search = \"cached\"" + responses + "[tools.web_search]\nallowed_domains = [\"go.dev\"]\n", on,
			`{"type":"web_search","external_web_access":false,"filters":{"allowed_domains":["go.dev"]}}`, ""},
		{"settings without web_search", responses + "[tools.web_search]\nallowed_domains = [\"go.dev\"]\n", on, `"filters":{"allowed_domains":["go.dev"]}`, ""},
		{"disabled by the user", "web_search = \"disabled\"" + responses, on, "", `argument /web-search: the configuration has web_search = "disabled"`},
		{"off where it is disabled", "web_search = \"disabled\"" + responses, off, "", ""},
		{"a provider without support", "", on, "", `argument /web-search: the provider "test" has no web search: it uses wire_api = "chat"`},
		{"off without support", "", off, "", ""},
		{"a folder that does not exist", "", protocol.Config{Cwd: "none"}, "", "argument /cwd: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, tt.extra, native.Limits{}, providertest.Say("ok"))
			write(t, filepath.Join(b.cwd, "base.md"), "Be a painter.\n")
			tt.cfg.Cwd, tt.cfg.FromCall = filepath.Join(b.cwd, tt.cfg.Cwd), true
			c, err := b.engine.Start(t.Context(), tt.cfg, &host{})
			if tt.fails != "" {
				if !as[*engine.ConfigError](err) || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v, want %s", err, tt.fails)
				}
				return
			}
			must.OK(t, err)
			defer c.Close()
			turn(t, c, say("hi"))
			inOrder(t, lastRequest(b), tt.want)
			if tt.want == "" {
				without(t, lastRequest(b), "web_search")
			}
		})
	}
}

// TestWebSearchTakenBack disables web search in the configuration: it stays off in a resumed
// conversation that had chosen it.
func TestWebSearchTakenBack(t *testing.T) {
	b := setup(t, "#mode\n---\nwire_api = \"responses\"", native.Limits{}, providertest.Say("ok"), providertest.Say("ok"))
	path := b.first(t, protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}})
	change(t, filepath.Join(b.home, "config.toml"), "#mode", `web_search = "disabled"`)
	b.reopen(t)
	says(t, b.resume(t, path, protocol.Config{}, &host{}), "again")
	without(t, lastRequest(b), "web_search")
}

// toolsOf returns the tools of a request.
func toolsOf(request string) string {
	var body struct{ Tools json.RawMessage }
	_ = json.Unmarshal([]byte(request), &body) // "" without any
	return string(body.Tools)
}

// TestForm checks what is left of the form of an answer. Nothing that the model calls in it runs, and the next turn has neither
// the call nor the schema.
func TestForm(t *testing.T) {
	t.Parallel()
	call := providertest.Call(providertest.Tool("c1", "shell", map[string]any{"command": []string{"sh", "-c", "echo x >evil"}}))
	for _, wire := range []string{"chat", "responses"} {
		for _, tt := range []struct {
			name   string
			turn   providertest.Turn
			answer string // "null" without one
			lacks  string
		}{
			{"fits", providertest.Say(`{"n":1}`), `{"n":1}`, ""},
			{"does not fit", providertest.Say("two"), "two", ""},
			{"a call", call, "null", "the model called shell although it was asked for the form of its answer alone, so that was not run"},
			{"words and a call", providertest.Turn{Text: []string{"words"}, ToolCalls: call.ToolCalls}, "words", "the model called shell although it was asked for the form of its answer alone, so that was not run"},
			{"empty", providertest.Turn{}, "null", protocol.EmptyAnswer},
			{"cut off", providertest.Turn{Text: []string{`{"n":`}, Cut: "length"}, `{"n":`, "it reached the model's limit of output tokens"},
		} {
			t.Run(wire+" "+tt.name, func(t *testing.T) {
				b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{}, providertest.Say("one"), tt.turn, providertest.Say("next"))
				h := &host{}
				c := b.start(t, h, protocol.Config{})
				in := say("count")
				in.OutputSchema = json.RawMessage(choicesSchema)
				turn(t, c, in)
				in.Items, in.Again = protocol.TextInput("again"), true
				must.OK(t, c.(engine.Former).Form(t.Context(), in))
				end, _ := h.events[len(h.events)-1].(protocol.TaskComplete)
				answer := "null"
				if end.LastAgentMessage != nil {
					answer = *end.LastAgentMessage
				}
				must.Equal(t, "the answer, and what it lacks", []string{tt.answer, tt.lacks}, []string{answer, end.Incomplete})
				if err := c.(engine.Steerer).Steer(t.Context(), protocol.TextInput("late")); !errors.Is(err, engine.ErrNoTurn) {
					t.Errorf("a message after the form: %v", err)
				}
				turn(t, c, say("next"))
				for _, part := range []string{"evil", "follows this schema", "json_schema", "aborted", `"none"`} {
					without(t, lastRequest(b), part)
				}
			})
		}
	}
}

func TestModels(t *testing.T) {
	var answer, authorization string
	var status int
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	defer provider.Close()
	config := fmt.Sprintf(`model = "gpt-5"
model_provider = "p"
model_reasoning_effort = "high"
[model_providers.p]
base_url = %q
env_key = "THE_KEY"
[profiles.old]
model = "mine"
[profiles.same]
model_reasoning_effort = "low"
[profiles.broken]
model_provider = "nosuch"
`, provider.URL+"/v1")
	e, _ := inHome(t, native.Options{Environ: []string{"THE_KEY=secret-key"}}, map[string]string{"config.toml": config, "new.config.toml": `model = "mine"`})
	list := func() (names []string, notes string) {
		l := must.Get(e.Models(t.Context()))(t)
		for _, m := range l.Models {
			names = append(names, fmt.Sprint(m.Name, m.Profiles, m.Efforts, m.DefaultEffort, m.IsDefault))
		}
		return names, strings.Join(l.Notes, "\n")
	}
	own := []string{"gpt-5[same] [minimal low medium high]hightrue", "mine[new old] []false"}
	status, answer = 200, `{"object":"list","data":[{"id":"o3"},{"id":"gpt-5"},{"id":""},{"id":"x"}]}`
	names, notes := list()
	must.Equal(t, "models", append(own[:2:2], "o3[] [low medium high]false", "x[] []false"), names)
	if !strings.Contains(notes, `profile "broken"`) || authorization != "GET /v1/models Bearer secret-key" {
		t.Errorf("notes %q, asked %s", notes, authorization)
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"id":"m%d"}`, i))
	}
	for _, tt := range []struct {
		status       int
		answer, note string
		models       int
	}{
		{200, `{"data":[` + strings.Join(many, ",") + `]}`, "lists 802 more models", 200},
		{200, "{", "cannot be read", 2},
		{200, strings.Repeat(" ", 3<<20), "more than 2097152 bytes", 2},
		{401, `{"error":{"message":"the key secret-key is wrong"}}`, "401", 2},
		{302, "", "", 2},
	} {
		status, answer = tt.status, tt.answer
		names, notes := list()
		if len(names) != tt.models || !strings.Contains(notes, tt.note) || strings.Contains(notes, "secret-key") {
			t.Errorf("%d %.30q: %d models, %s", tt.status, tt.answer, len(names), notes)
		}
	}
	provider.Close()
	if names, notes := list(); len(names) != 2 || !strings.Contains(notes, "does not list its models") {
		t.Errorf("a provider that does not answer: %q, %s", names, notes)
	}
}

// TestOwnAuthority uses a provider with a certificate of an unknown authority. A report and a turn
// reach it only if CODEX_CA_CERTIFICATE names the authority.
func TestOwnAuthority(t *testing.T) {
	script := providertest.New(providertest.Say("hello"))
	defer script.Close()
	server := httptest.NewUnstartedServer(script)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, ca, string(cert))
	for _, tt := range []struct{ file, want string }{
		{"", "certificate"},
		{ca, ""},
		{ca + ".none", "CODEX_CA_CERTIFICATE"},
	} {
		o := native.Options{
			CodexHome: t.TempDir(),
			Overrides: map[string]any{"model": "m", "model_provider": "p", "model_providers.p": map[string]any{
				"base_url": server.URL + "/v1", "request_max_retries": 0, "stream_max_retries": 0,
			}},
			Environ: []string{"CODEX_CA_CERTIFICATE=" + tt.file, "PATH=" + os.Getenv("PATH")},
		}
		said := map[string]string{} // at each door
		if report, err := native.Check(t.Context(), &o, false); err != nil {
			said["Check"] = err.Error()
		} else {
			said["Check"] = report.Reach
		}
		if e, err := native.New(&o); err != nil {
			said["New"] = err.Error()
		} else {
			defer e.Close()
			err := (&bench{engine: e, cwd: t.TempDir()}).start(t, &host{}, protocol.Config{}).Turn(t.Context(), say("hi"))
			said["Turn"] = strings.TrimSuffix(fmt.Sprint(err), "<nil>")
		}
		for door, got := range said {
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%s with the file %q: %q, want %q", door, tt.file, got, tt.want)
			}
		}
	}
}

// TestCheckWithoutInstructions asks no provider, with the user's key, when no conversation could begin.
func TestCheckWithoutInstructions(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++ }))
	t.Cleanup(server.Close)
	for _, tt := range []struct {
		name  string
		set   func(home string, overrides map[string]any)
		asked bool
		want  string
	}{
		{"all can be read", func(string, map[string]any) {}, true, ""},
		{"no file of the model's", func(home string, overrides map[string]any) {
			overrides["model_instructions_file"] = filepath.Join(home, "none")
		}, false, "model_instructions_file"},
		{"a folder in place of the user's", func(home string, _ map[string]any) {
			write(t, filepath.Join(home, "AGENTS.md", "file"), "")
		}, false, "AGENTS.md"},
	} {
		asked = 0
		o := native.Options{CodexHome: t.TempDir(), Environ: []string{"KEY=k"}, Overrides: map[string]any{
			"model": "m", "model_provider": "p", "model_providers.p": map[string]any{"base_url": server.URL + "/v1", "env_key": "KEY"},
		}}
		tt.set(o.CodexHome, o.Overrides)
		report := must.Get(native.Check(t.Context(), &o, false))(t)
		if asked > 0 != tt.asked || !strings.Contains(report.Reach, tt.want) {
			t.Errorf("%s: asked %d times, %q", tt.name, asked, report.Reach)
		}
	}
}

// TestCheckShowsNoSecret has addresses with secrets in them, of which no report may show any.
func TestCheckShowsNoSecret(t *testing.T) {
	for _, address := range []string{
		"http://user:hunter2@127.0.0.1:1/v1", "http://127.0.0.1:1/v1?key=hunter2", "http://user:hunter2%zz@127.0.0.1:1/v1",
		"http://user:hunter2@127.0.0.1:port/v1", "http://user:hunter2@[::1/v1", "http://127.0.0.1:1/v1#hunter2",
	} {
		report, err := native.Check(t.Context(), &native.Options{
			CodexHome: t.TempDir(), Overrides: map[string]any{"model": "m", "model_provider": "p", "model_providers.p.base_url": address},
		}, false)
		if text := fmt.Sprintf("%+v %v", report, err); strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", address, text)
		}
		if err == nil && report.Reach == "" {
			t.Errorf("%s is said to answer", address)
		}
	}
}

// TestCommandsSeeNoKeys checks that commands do not see a variable that holds a key, whatever
// its name and the environment's policy.
func TestCommandsSeeNoKeys(t *testing.T) {
	secrets := []string{"WEIRD_CRED", "HEADER_CRED", "OTHER_CRED", "SERVER_CRED", "SERVER_HEADER", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}
	environ := []string{"PATH=" + os.Getenv("PATH"), "SHELL=/bin/bash", "PLAIN=value-plain", "LOUD_KEY=value-loud"}
	for _, name := range secrets {
		environ = append(environ, name+"=value-"+strings.ToLower(name))
	}
	b := setup(t, `
---
env_key = "WEIRD_CRED"
env_http_headers = { "api-key" = "HEADER_CRED" }
[model_providers.other]
base_url = "http://localhost:1"
env_key = "OTHER_CRED"
[mcp_servers.remote]
url = "http://localhost:1"
bearer_token_env_var = "SERVER_CRED"
env_http_headers = { "api-key" = "SERVER_HEADER" }
[shell_environment_policy]
ignore_default_excludes = true
`, native.Limits{},
		providertest.Call(providertest.Shell("c1", "env")),
		providertest.Turn{Func: func(r providertest.Request) providertest.Turn { return providertest.Say(r.LastToolOutput()) }})
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: environ})
	h := &host{exec: allow}
	turn(t, b.start(t, h, protocol.Config{}), say("go"))
	seen := strings.Join(h.take(), "\n")
	for _, name := range []string{"value-plain", "value-loud"} {
		if !strings.Contains(seen, name) {
			t.Errorf("a command does not see %s: %s", name, seen)
		}
	}
	for _, name := range secrets {
		if strings.Contains(seen, "value-"+strings.ToLower(name)) {
			t.Errorf("a command sees %s", name)
		}
	}
}

// offered returns the names of the tools of a request, and their length in bytes.
func offered(t *testing.T, body []byte) (names string, size int) {
	t.Helper()
	var request struct{ Tools []json.RawMessage }
	parse(t, body, &request)
	for _, one := range request.Tools {
		size += len(one)
		var named struct {
			Name     string
			Function struct{ Name string }
		}
		parse(t, one, &named)
		names += " " + named.Name + named.Function.Name
	}
	return strings.TrimSpace(names), size
}

// TestOfferedTools checks which tools each wire and setting offers, and that the file tools with
// the shell need at most 2,500 tokens of four bytes.
func TestOfferedTools(t *testing.T) {
	const files, codex = "shell read list search edit write", "shell"
	for _, tt := range []struct {
		wire  string
		tools setting.Tools
		want  string
	}{
		{"chat", "", files}, {"chat", setting.ToolsAuto, files}, {"responses", setting.ToolsAuto, codex},
		{"chat", setting.ToolsCodex, codex}, {"responses", setting.ToolsFiles, files},
	} {
		t.Run(fmt.Sprint(tt.wire, tt.tools), func(t *testing.T) {
			model := providertest.New(providertest.Say("ok"))
			t.Cleanup(model.Close)
			b := &bench{cwd: t.TempDir(), engine: open(t, native.Options{CodexHome: t.TempDir(), Tools: tt.tools, Overrides: map[string]any{
				"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(), "model_providers.p.wire_api": tt.wire, "tools.view_image": false,
			}})}
			turn(t, b.start(t, &host{}, protocol.Config{}), say("go"))
			body := model.Requests()[0].Body
			names, size := offered(t, body)
			must.Equal(t, "tools", tt.want, names)
			t.Logf("%d bytes of tools, %d of the request", size, len(body))
			if size > 4*2500 {
				t.Errorf("the tools have %d bytes", size)
			}
			must.Equal(t, "several calls are allowed", tt.wire == "responses" && tt.want == files, strings.Contains(string(body), `"parallel_tool_calls":true`))
			must.Equal(t, "the instructions explain patches", tt.want != files, strings.Contains(string(body), "*** Begin Patch"))
		})
	}
	if _, err := native.New(&native.Options{CodexHome: t.TempDir(), Tools: "all"}); err == nil {
		t.Error("unknown tools are accepted")
	}
}
