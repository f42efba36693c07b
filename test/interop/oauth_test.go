package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// TestOAuth starts the official Go SDK with the server's address alone. It finds the
// metadata of the resource and of its authorization server, uses PKCE and the resource
// parameter, and requests few scopes at first and more when a call needs them. Then a
// turn asks, and is approved.
func TestOAuth(t *testing.T) {
	t.Parallel()
	if _, err := gateway(); err != nil { // built before the time of the tests begins
		t.Fatal(err)
	}
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			issuer, model := newAuthServer(t, "ann"), providertest.New()
			defer model.Close()
			work := t.TempDir()
			at := serveOAuth(ctx, t, model, issuer.url, work)
			handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				PreregisteredClient:      &oauthex.ClientCredentials{ClientID: oauthClient},
				RedirectURL:              oauthRedirect,
				AuthorizationCodeFetcher: browse,
				ScopeFilter: func(found []string) []string {
					if len(issuer.asked()) == 0 {
						return []string{"codex:read", "codex:approve"}
					}
					return found
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			client := mcp.NewClient(&mcp.Implementation{Name: "interop-oauth", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked++
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approved"}}, nil
				},
			})
			connected, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: at, OAuthHandler: handler}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer connected.Close()
			if got := connected.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("they speak MCP %s", got)
			}
			if _, err := connected.ListTools(ctx, nil); err != nil {
				t.Errorf("tools/list: %v", err)
			}
			model.Add(
				providertest.Call(providertest.Shell("1", "touch", "made")),
				providertest.Say("done"),
			)
			answer, err := connected.CallTool(ctx, &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{"prompt": "make it", "cwd": work}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := asResult(answer)
			if err != nil {
				t.Fatal(err)
			}
			r.is(t, false, "done")
			if _, err := os.Stat(filepath.Join(work, "made")); err != nil || asked != 1 {
				t.Errorf("asked %d times; %v", asked, err)
			}
			if got, want := issuer.asked(), []string{"codex:approve codex:read", "codex:approve codex:read codex:run"}; !slices.Equal(got, want) {
				t.Errorf("scopes %q, want %q", got, want)
			}
		})
	}
}

// TestOAuthTypeScript does the same with both generations of the TypeScript SDK, which
// request all scopes at once.
func TestOAuthTypeScript(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sdk", "client"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			issuer, model := newAuthServer(t, "ann"), providertest.New(providertest.Call(providertest.Shell("1", "touch", "made")), providertest.Say("done"))
			defer model.Close()
			work := t.TempDir()
			at := serveOAuth(ctx, t, model, issuer.url, work)
			call := fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"make it","cwd":%q}}`, work)
			cmd := exec.CommandContext(ctx, node(), "oauth.mjs", name, at, oauthClient, oauthRedirect, call)
			cmd.Dir = "typescript"
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var got struct {
				Asked  int    `json:"asked"`
				Result result `json:"result"`
			}
			if err == nil {
				err = json.Unmarshal(out, &got)
			}
			if err != nil {
				t.Fatalf("%v: %s%s", err, out, stderr.String())
			}
			got.Result.is(t, false, "done")
			if _, err := os.Stat(filepath.Join(work, "made")); err != nil || got.Asked != 1 {
				t.Errorf("asked %d times; %v", got.Asked, err)
			}
			if scopes, want := issuer.asked(), []string{"codex:approve codex:read codex:run"}; !slices.Equal(scopes, want) {
				t.Errorf("scopes %q, want %q", scopes, want)
			}
		})
	}
}

// browse is a browser whose user is signed in.
func browse(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := stay.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	back, err := answer.Location()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", answer.Status, err)
	}
	return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state")}, nil
}

// serveOAuth starts codex-mcp-gateway for ann, and returns where clients find it.
func serveOAuth(ctx context.Context, t *testing.T, model *providertest.Server, issuer, work string) string {
	t.Helper()
	var to atomic.Pointer[url.URL]
	front := httptest.NewServer(&httputil.ReverseProxy{ // whose address is known before the server's
		Rewrite: func(r *httputil.ProxyRequest) {
			holdBody(r)
			r.SetURL(to.Load())
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if c := r.Header.Get("WWW-Authenticate"); c != "" && !strings.HasSuffix(c, `, resource_metadata="http://`+r.Request.Host+`/.well-known/oauth-protected-resource/mcp"`) {
				t.Errorf("%s %s names no metadata: %s", r.Status, r.Request.URL, c)
			}
			return nil
		},
	})
	t.Cleanup(front.Close)
	home := t.TempDir()
	for name, text := range map[string]string{
		"config.toml": fmt.Sprintf("model = \"mock-model\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"\nmodel_provider = \"mock\"\n"+
			"[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nwire_api = \"chat\"\n", model.BaseURL()),
		"codex-mcp.toml": fmt.Sprintf("[http]\nurl = %q\n[http.oauth]\nissuer = %q\n[http.principals.ann]\nfolders = [%q]\n", front.URL+"/mcp", issuer, work),
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := gateway()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, bin, "--engine", "native", "--listen", "127.0.0.1:0")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		var failed *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &failed) && !errors.Is(err, context.Canceled) { // of the test, which ended
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "serving MCP at "); ok {
			at, _, _ := strings.Cut(rest, "/mcp;")
			u, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			to.Store(u)
			go func() {
				for lines.Scan() {
				}
			}()
			return front.URL + "/mcp"
		}
		t.Log(lines.Text())
	}
	t.Fatal("the server does not serve")
	return ""
}
