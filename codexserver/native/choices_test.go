package native_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const choicesSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// TestChoicesReachTheModel checks that the request has what the call chooses, and nothing that
// it does not choose.
func TestChoicesReachTheModel(t *testing.T) {
	const image = "data:image/png;base64,iVBORw0KGgo="
	for wire, want := range map[string][]string{
		"chat": {
			`{"type":"image_url","image_url":{"url":"` + image + `"}},{"type":"image_url","image_url":{"url":"` + image + `"}}`, `"reasoning_effort":"high"`,
			`"response_format":{"type":"json_schema","json_schema":{"name":"codex_output_schema","strict":true,"schema":` + choicesSchema + `}}`,
		},
		"responses": {
			`{"type":"input_image","image_url":"` + image + `"},{"type":"input_image","image_url":"` + image + `"}`, `{"type":"web_search"}`, `"reasoning":{"effort":"high"}`,
			`"text":{"format":{"type":"json_schema","name":"codex_output_schema","strict":true,"schema":` + choicesSchema + `}}`,
		},
	} {
		t.Run(wire, func(t *testing.T) {
			b := setup(t, "model_reasoning_effort = \"medium\"\n---\nwire_api = \""+wire+"\"", native.Limits{},
				providertest.Say("plain"), providertest.Say(`{"n":1}`), providertest.Say("plain"), providertest.Say("resumed"))
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
			inOrder(t, lastRequest(b), want...)
			turn(t, c, say("next"))
			if got := lastRequest(b); strings.Contains(got, "json_schema") || !strings.Contains(got, `"high"`) {
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
	on, off := protocol.Config{WebSearch: new(true)}, protocol.Config{WebSearch: new(false)}
	for _, tt := range []struct {
		name, extra string
		cfg         protocol.Config
		want, fails string // "" is no web search
	}{
		{"built-in instructions", "", none, `"role":"system","content":"You are Codex, a coding agent.`, ""},
		{"the caller's instructions", "", protocol.Config{BaseInstructions: new("Be a poet.")}, `"role":"system","content":"Be a poet.`, ""},
		{"a file's instructions", `experimental_instructions_file = "base.md"`, none, `"role":"system","content":"Be a painter.`, ""},
		{"the call's effort, unknown model", `model_reasoning_effort = "medium"`, protocol.Config{Effort: "low"}, `"reasoning_effort":"low"`, ""},
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, tt.extra, native.Limits{}, providertest.Say("ok"))
			write(t, filepath.Join(b.cwd, "base.md"), "Be a painter.\n")
			tt.cfg.Cwd, tt.cfg.FromCall = b.cwd, true
			c, err := b.engine.Start(t.Context(), tt.cfg, &host{})
			if tt.fails != "" {
				if !as[*engine.ConfigError](err) || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
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
	path := b.first(t, protocol.Config{WebSearch: new(true)})
	change(t, filepath.Join(b.home, "config.toml"), "#mode", `web_search = "disabled"`)
	b.reopen(t)
	says(t, b.resume(t, path, protocol.Config{}, &host{}), "again")
	without(t, lastRequest(b), "web_search")
}

// TestAnswerOfAForm checks that the model is asked once to correct an answer that does not fit
// the schema.
func TestAnswerOfAForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		answers  []string
		requests int
		last     string
	}{
		{"fits", []string{`{"n":1}`}, 1, `{"n":1}`},
		{"fits the second time", []string{`{"n":"one"}`, `{"n":1}`}, 2, `{"n":1}`},
		{"never fits", []string{"one", "two", "three"}, 2, "two"},
		{"empty answer", []string{"", `{"n":1}`}, 2, `{"n":1}`},
	} {
		for _, wire := range []string{"chat", "responses"} {
			t.Run(tt.name+" "+wire, func(t *testing.T) {
				b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{})
				for _, text := range tt.answers {
					b.provider.Add(providertest.Say(text))
				}
				h := &host{}
				c := b.start(t, h, protocol.Config{})
				in := say("count")
				in.OutputSchema = json.RawMessage(choicesSchema)
				turn(t, c, in)
				diff(t, "requests", tt.requests, len(b.provider.Requests()))
				diff(t, "last event", "task_complete "+tt.last, h.last())
				corrected := strings.Contains(lastRequest(b), "Your answer does not fit the JSON schema")
				if corrected != (tt.requests == 2) {
					t.Errorf("the model was asked for a correction: %v: %s", corrected, lastRequest(b))
				}
				if tt.name == "fits the second time" {
					inOrder(t, lastRequest(b), "at /n: got string, want integer")
				}
			})
		}
	}
	b := setup(t, "", native.Limits{})
	in := say("count")
	in.OutputSchema = json.RawMessage(`{"$ref":"http://127.0.0.1:1/schema"}`)
	if err := b.start(t, &host{}, protocol.Config{}).Turn(t.Context(), in); !as[*engine.TurnError](err) || len(b.provider.Requests()) != 0 {
		t.Errorf("a schema that refers to another document: %v, %d requests", err, len(b.provider.Requests()))
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
		l, err := e.Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range l.Models {
			names = append(names, fmt.Sprint(m.Name, m.Profiles, m.Efforts, m.DefaultEffort, m.IsDefault))
		}
		return names, strings.Join(l.Notes, "\n")
	}
	own := []string{"gpt-5[same] [minimal low medium high]hightrue", "mine[new old] []false"}
	status, answer = 200, `{"object":"list","data":[{"id":"o3"},{"id":"gpt-5"},{"id":""},{"id":"x"}]}`
	names, notes := list()
	diff(t, "models", append(own[:2:2], "o3[] [low medium high]false", "x[] []false"), names)
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
