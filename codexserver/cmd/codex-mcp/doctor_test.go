package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

func TestDoctor(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	local := fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = %q\n", model.BaseURL())
	for _, tt := range []struct {
		name, config string
		code         int
		want         string // in the screen
		problem      string // in the JSON
	}{
		{"fine", local, 0, "tasks can run", ""},
		{"no key", local + "env_key = \"CODEXMCP_TEST_NO_SUCH_KEY\"\n", 1, "or set CODEXMCP_TEST_NO_SUCH_KEY to a key", "the model provider needs a key: set CODEXMCP_TEST_NO_SUCH_KEY"},
		{"no answer", strings.Replace(local, model.BaseURL(), "http://127.0.0.1:1/v1", 1), 1, "to do          mend what the first line names", "no model server listens at http://127.0.0.1:1/v1/models: start it"},
		{"broken file", "model = \n", 1, "config.toml", "config.toml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("CODEX_HOME", home)
			writeConfig(t, home, tt.config)
			var screen, data, stderr bytes.Buffer
			if code := run(t.Context(), "codex-mcp", []string{"-engine", "native", "doctor"}, &screen, &stderr); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			if !strings.Contains(screen.String(), tt.want) {
				t.Errorf("the screen lacks %q:\n%s", tt.want, &screen)
			}
			if code := run(t.Context(), "codex-mcp", []string{"doctor", "-json", "-engine", "native"}, &data, &stderr); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			var d diagnosis
			if err := json.Unmarshal(data.Bytes(), &d); err != nil {
				t.Fatalf("%v:\n%s", err, &data)
			}
			if (d.Problem == "") != (tt.problem == "") || !strings.Contains(d.Problem, tt.problem) {
				t.Errorf("problem %q, want %q", d.Problem, tt.problem)
			}
		})
	}
}

// TestDoctorCauses runs doctor with providers and proxies of which no turn can run, and with some of
// which one can: the exit status and the first line say so. Without a connection ask says the same, in
// one line and in three seconds.
func TestDoctorCauses(t *testing.T) {
	t.Parallel()
	const list = `{"data":[{"id":"good-model"},{"id":"other"}]}`
	good := func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer secret-key-1" }
	serve := func(answer func(w http.ResponseWriter, r *http.Request) (status int, body string)) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, body := answer(w, r)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	always := func(status int, body string) string {
		return serve(func(http.ResponseWriter, *http.Request) (int, string) { return status, body })
	}
	// whole is a provider with a list, which wants the key for turns, and for the list if it is not public.
	whole := func(list string, public bool) string {
		return serve(func(_ http.ResponseWriter, r *http.Request) (int, string) {
			switch listed := r.Method == http.MethodGet; {
			case !good(r) && !(listed && public):
				return 401, `{"error":{"message":"Incorrect key: ` + r.Header.Get("Authorization") + `"}}`
			case listed && r.URL.Path == "/models/alias":
				return 200, `{"id":"good-model"}`
			case listed && r.URL.Path == "/models":
				return 200, list
			case listed:
				return 404, ""
			}
			return 400, `{"error":{"message":"there is no model"}}`
		})
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	proxy := func(at string) string { return "HTTP_PROXY=http://me:hunter2@" + at }
	for name, tt := range map[string]struct {
		at, model, env string
		keys           string // of the provider, besides its address; "" names a variable
		code           int
		want           string // in the first line
		ask            bool   // it does not connect
	}{
		"fine":               {at: whole(list, false), want: "tasks can run"},
		"fine, public list":  {at: whole(list, true), want: "tasks can run"},
		"an alias":           {at: whole(list, false), model: "alias", want: "tasks can run"},
		"a variant":          {at: whole(list, false), model: "other:online", want: "tasks can run"},
		"a name with latest": {at: whole(`{"data":[{"id":"good-model:latest"}]}`, false), want: "tasks can run"},
		"Gemini's names":     {at: whole(`{"data":[{"id":"models/good-model"}]}`, false), want: "tasks can run"},
		"llama.cpp":          {at: whole(`{"data":[{"id":"/m.gguf","owned_by":"llamacpp"}]}`, false), want: "tasks can run"},
		"an empty list":      {at: whole(`{"data":[]}`, false), want: "tasks can run"},
		"no list, 404":       {at: always(404, "nothing here"), want: "tasks can run"},
		"no list, 405":       {at: always(405, ""), want: "tasks can run"},
		"a list of its own":  {at: always(200, `[{"id":"x"}]`), want: "tasks can run"},
		"a key for turns": {at: serve(func(_ http.ResponseWriter, r *http.Request) (int, string) {
			if r.Method == http.MethodGet {
				return 403, `{"error":{"message":"Missing scopes: api.model.read"}}`
			}
			return 400, ""
		}), want: "tasks can run"},
		"a refused key":              {at: whole(list, false), env: "KEY=wrong-key-22", code: 1, want: "the provider refuses the key (401 Unauthorized: Incorrect key: Bearer [redacted]): set the environment variable KEY to a valid key"},
		"a refused key, public list": {at: whole(list, true), env: "KEY=wrong-key-22", code: 1, want: "the provider refuses the key (401 Unauthorized"},
		"a refused key, no list": {at: serve(func(_ http.ResponseWriter, r *http.Request) (int, string) {
			if r.Method == http.MethodGet {
				return 404, ""
			}
			return 401, "no"
		}), code: 1, want: "the provider refuses the key (401 Unauthorized: no)"},
		"a refused key in a header":                {at: always(401, "no"), keys: `http_headers = {X-Key = "wrong-key-22"}`, code: 1, want: "the provider refuses the key (401 Unauthorized: no): correct the key in the provider's http_headers"},
		"a refused key in a variable for a header": {at: always(401, "no"), keys: `env_http_headers = {X-Key = "KEY"}`, code: 1, want: "the provider refuses the key (401 Unauthorized: no): correct the key in KEY, which"},
		"no key":                {at: always(401, "no"), keys: "name = 'x'", code: 1, want: "the provider wants a key (401 Unauthorized: no)"},
		"a key refused by 400":  {at: always(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), code: 1, want: "the provider refuses the key (400 Bad Request: "},
		"another 400":           {at: always(400, `{"error":{"message":"there is no model"}}`), want: "tasks can run"},
		"a proxy with a log-in": {at: "http://model.invalid", env: proxy(strings.TrimPrefix(always(407, ""), "http://")), code: 1, want: "wants a log-in (407 Proxy Authentication Required): put a name and a password into HTTP_PROXY"},
		"a proxy that hangs up": {at: "http://model.invalid", env: proxy(strings.TrimPrefix(serve(func(http.ResponseWriter, *http.Request) (int, string) { panic(http.ErrAbortHandler) }), "http://")), code: 1, want: "no answer of model.invalid comes through the proxy 127.0.0.1:"},
		"no such model":         {at: whole(list, false), model: "good-mdel", code: 1, want: `the provider does not list the model "good-mdel": choose one of its models; do you mean good-model?`},
		"a login page":          {at: always(200, "<html><title>Hotel</title>"), code: 1, want: "the answer is an HTML page, perhaps the login page of a proxy or a network, or base_url is wrong: Hotel"},
		"no credit":             {at: always(402, `{"error":{"message":"buy some"}}`), code: 1, want: "the provider answered 402 Payment Required: buy some"},
		"not now":               {at: always(503, "later"), code: 1, want: "the provider answered 503 Service Unavailable: later"},
		"elsewhere": {at: serve(func(w http.ResponseWriter, _ *http.Request) (int, string) {
			w.Header().Set("Location", "http://login.invalid/")
			return 302, ""
		}), code: 1, want: "redirects to another host, http://login.invalid"},
		"nothing listens":       {at: closed.URL, code: 1, want: "no model server listens at " + closed.URL, ask: true},
		"no name":               {at: "http://model.invalid", code: 1, want: "the name model.invalid cannot be resolved: there is no network, or a proxy is needed (set HTTP_PROXY)", ask: true},
		"an unknown authority":  {at: secure.URL, code: 1, want: "has an unknown authority, perhaps of a company's proxy: set CODEX_CA_CERTIFICATE or SSL_CERT_FILE", ask: true},
		"a dead proxy":          {at: "http://model.invalid", env: proxy(closed.Listener.Addr().String()), code: 1, want: "the proxy " + closed.Listener.Addr().String() + " does not answer (connection refused): correct or unset HTTP_PROXY", ask: true},
		"no address of a proxy": {at: "http://model.invalid", env: "HTTP_PROXY=ht tp://me:hunter2@proxy", code: 1, want: "HTTP_PROXY is no address of a proxy: correct or unset it", ask: true},
		"silence":               {at: "http://" + mute.Addr().String(), code: 1, want: "no answer within 5s"},
		"a silent proxy":        {at: "https://model.invalid", env: "HTTPS_PROXY=http://" + mute.Addr().String(), code: 1, want: "the proxy " + mute.Addr().String() + " does not answer (no connection within 5s)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.model == "" {
				tt.model = "good-model"
			}
			if tt.keys == "" {
				tt.keys = `env_key = "KEY"`
			}
			f := newFolders(t)
			writeConfig(t, f.home, fmt.Sprintf("model = %q\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\n%s\n", tt.model, tt.at, tt.keys))
			start := func(words ...string) (code int, out string) {
				cmd := exec.CommandContext(t.Context(), built(t), append([]string{"--engine", "native"}, words...)...)
				cmd.Dir, cmd.Env = f.cwd, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home, "KEY=secret-key-1", tt.env}
				all, err := cmd.CombinedOutput()
				if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
					t.Fatal(err)
				}
				for _, secret := range []string{"hunter2", "secret-key-1", "wrong-key-22"} {
					if bytes.Contains(all, []byte(secret)) {
						t.Errorf("%q shows a secret:\n%s", words, all)
					}
				}
				return cmd.ProcessState.ExitCode(), string(all)
			}
			code, screen := start("doctor")
			if first, _, _ := strings.Cut(screen, "\n"); code != tt.code || !strings.Contains(first, tt.want) {
				t.Errorf("exit status %d, want %d and %q:\n%s", code, tt.code, tt.want, screen)
			}
			if !tt.ask {
				return
			}
			began := time.Now()
			_, said := start("ask", "hi")
			want, _, _ := strings.Cut(tt.want, ": ")
			if took := time.Since(began); strings.Count(strings.TrimSpace(said), "\n") > 2 || !strings.Contains(said, strings.TrimSuffix(want, "/models")) || took > 3*time.Second {
				t.Errorf("ask took %v:\n%s", took, said)
			}
		})
	}
}

// TestDoctorPlaces checks what doctor says about files: where the conversations and logs are, and where
// commands can write temporary files, which no folder is that holds $CODEX_HOME.
func TestDoctorPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no sandbox")
	}
	outer := t.TempDir()
	for _, tt := range []struct{ tmp, home, want string }{
		{filepath.Join(outer, "tmp"), filepath.Join(outer, "home"), "in the folder of the task and, for temporary files, in " + filepath.Join(outer, "tmp") + ", and has"},
		{outer, filepath.Join(outer, "home"), "in the folder of the task (nowhere for temporary files"},
	} {
		for _, dir := range []string{tt.tmp, tt.home} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("CODEX_HOME", tt.home)
		t.Setenv("TMPDIR", tt.tmp)
		var screen, stderr bytes.Buffer
		run(t.Context(), "codex-mcp", []string{"--engine", "native", "-c", "sandbox_mode=workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-c", "model_provider=oss", "doctor"}, &screen, &stderr)
		for _, want := range []string{tt.want, "are kept in " + filepath.Join(tt.home, "sessions"), "are recorded in " + filepath.Join(tt.home, "codex-mcp", "approvals.log"), "goes to standard error"} {
			if !strings.Contains(screen.String(), want) && !strings.Contains(screen.String(), "no sandbox works") {
				t.Errorf("the screen lacks %q:\n%s", want, &screen)
			}
		}
	}
}

// TestDoctorBrokenRules names a file of accepted rules that cannot be read. Turns can run without
// it; more is asked.
func TestDoctorBrokenRules(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	writeConfig(t, home, fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = %q\n", model.BaseURL()))
	file := filepath.Join(home, "codex-mcp", "rules.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, broken := range map[string]bool{`{"version":3,"rules":null}`: false, `{"version":3,`: true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var screen, stderr bytes.Buffer
		code := run(t.Context(), "codex-mcp", []string{"-engine", "native", "doctor"}, &screen, &stderr)
		row := regexp.MustCompile(`(?m)^warning +` + regexp.QuoteMeta(file) + `: .*; none of these rules counts$`)
		if code != 0 || row.MatchString(screen.String()) != broken {
			t.Errorf("%s: exit status %d:\n%s", text, code, &screen)
		}
	}
}

// TestDoctorBrokenConfiguration checks that doctor never calls a broken configuration fine:
// it names the file, the line and the key, and no package of ours.
func TestDoctorBrokenConfiguration(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{
		{"config.toml", "model = \n", ":1:9: unexpected character"},
		{"config.toml", "\nmodel = 7\n", ":2: model: want a string, have a number"},
		{"config.toml", "sandbox_mode = \"none\"\n", ":1: sandbox_mode: "},
		{"codex-mcp.toml", "[approvals]\ntimeout = \n", ":2:11: unexpected character"},
		{"codex-mcp.toml", "[approvals]\non_error = \"approve\"\n", ":2: approvals.on_error: "},
		{"codex-mcp.toml", "[approvals]\non_errr = \"deny\"\n", ":2: approvals.on_errr: unknown key"},
	} {
		home := t.TempDir()
		t.Setenv("CODEX_HOME", home)
		path := filepath.Join(home, tt.file)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"native", "auto"} {
			var data, screen, stderr bytes.Buffer
			args := []string{"-engine", engine, "-codex", filepath.Join(home, "none"), "doctor"}
			if code := run(t.Context(), "codex-mcp", args, &screen, &stderr); code != 1 {
				t.Errorf("%s: exit status %d", tt.text, code)
			}
			if code := run(t.Context(), "codex-mcp", append(args, "-json"), &data, &stderr); code != 1 {
				t.Errorf("%s: exit status %d", tt.text, code)
			}
			var d diagnosis
			if err := json.Unmarshal(data.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]string{"configuration": d.Configuration, "problem": d.Problem} {
				if !strings.HasPrefix(got, path+tt.want) {
					t.Errorf("%s is %q, want %q", name, got, path+tt.want)
				}
			}
			if !strings.Contains(screen.String(), "no task can run: "+d.Configuration+"\n") || strings.Contains(screen.String(), "connection: ") {
				t.Errorf("the screen:\n%s", &screen)
			}
		}
	}
}

// TestDoctorUnknownKeys: an unknown key is probably misspelt, but turns can run.
func TestDoctorUnknownKeys(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	text := fmt.Sprintf("modle = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nbase_url = %q\n", model.BaseURL())
	writeConfig(t, home, text)
	var screen, stderr bytes.Buffer
	if code := run(t.Context(), "codex-mcp", []string{"-engine", "native", "doctor"}, &screen, &stderr); code != 0 {
		t.Errorf("exit status %d:\n%s", code, &screen)
	}
	want := "unknown key: " + filepath.Join(home, "config.toml") + ":1: modle: do you mean model?\n"
	if !strings.Contains(screen.String(), want) {
		t.Errorf("the screen lacks %q:\n%s", want, &screen)
	}
}

// TestDoctorFailover shows where a turn goes on, and why it cannot.
func TestDoctorFailover(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	writeConfig(t, home, fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nbase_url = %q\n[model_providers.paid]\nbase_url = %[1]q\nenv_key = \"CODEXMCP_TEST_NO_SUCH_KEY\"\n", model.BaseURL()))
	settings := `failover.to = [{provider="local",model="n"},{provider="paid",model="p"},{provider="none",model="x"}]`
	if err := os.WriteFile(filepath.Join(home, "codex-mcp.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	var screen, stderr bytes.Buffer
	args := []string{"-engine", "native", "doctor", "--json"}
	if code := run(t.Context(), "codex-mcp", args, &screen, &stderr); code != 0 {
		t.Errorf("exit status %d:\n%s%s", code, &screen, &stderr)
	}
	for _, want := range []string{
		`"model \"n\" of provider \"local\""`, `"model \"p\" of provider \"paid\": Missing environment variable: ` + "`CODEXMCP_TEST_NO_SUCH_KEY`.",
		`"model \"x\" of provider \"none\": it is not in model_providers"`,
	} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the screen lacks %q:\n%s", want, &screen)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	for _, tt := range []struct {
		args string
		code int
		want string // on stderr or stdout
	}{
		{"-version", 0, "codex-mcp"},
		{"-nosuch", 2, "nosuch"},
		{"serve", 2, `unknown command "serve"; do you mean http?`},
		{"mcp server", 2, `unknown command "server" for "codex-mcp mcp"`},
		{"-engine other", 2, "want auto, codex or native"},
		{"-c novalue", 1, "novalue"},
		{"mcp-server -c approvals.timeout=soon", 1, "approvals.timeout"},
		{"-c approvals.on_error=approve mcp serve", 1, "on_error"},
		{"-log loud", 2, `invalid argument "loud" for "--log" flag: want debug, info, warn or error`},
		{"-log INFO -version", 0, "codex-mcp"},
		{"--help", 0, "Usage:"}, {"-h", 0, "Usage:"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), "codex-mcp", strings.Fields(tt.args), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stdout.String()+stderr.String(), tt.want) {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.want, &stdout, &stderr)
		}
		if tt.code == 1 && stdout.Len() > 0 {
			t.Errorf("%s: stdout holds %q", tt.args, &stdout)
		}
	}
}

// TestSameAbilities checks that both engines have every optional part, and that docs/use/engines.md names
// each as doctor does.
func TestSameAbilities(t *testing.T) {
	type whole interface {
		engine.Resumer
		engine.Library
		engine.Accounts
		engine.Searcher
	}
	for _, e := range []whole{(*native.Engine)(nil), (*appserver.Engine)(nil)} {
		_ = e
	}
	page, err := os.ReadFile("../../../docs/use/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range abilities {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), what) {
			t.Errorf("the page does not have %q", what)
		}
	}
}

// TestDoctorOnTerminal checks that a terminal gets rows that it need not break.
func TestDoctorOnTerminal(t *testing.T) {
	const problem = "codex not found: install it with `npm i -g @openai/codex`, or name the program with --codex or CODEX_BIN"
	d := &diagnosis{Engine: "native", Configuration: problem}
	for width, want := range map[int]string{
		60: `result         tasks can run, with the native engine
warning        codex not found: install it with ` + "`npm i -g" + `
               @openai/codex` + "`" + `, or name the program with
               --codex or CODEX_BIN
more           codex-mcp doctor --json has each check
`,
		0: `result         tasks can run, with the native engine
warning        ` + problem + `
more           codex-mcp doctor --json has each check
`,
	} {
		var screen bytes.Buffer
		d.print(&screen, width)
		if diff := cmp.Diff(want, screen.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}
