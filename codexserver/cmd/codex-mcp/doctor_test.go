package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestDoctorCauses runs doctor with providers and proxies of which no turn can run, and with some of which one can: the exit
// status and the first line say so.
func TestDoctorCauses(t *testing.T) {
	t.Parallel()
	const list, window = `{"data":[{"id":"good-model"},{"id":"other"}]}`, `{"data":[{"id":"good-model","meta":{"n_ctx":8192}}]}`
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
	// split answers requests for its list and turns.
	split := func(list int, listed string, turn int, said string) string {
		return serve(func(_ http.ResponseWriter, r *http.Request) (int, string) {
			if r.Method == http.MethodGet {
				return list, listed
			}
			return turn, said
		})
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
	mute := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { mute.Close() })
	taken := must.Get(net.Dial("tcp", mute.Addr().String()))(t)
	t.Cleanup(func() { taken.Close() })
	closed := taken.LocalAddr().String() // nobody can listen there
	proxy := func(at string) string { return "HTTP_PROXY=http://me:hunter2@" + at }
	for name, tt := range map[string]struct {
		at, model, env string
		keys           string // of the provider, besides its address; "" names a variable
		args           string // of doctor
		code           int
		want           string // in the first line
	}{
		"fine":                       {at: whole(list, false), want: "tasks can run"},
		"the server's window":        {at: whole(window, false), args: "-c model_context_window=8192", want: "tasks can run, with"},
		"a larger window":            {at: whole(window, false), args: "-c model_context_window=65536", code: 1, want: "model_context_window: 65536, and the server takes 8192 tokens: remove the key"},
		"fine, public list":          {at: whole(list, true), want: "tasks can run"},
		"an alias":                   {at: whole(list, false), model: "alias", want: "tasks can run"},
		"a variant":                  {at: whole(list, false), model: "other:online", want: "tasks can run"},
		"a name with latest":         {at: whole(`{"data":[{"id":"good-model:latest"}]}`, false), want: "tasks can run"},
		"Gemini's names":             {at: whole(`{"data":[{"id":"models/good-model"}]}`, false), want: "tasks can run"},
		"llama.cpp":                  {at: whole(`{"data":[{"id":"/m.gguf","owned_by":"llamacpp"}]}`, false), want: "tasks can run"},
		"an empty list":              {at: whole(`{"data":[]}`, false), want: "tasks can run"},
		"no list, 404":               {at: always(404, "nothing here"), want: "tasks can run"},
		"no list, 405":               {at: always(405, ""), want: "tasks can run"},
		"a list of its own":          {at: always(200, `[{"id":"x"}]`), want: "tasks can run"},
		"a key for turns":            {at: split(403, `{"error":{"message":"Missing scopes: api.model.read"}}`, 400, ""), want: "tasks can run"},
		"a refused key":              {at: whole(list, false), env: "KEY=wrong-key-22", code: 1, want: "the provider refuses the key (401 Unauthorized: Incorrect key: Bearer [redacted]): correct the key in the environment variable KEY"},
		"a refused key, public list": {at: whole(list, true), env: "KEY=wrong-key-22", code: 1, want: "the provider refuses the key (401 Unauthorized"},
		"a refused key, no list":     {at: split(404, "", 401, "no"), code: 1, want: "the provider refuses the key (401 Unauthorized: no)"},
		"a refused key in a header":  {at: always(401, "no"), keys: `http_headers = {X-Key = "wrong-key-22"}`, code: 1, want: "the provider refuses the key (401 Unauthorized: no): correct the key in the provider's http_headers"},
		"a refused key in a variable for a header": {at: always(401, "no"), keys: `env_http_headers = {X-Key = "KEY"}`, code: 1, want: "the provider refuses the key (401 Unauthorized: no): correct the key in KEY, which"},
		"no key in its variable":                   {at: whole(list, false), keys: `env_key = "NO_SUCH_KEY"`, code: 1, want: "the model provider needs a key: set NO_SUCH_KEY"},
		"a key of the file":                        {at: whole(list, false), keys: `env_key = "NO_SUCH_KEY"` + "\nexperimental_bearer_token = ' secret-key-1'", want: "tasks can run"},
		"a key of the file with a line end":        {at: whole(list, false), keys: `experimental_bearer_token = "secret-key-1\n"`, want: "tasks can run"},
		"a header with a line end":                 {at: whole(list, false), keys: `http_headers = { Authorization = "Bearer secret-key-1\r\n" }`, want: "tasks can run"},
		"no key":                                   {at: always(401, "no"), keys: "name = 'x'", code: 1, want: "the provider wants a key (401 Unauthorized: no)"},
		"a key refused by 400":                     {at: always(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), code: 1, want: "the provider refuses the key (400 Bad Request: "},
		"another 400":                              {at: always(400, `{"error":{"message":"there is no model"}}`), want: "tasks can run"},
		"a proxy with a log-in":                    {at: "http://model.invalid", env: proxy(strings.TrimPrefix(always(407, ""), "http://")), code: 1, want: "wants a log-in (407 Proxy Authentication Required): put a name and a password into HTTP_PROXY"},
		"a proxy that hangs up":                    {at: "http://model.invalid", env: proxy(strings.TrimPrefix(serve(func(http.ResponseWriter, *http.Request) (int, string) { panic(http.ErrAbortHandler) }), "http://")), code: 1, want: "no answer of model.invalid comes through the proxy 127.0.0.1:"},
		"no such model":                            {at: whole(list, false), model: "good-mdel", code: 1, want: `the provider does not list the model "good-mdel": choose one of its models; do you mean good-model?`},
		"a login page":                             {at: always(200, "<html><title>Hotel</title>"), code: 1, want: "the answer is an HTML page, perhaps the login page of a proxy or a network, or base_url is wrong: Hotel"},
		"no credit":                                {at: always(402, `{"error":{"message":"buy some"}}`), code: 1, want: "the provider answered 402 Payment Required: buy some"},
		"not now":                                  {at: always(503, "later"), code: 1, want: "the provider answered 503 Service Unavailable: later"},
		"elsewhere": {at: serve(func(w http.ResponseWriter, _ *http.Request) (int, string) {
			w.Header().Set("Location", "http://login.invalid/")
			return 302, ""
		}), code: 1, want: "redirects to another host, http://login.invalid"},
		"nothing listens":       {at: "http://" + closed, code: 1, want: "no model server listens at http://" + closed},
		"no name":               {at: "http://model.invalid", code: 1, want: "the name model.invalid cannot be resolved: there is no network, or a proxy is needed (set HTTP_PROXY)"},
		"an unknown authority":  {at: secure.URL, code: 1, want: "has an unknown authority, perhaps of a company's proxy: set CODEX_CA_CERTIFICATE or SSL_CERT_FILE"},
		"a dead proxy":          {at: "http://model.invalid", env: proxy(closed), code: 1, want: "the proxy " + closed + " does not answer (connection refused): correct or unset HTTP_PROXY"},
		"no address of a proxy": {at: "http://model.invalid", env: "HTTP_PROXY=ht tp://me:hunter2@proxy", code: 1, want: "HTTP_PROXY is no address of a proxy: correct or unset it"},
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
			tmp := t.TempDir()
			cmd := f.command(t.Context(), built(t), slices.Concat([]string{"--engine", "native"}, strings.Fields(tt.args), []string{"doctor"})...)
			cmd.Env = append(cmd.Env, "KEY=secret-key-1", "TMPDIR="+tmp, tt.env)
			all, _ := cmd.CombinedOutput() // the exit status is checked
			left := append(must.Get(filepath.Glob(filepath.Join(f.home, "*doctor*")))(t), must.Get(filepath.Glob(filepath.Join(tmp, "*")))(t)...)
			if len(left) > 0 || bytes.Contains(all, []byte("\x1b")) {
				t.Errorf("it leaves %v and says %q", left, all)
			}
			for _, secret := range []string{"hunter2", "secret-key-1", "wrong-key-22"} {
				if bytes.Contains(all, []byte(secret)) {
					t.Errorf("it shows a secret:\n%s", all)
				}
			}
			code, screen := cmd.ProcessState.ExitCode(), string(all)
			said, todo, _ := strings.Cut(screen, "\n")
			if tt.args != "" {
				said += todo // turns run, and what does not hold stands below
			}
			if code != tt.code || !strings.Contains(said, tt.want) {
				t.Errorf("exit status %d, want %d and %q:\n%s", code, tt.code, tt.want, screen)
			}
		})
	}
}

// TestDoctorOnTerminal checks that a terminal does not get the hidden characters of a problem, which may quote a
// provider or Codex.
func TestDoctorOnTerminal(t *testing.T) {
	var hostile bytes.Buffer
	(&diagnosis{Problem: "p", Configuration: "a\x1b]2;T\x07\u202eb\nc"}).print(&hostile)
	if text := hostile.String(); !strings.Contains(text, `\u{202e}b c`+"\n") || strings.ContainsAny(text, "\x1b\x07\u202e") {
		t.Errorf("%q", text)
	}
}

// TestCodexNetwork tries the addresses of an installed Codex, of which some do not answer.
func TestCodexNetwork(t *testing.T) {
	nobody := testenv.Nobody(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came") }))
	t.Cleanup(secure.Close)
	const elsewhere = "not tried here"
	plain := strings.Replace(secure.URL, "https", "http", 1)
	for _, tt := range []struct {
		provider, config string
		method           protocol.AuthMode
		address, want    string
	}{
		{"", "", protocol.AuthAPIKey, "https://api.openai.com/v1", elsewhere},
		{"openai", "", protocol.AuthChatGPT, "https://chatgpt.com/backend-api/codex", elsewhere},
		{"openai", fmt.Sprintf("openai_base_url = %q", secure.URL), protocol.AuthAPIKey, secure.URL, "has an unknown authority"},
		{"p", fmt.Sprintf("model_providers.p.base_url = %q", "http://"+nobody), "", "http://" + nobody, "no model server listens at"},
		{"p", fmt.Sprintf("model_providers.p.base_url = %q", plain), "", plain, ""},
		{"unknown", "", "", "", ""},
	} {
		home := t.TempDir()
		writeConfig(t, home, tt.config)
		cfg := must.Get(config.Load(config.Layers{Home: home}))(t)
		address := codexAddress(cfg, &appserver.Report{Provider: tt.provider, Account: &appserver.Account{Method: tt.method}})
		must.Equal(t, tt.provider, tt.address, address)
		if tt.want != elsewhere {
			must.Fail(t, address, tt.want, native.Reach(t.Context(), address, func(string) string { return "" }))
		}
	}
}
