package main

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/pelletier/go-toml/v2"
)

// effect is what a configuration of a page changes under the defaults.
type effect struct {
	page, has     string // the page, and words of the block that no entry before has
	without, with string // what play sees without the block, and with it
	play          func(s *documented) string
}

// effects has an entry for each TOML block in docs/use, but those of models.md, which [modelEffect] plays.
var effects = []effect{
	{"approvals.md", `full_access = "deny"`, "client", "", func(s *documented) string {
		return s.places("test", `{"prompt":"go","sandbox":"danger-full-access"}`)
	}},
	{"approvals.md", `claude-code = "page"`, "client", "page", func(s *documented) string { return s.places("claude-code", askedAbout) }},
	{"approvals.md", `claude-code = "page"`, "client", "client and page", func(s *documented) string { return s.places("another", askedAbout) }},
	{"approvals.md", `outside = true`, "client", "it ran", func(s *documented) string { return s.leaves() }},
	{"recipes.md", `outside = true`, "client", "it ran", func(s *documented) string { return s.leaves() }},
	{"recipes.md", `curl`, "", "-s -d codex-mcp waits for you https://ntfy.sh/my-topic-1b9d", func(s *documented) string { return s.notified("curl") }},
	{"recipes.md", `mail -s`, "", "-s codex-mcp waits for you me@example.com", func(s *documented) string { return s.notified("mail") }},
	{"recipes.md", `notify-send`, "", "codex-mcp It has news", func(s *documented) string { return s.notified("notify-send") }},
	{"page.md", `page_origin`, "no page", "https://approvals.example.com", func(s *documented) string { return s.link() }},
	{"page.md", `page_port = 8765`, "no page", "http://127.0.0.1:8765", func(s *documented) string { return s.link() }},
	{"questions.md", `network_access`, "none", "folder cache network", func(s *documented) string { return s.reaches() }},
	{"hosts/codex.md", `mcp_servers`, "client", "client and page", func(s *documented) string {
		var of struct { // Codex's file, not ours: Codex starts this
			Servers map[string]struct {
				Command string
				Args    []string
			} `toml:"mcp_servers"`
		}
		if err := toml.Unmarshal([]byte(s.block), &of); err != nil || s.block != "" && of.Servers["codex"].Command != "codex-mcp" {
			s.t.Fatal(of, err)
		}
		s.block, s.args = "", of.Servers["codex"].Args
		return s.places("codex-mcp-client", askedAbout)
	}},
}

// askedAbout are the arguments of a call whose command is asked about.
const askedAbout = `{"prompt":"go","approval-policy":"untrusted"}`

// TestDocsEffects runs every TOML block of docs/use under the defaults of the native engine, and shows
// that something else happens than without it.
func TestDocsEffects(t *testing.T) {
	boxtest.Need(t)
	played := map[string]bool{}
	documents(t, func(file, text string) {
		page, ok := strings.CutPrefix(filepath.ToSlash(file), root+"/docs/use/")
		if !ok {
			return
		}
		for _, block := range blocks(text, "toml") {
			found := ""
			if page == "models.md" {
				found = page
				t.Run(page+" "+regexp.MustCompile(`model_provider = "(.*)"`).FindStringSubmatch(block)[1], func(t *testing.T) { modelEffect(t, block) })
			}
			for _, e := range effects {
				if e.page != page || found != "" && found != e.has || !strings.Contains(block, e.has) {
					continue
				}
				found, played[e.page+e.has] = e.has, true
				for _, tt := range []struct{ block, want string }{{"", e.without}, {block, e.with}} {
					t.Run(page+" "+cmp.Or(tt.want, "nothing"), func(t *testing.T) {
						if got := e.play(newDocumented(t, tt.block, tt.want)); got != tt.want {
							t.Errorf("%q, want %q, with %s", got, tt.want, tt.block)
						}
					})
				}
			}
			if found == "" {
				t.Errorf("no test shows the effect of this block of %s:\n%s", file, block)
			}
		}
	})
	for _, e := range effects {
		if !played[e.page+e.has] {
			t.Errorf("%s has no block with %s", e.page, e.has)
		}
	}
}

// documented is a server with the configuration of a page.
type documented struct {
	folders
	t     *testing.T
	block string
	want  string
	args  []string
	port  string // takes the place of the page's
	model *providertest.Server
	p     *process
}

func newDocumented(t *testing.T, block, want string) *documented {
	t.Helper()
	top := boxtest.Outside(t) // commands can write to temporary folders
	s := &documented{t: t, block: block, want: want, port: freePort(t), model: providertest.New()}
	s.folders = folders{home: filepath.Join(top, "home"), cwd: filepath.Join(top, "work"), user: filepath.Join(top, "user"), path: filepath.Join(top, "tools")}
	for _, dir := range []string{s.home, s.cwd, s.path, filepath.Join(s.user, ".cache", "go-build"), filepath.Join(s.user, ".npm")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.model.Close)
	return s
}

// start writes the files and starts the server for a client. Its model calls the tools.
func (s *documented) start(client string, calls ...providertest.ToolCall) {
	s.t.Helper()
	block := strings.NewReplacer("/home/you", s.user, "8765", s.port).Replace(s.block)
	var keys map[string]any
	if err := toml.Unmarshal([]byte(block), &keys); err != nil {
		s.t.Fatal(err)
	}
	ours := false
	for key, value := range keys {
		_, table := value.(map[string]any)
		ours = ours || config.Ours(key) || key == "notify" && table
	}
	if ours {
		if err := os.WriteFile(filepath.Join(s.home, config.SettingsFile), []byte(block), 0o600); err != nil {
			s.t.Fatal(err)
		}
		block = ""
	}
	writeConfig(s.t, s.home, fmt.Sprintf("model = \"m\"\nmodel_provider = \"mock\"\n%s\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\n", block, s.model.BaseURL()))
	for _, call := range calls {
		s.model.Add(providertest.Call(call))
	}
	s.model.Add(providertest.Say("done"))
	s.p = start(s.t, s.folders, append([]string{"--engine", "native"}, s.args...)...)
	s.p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":%q,"version":"1"}}}`, client))
	s.p.expect(map[string]any{"id": 0.0, "result": "*"}, map[int]bool{})
	s.p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// call calls the tool codex and declines what the client is asked. It returns how often that was.
func (s *documented) call(arguments string) (asked int) {
	s.t.Helper()
	s.p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":` + arguments + `}}`)
	for seen := map[int]bool{}; ; asked++ {
		m := s.p.await("a question or the result", seen, func(m map[string]any) bool {
			return m["method"] == "elicitation/create" || m["id"] == 1.0 && m["result"] != nil
		})
		if m["method"] == nil {
			return asked
		}
		s.p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, dig(s.t, m, "id")))
	}
}

// link returns the origin of the link to the page.
func (s *documented) link() string {
	s.start("test")
	if pages, _ := os.ReadDir(filepath.Join(s.home, "codex-mcp", "run", "pages")); len(pages) == 0 {
		return "no page"
	}
	link, _, _ := strings.Cut(s.printed(), "/#")
	return strings.Replace(link, s.port, "8765", 1)
}

// printed returns the first link that the server prints.
func (s *documented) printed() (link string) {
	until(s.t, "the link was not printed", func() bool { // standard error has a reader of its own
		_, rest, _ := strings.Cut(s.p.errors(), "see and decide at ")
		var ok bool
		link, _, ok = strings.Cut(rest, "\n")
		return ok
	})
	return link
}

// places returns where a call is asked about, and declines there.
func (s *documented) places(client, arguments string) string {
	s.start(client, providertest.Shell("c", "touch", "made"))
	if !strings.Contains(s.want, "page") {
		if s.call(arguments) > 0 {
			return "client"
		}
		return ""
	}
	v := visit(s.t, s.printed())
	s.p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":` + arguments + `}}`)
	open, asked := v.await("open"), map[string]any{"method": "elicitation/create"}
	if strings.Contains(s.want, "client") {
		s.p.expect(asked, map[int]bool{})
	}
	v.answer(open.ID, `{"action":"decline"}`)
	s.p.expect(map[string]any{"id": 1.0, "result": "*"}, map[int]bool{})
	for _, m := range s.p.messages() {
		if contains(m, asked) {
			return "client and page"
		}
	}
	return "page"
}

// leaves has the model ask to run gh outside of the sandbox.
func (s *documented) leaves() string {
	s.program("gh")
	s.start("test", providertest.Tool("c", "shell", map[string]any{"command": []string{"gh", "pr", "view", "12"}, "with_escalated_permissions": true, "justification": "to read it"}))
	if s.call(`{"prompt":"go"}`) > 0 {
		return "client"
	}
	if s.said("gh") == "pr view 12" {
		return "it ran"
	}
	return "it did not run"
}

// notified has a question open, and returns the arguments of the program that tells of it.
func (s *documented) notified(name string) (said string) {
	s.program(name)
	s.start("test", providertest.Shell("c", "touch", "made"))
	s.p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":` + askedAbout + `}}`)
	s.p.expect(map[string]any{"method": "elicitation/create"}, map[int]bool{})
	if s.want != "" {
		until(s.t, name+" was not started", func() bool { said = s.said(name); return said != "" })
	}
	return said
}

// reaches returns what a command can write and reach.
func (s *documented) reaches() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	script := `touch here && echo folder; touch "$HOME/.cache/go-build/x" "$HOME/.npm/x" && echo cache; exec 3<>/dev/tcp/127.0.0.1/` + port + ` && echo network`
	s.start("test", providertest.Shell("c", "bash", "-c", "("+script+") 2>/dev/null; true"))
	s.call(`{"prompt":"go"}`)
	requests := s.model.Requests()
	var found []string
	for _, word := range []string{"folder", "cache", "network"} {
		if regexp.MustCompile(`\b` + word + `\b`).MatchString(requests[len(requests)-1].LastToolOutput()) {
			found = append(found, word)
		}
	}
	return cmp.Or(strings.Join(found, " "), "none")
}

// program makes a program that writes down its arguments.
func (s *documented) program(name string) {
	s.t.Helper()
	text := "#!/bin/sh\necho \"$@\" >\"${0%/*}/" + name + ".tmp\" && mv \"${0%/*}/" + name + ".tmp\" \"${0%/*}/" + name + ".said\"\n"
	if err := os.WriteFile(filepath.Join(s.path, name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *documented) said(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.path, name+".said")) // "" until it has run
	return strings.TrimSpace(string(b))
}

// modelEffect runs a configuration of a model: its request reaches the address that the page names,
// with model, key and headers, and the turn knows the context window. Without it there is no key.
func modelEffect(t *testing.T, block string) {
	var want struct {
		Model     string
		Provider  string  `toml:"model_provider"`
		Window    float64 `toml:"model_context_window"`
		Providers map[string]struct {
			BaseURL string            `toml:"base_url"`
			EnvKey  string            `toml:"env_key"`
			Headers map[string]string `toml:"http_headers"`
		} `toml:"model_providers"`
	}
	if err := toml.Unmarshal([]byte(block), &want); err != nil {
		t.Fatal(err)
	}
	provider := want.Providers[want.Provider]
	address, err := url.Parse(provider.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, with := range []string{"", strings.Replace(block, "://"+address.Host, "://HOST", 1)} {
		f := newFolders(t)
		model := providertest.New(providertest.Say("done"))
		t.Cleanup(model.Close)
		here := strings.TrimSuffix(model.BaseURL(), "/v1")
		writeConfig(t, f.home, strings.Replace(with, address.Scheme+"://HOST", here, 1))
		p := launch(t, f, exec.Command("env", cmp.Or(provider.EnvKey, "ANOTHER_KEY")+"=k3y", built(t), "--engine", "native"))
		p.hello(`{}`)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`)
		answer := p.expect(map[string]any{"id": 1.0, "result": "*"}, map[int]bool{})
		if with == "" {
			if len(model.Requests()) > 0 || !strings.Contains(line(answer), "OPENAI_API_KEY") {
				t.Errorf("without the configuration: %s", line(answer))
			}
			continue
		}
		var turns []providertest.Request
		for _, r := range model.Requests() { // others ask for the models
			if r.Method == "POST" {
				turns = append(turns, r)
			}
		}
		if len(turns) != 1 {
			t.Fatalf("%d requests, and the answer %s", len(turns), line(answer))
		}
		r := turns[0]
		if key := r.Header.Get("Authorization"); r.Path != address.Path+"/chat/completions" || r.Model() != want.Model || (key == "Bearer k3y") != (provider.EnvKey != "") {
			t.Errorf("%s for %q with the key %q", r.Path, r.Model(), key)
		}
		for name, value := range provider.Headers {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		began := p.expect(map[string]any{"params": map[string]any{"msg": map[string]any{"type": "task_started"}}}, map[int]bool{})
		if got, _ := began["params"].(map[string]any)["msg"].(map[string]any)["model_context_window"].(float64); got != want.Window { // null is 0, too
			t.Errorf("the context window is %v, want %v", got, want.Window)
		}
	}
}
