package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
)

// idToken is unsigned, for user@example.com, account acc.
const idToken = "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6InVzZXJAZXhhbXBsZS5jb20iLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9wbGFuX3R5cGUiOiJwcm8iLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln"

func write(t *testing.T, home, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(home, "auth.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, home string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, "auth.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestCurrent reads auth.json as Codex 0.42 was measured to read it.
func TestCurrent(t *testing.T) {
	tokens := func(key, last string) string {
		return `{"OPENAI_API_KEY":` + key + `,"tokens":{"id_token":"` + idToken + `","access_token":"fake-access","refresh_token":"fake-refresh","account_id":"acc"},"last_refresh":` + last + `}`
	}
	const mail = "user@example.com"
	for _, tt := range []struct {
		name, file string
		want       auth.Credentials
	}{
		{"no file", "", auth.Credentials{}},
		{"key", `{"OPENAI_API_KEY":"sk-fake"}`, auth.Credentials{Method: auth.MethodAPIKey, Token: "sk-fake"}},
		{"empty key", `{"OPENAI_API_KEY":""}`, auth.Credentials{}},
		{"null key", `{"OPENAI_API_KEY":null}`, auth.Credentials{}},
		{"tokens", tokens(`null`, `"2099-01-01T00:00:00Z"`), auth.Credentials{Method: auth.MethodChatGPT, Token: "fake-access", Email: mail}},
		{"a key takes precedence over tokens", tokens(`"sk-both"`, `"2099-01-01T00:00:00Z"`), auth.Credentials{Method: auth.MethodAPIKey, Token: "sk-both", Email: mail}},
		{"old tokens", tokens(`null`, `"2020-01-01T00:00:00Z"`), auth.Credentials{Email: mail, Stale: true}},
		{"tokens never refreshed", tokens(`null`, `null`), auth.Credentials{Email: mail, Stale: true}},
		{"no access token", `{"tokens":{"id_token":"` + idToken + `","access_token":""}}`, auth.Credentials{Email: mail}},
		{"invalid identity token", `{"tokens":{"id_token":"xx","access_token":"a","refresh_token":"r"},"last_refresh":"2099-01-01T00:00:00Z"}`,
			auth.Credentials{Method: auth.MethodChatGPT, Token: "a"}},
		{"members of later versions", `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-fake","agent":{"x":1}}`, auth.Credentials{Method: auth.MethodAPIKey, Token: "sk-fake"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			if tt.file != "" {
				write(t, home, tt.file)
			}
			got, err := auth.New(home, nil).Current()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
		})
	}
}

func TestCurrentNamesNoSecret(t *testing.T) {
	for _, file := range []string{
		`{"OPENAI_API_KEY":"sk-secret`,
		`{"OPENAI_API_KEY":["sk-secret"]}`,
		`sk-secret`,
		`{"sk-secret":1,"sk-secret":2}`,
		`{"tokens":"sk-secret"}`,
		`{"last_refresh":"sk-secret"}`,
	} {
		home := t.TempDir()
		write(t, home, file)
		_, err := auth.New(home, nil).Current()
		if err == nil || !strings.Contains(err.Error(), "auth.json") {
			t.Errorf("%s: error %v does not name the file", file, err)
		}
		// Only the name of a duplicate member may be quoted, even if it looks like a key.
		if err != nil && strings.Contains(err.Error(), "sk-secret") && !strings.Contains(file, ",") {
			t.Errorf("%s: error quotes the file: %v", file, err)
		}
	}
}

func TestSaveAPIKey(t *testing.T) {
	home := filepath.Join(t.TempDir(), "new")
	k := auth.New(home, nil)
	if err := k.SaveAPIKey("sk-fake-key"); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, home), "{\n  \"OPENAI_API_KEY\": \"sk-fake-key\"\n}"; got != want {
		t.Errorf("auth.json is %q, want %q", got, want)
	}
	if info, err := os.Stat(filepath.Join(home, "auth.json")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got, err := auth.APIKey(home); err != nil || got != "sk-fake-key" {
		t.Errorf("APIKey = %q, %v", got, err)
	}
	for range 2 { // a second logout finds nothing, which is fine
		if err := k.Remove(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(home, "auth.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("auth.json is still there: %v", err)
		}
	}
	left, err := os.ReadDir(home)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestNoFile has folders where files should be: what cannot be written or removed is an error.
func TestNoFile(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "auth.json", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := auth.New(home, nil)
	if err := k.SaveAPIKey("sk"); err == nil {
		t.Error("a folder was replaced by a key")
	}
	if err := k.Remove(); err == nil {
		t.Error("a folder was removed")
	}
}

// issuer is an OAuth server that knows one code and one refresh token.
type issuer struct {
	*httptest.Server
	challenge string // of the browser's request
	fail      bool
	meanwhile func() // is called before a token is answered, unless nil
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/oauth/token" || r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		if i.meanwhile != nil {
			i.meanwhile()
		}
		w.Header().Set("Content-Type", "application/json")
		known := r.PostFormValue("grant_type") == "refresh_token" && r.PostFormValue("refresh_token") == "fake-refresh" ||
			r.PostFormValue("code") == "the-code" && oauth2.S256ChallengeFromVerifier(r.PostFormValue("code_verifier")) == i.challenge && strings.HasSuffix(r.PostFormValue("redirect_uri"), "/auth/callback")
		if i.fail || !known || r.PostFormValue("client_id") != "app_test" {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant","error_description":"no: `+r.PostForm.Encode()+`"}`)
			return
		}
		io.WriteString(w, `{"access_token":"new-access","refresh_token":"new-refresh","id_token":"`+idToken+`","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(i.Close)
	return i
}

func keeper(t *testing.T, home string, i *issuer) *auth.Keeper {
	k := auth.New(home, &auth.Options{Issuer: i.URL + "/", ClientID: "app_test", HTTPClient: i.Client()})
	t.Cleanup(func() { k.Close() })
	return k
}

type loginEnd struct {
	id  string
	err error
}

func begin(t *testing.T, k *auth.Keeper) (id string, q url.Values, done chan loginEnd) {
	t.Helper()
	done = make(chan loginEnd, 2)
	id, address, err := k.Begin(func(id string, err error) { done <- loginEnd{id, err} })
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return id, u.Query(), done
}

func get(t *testing.T, address string, q url.Values) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if h := resp.Header; resp.StatusCode != http.StatusNotFound && (h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Security-Policy") != "default-src 'none'") {
		t.Errorf("the page's address, which has the code, may leak: %v", h)
	}
	body, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(body), "the-code") {
		t.Errorf("the page repeats the code: %s", body)
	}
	return resp.StatusCode
}

func TestLogin(t *testing.T) {
	home := t.TempDir()
	i := newIssuer(t)
	k := keeper(t, home, i)
	id, q, done := begin(t, k)
	i.challenge = q.Get("code_challenge")
	back := q.Get("redirect_uri")
	if u, err := url.Parse(back); err != nil || u.Hostname() != "localhost" || u.Path != "/auth/callback" {
		t.Fatalf("redirect_uri %q", back)
	}
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "app_test", "code_challenge_method": "S256",
		"scope": "openid profile email offline_access",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	state := q.Get("state")
	if len(state) < 16 || len(q.Get("code_challenge")) != 43 {
		t.Errorf("state %q, challenge %q", state, q.Get("code_challenge"))
	}
	// Requests with a wrong state or path do not end the login.
	if got := get(t, back, url.Values{"code": {"the-code"}, "state": {"guess"}}); got != http.StatusBadRequest {
		t.Errorf("wrong state: status %d", got)
	}
	if got := get(t, strings.TrimSuffix(back, "/auth/callback")+"/cancel", nil); got != http.StatusNotFound {
		t.Errorf("another path: status %d", got)
	}
	if got := get(t, strings.Replace(back, "localhost", "127.0.0.1", 1), url.Values{"code": {"the-code"}, "state": {state}}); got != http.StatusOK {
		t.Errorf("callback: status %d", got)
	}
	if got := <-done; got.id != id || got.err != nil {
		t.Fatalf("done(%q, %v)", got.id, got.err)
	}
	c, err := k.Current()
	want := auth.Credentials{Method: auth.MethodChatGPT, Token: "new-access", Email: "user@example.com"}
	if diff := cmp.Diff(want, c); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if text := read(t, home); !strings.HasPrefix(text, "{\n  \"OPENAI_API_KEY\": null,\n  \"tokens\": {\n    \"id_token\": ") || !strings.Contains(text, `"account_id": "acc"`) {
		t.Errorf("auth.json is %s", text)
	}
	if k.Cancel(id) {
		t.Error("a login that has ended can be cancelled")
	}
}

func TestLoginRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		q    url.Values
		fail bool
		want string
	}{
		{"by the user", url.Values{"error": {"access_denied"}}, false, "auth: the issuer refused: access_denied"},
		{"with an invalid error", url.Values{"error": {"<b>\n"}}, false, "auth: the issuer sent no code"},
		{"without a code", url.Values{}, false, "auth: the issuer sent no code"},
		{"with a wrong code", url.Values{"code": {"secret-code"}}, false, "auth: the issuer refused: invalid_grant (HTTP 400)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			k := keeper(t, home, newIssuer(t))
			_, q, done := begin(t, k)
			tt.q.Set("state", q.Get("state"))
			if got := get(t, q.Get("redirect_uri"), tt.q); got != http.StatusBadGateway {
				t.Errorf("status %d", got)
			}
			if got := <-done; got.err == nil || got.err.Error() != tt.want {
				t.Errorf("done with %v, want %s", got.err, tt.want)
			}
			if _, err := os.Stat(filepath.Join(home, "auth.json")); err == nil {
				t.Error("auth.json was written")
			}
		})
	}
}

func TestLoginCancelled(t *testing.T) {
	home := t.TempDir()
	k := keeper(t, home, newIssuer(t))
	if k.Cancel("nobody") {
		t.Error("cancelled a login that does not exist")
	}
	first, _, done1 := begin(t, k)
	second, q, done2 := begin(t, k) // ends the first
	if got := <-done1; got.id != first || !errors.Is(got.err, auth.ErrCancelled) {
		t.Errorf("first login: done(%q, %v)", got.id, got.err)
	}
	if k.Cancel(first) {
		t.Error("the first login can be cancelled again")
	}
	if !k.Cancel(second) {
		t.Error("the second login cannot be cancelled")
	}
	if got := <-done2; got.id != second || !errors.Is(got.err, auth.ErrCancelled) {
		t.Errorf("second login: done(%q, %v)", got.id, got.err)
	}
	if _, err := http.Get(q.Get("redirect_uri")); err == nil {
		t.Error("the port still answers")
	}
	for name, end := range map[string]func() error{"an API key": func() error { return k.SaveAPIKey("sk") }, "signing out": k.Remove} {
		_, _, done := begin(t, k)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if got := <-done; !errors.Is(got.err, auth.ErrCancelled) {
			t.Errorf("%s: done with %v", name, got.err)
		}
	}
	_, _, done4 := begin(t, k)
	k.Close()
	select {
	case got := <-done4:
		if !errors.Is(got.err, auth.ErrCancelled) {
			t.Errorf("close: done with %v", got.err)
		}
	default:
		t.Error("Close did not wait for done")
	}
	if _, _, err := k.Begin(func(string, error) {}); err == nil {
		t.Error("a closed keeper begins logins")
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestKeyDuringLogin saves an API key before the issuer answers, and after it: the key stays.
func TestKeyDuringLogin(t *testing.T) {
	for _, answered := range []bool{false, true} {
		home := t.TempDir()
		i := newIssuer(t)
		var k *auth.Keeper
		save := func() {
			if err := k.SaveAPIKey("sk-meanwhile"); err != nil {
				t.Error(err)
			}
		}
		k = auth.New(home, &auth.Options{Issuer: i.URL, ClientID: "app_test", HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if !answered {
				save()
				return i.Client().Transport.RoundTrip(r)
			}
			defer save()
			return i.Client().Transport.RoundTrip(r.WithContext(t.Context()))
		})}})
		t.Cleanup(func() { k.Close() })
		_, q, done := begin(t, k)
		i.challenge = q.Get("code_challenge")
		if resp, err := http.Get(q.Get("redirect_uri") + "?code=the-code&state=" + q.Get("state")); err == nil { // the page may be lost
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				t.Error("the page says that it worked")
			}
		}
		if got := <-done; !errors.Is(got.err, auth.ErrCancelled) {
			t.Errorf("done with %v", got.err)
		}
		if key, err := auth.APIKey(home); key != "sk-meanwhile" || err != nil {
			t.Errorf("key %q, %v", key, err)
		}
	}
}

func TestLoginForeignHost(t *testing.T) {
	k := keeper(t, t.TempDir(), newIssuer(t))
	_, q, _ := begin(t, k)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, q.Get("redirect_uri")+"?state="+q.Get("state")+"&code=the-code", nil)
	req.Host = "rebound.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestBeginNeedsAnIssuer(t *testing.T) {
	for _, tt := range []struct {
		o    auth.Options
		want string
	}{
		{auth.Options{}, "signing in with ChatGPT needs auth.issuer and auth.client_id"},
		{auth.Options{Issuer: "https://auth.example.test"}, "signing in with ChatGPT needs auth.issuer and auth.client_id"},
		{auth.Options{Issuer: "http://auth.example.test", ClientID: "a"}, "auth.issuer: want an https address"},
		{auth.Options{Issuer: "nonsense", ClientID: "a"}, "auth.issuer"},
		{auth.Options{Issuer: "https://user:secret@auth.example.test", ClientID: "a"}, "auth.issuer"},
		{auth.Options{Issuer: "https://auth.example.test?a", ClientID: "a"}, "auth.issuer"},
		{auth.Options{Issuer: "https://auth.example.test#a", ClientID: "a"}, "auth.issuer"},
		{auth.Options{Issuer: "http://10.0.0.1", ClientID: "a"}, "auth.issuer: want an https address"},
		{auth.Options{Issuer: "ftp://localhost", ClientID: "a"}, "auth.issuer: want an https address"},
		{auth.Options{Issuer: "https:a", ClientID: "a"}, "auth.issuer: want an address"},
		{auth.Options{Issuer: "https://auth.example.test", ClientID: "a", Port: 65536}, "auth.port: want"},
		{auth.Options{Issuer: "https://auth.example.test", ClientID: "a", Port: -1}, "auth.port: want"},
		{auth.Options{Issuer: "https://auth.example.test", ClientID: "a", Port: 65535}, ""},
		{auth.Options{Issuer: "http://localhost:1", ClientID: "a"}, ""},
		{auth.Options{Issuer: "http://127.0.0.2", ClientID: "a"}, ""},
		{auth.Options{Issuer: "http://[::1]", ClientID: "a"}, ""},
	} {
		k := auth.New(t.TempDir(), &tt.o)
		err := k.Refresh(t.Context())
		if tt.want == "" {
			if !errors.Is(err, auth.ErrNoTokens) {
				t.Errorf("%+v: error %v", tt.o, err)
			}
			continue
		}
		_, _, same := k.Begin(func(string, error) { t.Error("done is called") })
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") || same == nil || same.Error() != err.Error() {
			t.Errorf("%+v: errors %v, %v, want %s", tt.o, err, same, tt.want)
		}
		k.Close()
	}
}

func TestBeginPortTaken(t *testing.T) {
	i := newIssuer(t)
	one := keeper(t, t.TempDir(), i)
	_, q, _ := begin(t, one)
	u, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}
	two := keeper(t, t.TempDir(), i)
	if _, other, _ := begin(t, two); other.Get("redirect_uri") == q.Get("redirect_uri") {
		t.Error("two logins share a port")
	}
	var port int
	for _, digit := range u.Port() {
		port = port*10 + int(digit-'0')
	}
	fixed := auth.New(t.TempDir(), &auth.Options{Issuer: i.URL, ClientID: "app_test", Port: port})
	if _, _, err := fixed.Begin(func(string, error) {}); err == nil {
		t.Error("a login uses another port than the configured one")
	}
}

func TestRefresh(t *testing.T) {
	i := newIssuer(t)
	home := t.TempDir()
	k := keeper(t, home, i)
	if err := k.Refresh(t.Context()); !errors.Is(err, auth.ErrNoTokens) {
		t.Errorf("without a file: %v", err)
	}
	write(t, home, `{"tokens":{"access_token":"a","refresh_token":""}}`)
	if err := k.Refresh(t.Context()); !errors.Is(err, auth.ErrNoTokens) {
		t.Errorf("without a refresh token: %v", err)
	}
	write(t, home, `{`)
	if err := k.Refresh(t.Context()); err == nil || errors.Is(err, auth.ErrNoTokens) {
		t.Errorf("of a broken file: %v", err)
	}
	write(t, home, `{"auth_mode":"chatgpt","tokens":{"id_token":"old","access_token":"old","refresh_token":"fake-refresh","account_id":null,"x":[1]},"last_refresh":"2020-01-01T00:00:00Z"}`)
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := k.Current()
	want := auth.Credentials{Method: auth.MethodChatGPT, Token: "new-access", Email: "user@example.com"}
	if diff := cmp.Diff(want, c); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	text := read(t, home)
	for _, kept := range []string{`"auth_mode": "chatgpt"`, `"x": [`, `"new-refresh"`, `"OPENAI_API_KEY": null`} {
		if !strings.Contains(text, kept) {
			t.Errorf("auth.json lacks %s: %s", kept, text)
		}
	}
	// The issuer does not know the new refresh token.
	err = k.Refresh(t.Context())
	if err == nil || err.Error() != "auth: the issuer refused: invalid_grant (HTTP 400)" {
		t.Errorf("refused: %v", err)
	}
	i.Close()
	if err := k.Refresh(t.Context()); err == nil || strings.Contains(err.Error(), "new-refresh") {
		t.Errorf("without a server: %v", err)
	}
	gone, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := k.Refresh(gone); err == nil {
		t.Error("refreshed under a context that had ended")
	}
}

// TestRefreshOfTokensThatAreGone keeps what a user has done while the issuer answered.
func TestRefreshOfTokensThatAreGone(t *testing.T) {
	i := newIssuer(t)
	for name, meanwhile := range map[string]string{
		"signed in with ChatGPT": `{"tokens":{"id_token":"other","access_token":"other","refresh_token":"other-refresh","account_id":null}}`,
		"signed in with a key":   `{"OPENAI_API_KEY":"sk-other"}`,
		"signed out":             `{}`,
	} {
		home := t.TempDir()
		write(t, home, `{"tokens":{"id_token":"old","access_token":"old","refresh_token":"fake-refresh","account_id":null}}`)
		i.meanwhile = func() { write(t, home, meanwhile) }
		if err := keeper(t, home, i).Refresh(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(meanwhile, read(t, home)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestRefreshFollowsNoRedirect checks that a redirect of the issuer does not receive the
// refresh token.
func TestRefreshFollowsNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		t.Errorf("the other host received a request: %s %s", r.URL, body)
	}))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		i := &issuer{Server: httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/oauth/token", status))}
		home := t.TempDir()
		write(t, home, `{"tokens":{"id_token":"old","access_token":"old","refresh_token":"fake-refresh","account_id":null},"last_refresh":"2020-01-01T00:00:00Z"}`)
		err := keeper(t, home, i).Refresh(t.Context())
		want := fmt.Sprintf("auth: the issuer redirects to another address (HTTP %d), which is not followed: set auth.issuer to it", status)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
		i.Close()
	}
}
