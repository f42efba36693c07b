package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey/passkeytest"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// signedPage is a page that needs signatures, with a passkey that is registered there.
type signedPage struct {
	*page.Page
	*visitor
	device *passkeytest.Device
	file   string
}

// listenSigned returns a page at an origin, "" for its own, with the tab of a person.
func listenSigned(t *testing.T, origin string) *signedPage {
	t.Helper()
	s := &signedPage{device: passkeytest.New(t, "ES256"), file: passkey.File(t.TempDir())}
	s.Page = listen(t, &page.Options{Origin: origin, Passkeys: s.file})
	s.visitor = visit(t, s.Page)
	if origin != "" {
		s.visitor.origin, s.visitor.client = origin, proxied(t, s.Page.Address())
	}
	if status, body := s.register(t, s.device); status != http.StatusOK {
		t.Fatalf("the passkey is not registered: %d %s", status, body)
	}
	return s
}

// proxied returns a client for which an HTTPS proxy in front of an address is at every origin.
func proxied(t *testing.T, address string) *http.Client {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // as docs/use/page.md demands
	}})
	t.Cleanup(proxy.Close)
	client := proxy.Client()
	transport := client.Transport.(*http.Transport)
	transport.TLSClientConfig.ServerName = "example.com" // of the certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, proxy.Listener.Addr().String())
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// begin registers a passkey, and returns the secret of the link and the end of the registration.
func (s *signedPage) begin(t *testing.T) (secret string, end <-chan error) {
	t.Helper()
	links, done := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		party, err := s.RegisterPasskey(ctx, "mine", func(link string) { links <- link })
		if err == nil && !strings.Contains(s.visitor.origin, party) {
			err = fmt.Errorf("registered for %s", party)
		}
		done <- err
	}()
	select {
	case link := <-links:
		origin, secret, _ := strings.Cut(link, "/passkey.html#")
		if origin != s.visitor.origin {
			t.Errorf("the link is at %s", origin)
		}
		return secret, done
	case err := <-done:
		t.Fatal(err)
		return "", nil
	}
}

// created is what the page's script posts after navigator.credentials.create.
func created(t *testing.T, d *passkeytest.Device, origin, options string) string {
	t.Helper()
	var in struct {
		Challenge passkey.Bytes
		RPID      string `json:"rpId"`
	}
	if err := json.Unmarshal([]byte(options), &in); err != nil || !strings.Contains(origin, "//"+in.RPID) {
		t.Fatalf("%s: %v", options, err)
	}
	raw, err := json.Marshal(d.Create(origin, in.Challenge))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (s *signedPage) register(t *testing.T, d *passkeytest.Device) (int, string) {
	t.Helper()
	secret, end := s.begin(t)
	status, options := s.post("/passkey/begin", fmt.Sprintf(`{"secret":%q}`, secret))
	if status != http.StatusOK {
		return status, options
	}
	status, body := s.post("/passkey/add", created(t, d, s.visitor.origin, options))
	if status == http.StatusOK {
		if err := get(t, end); err != nil {
			t.Error(err)
		}
	}
	return status, body
}

// challenge returns the challenge for a decision on a question.
func (s *signedPage) challenge(t *testing.T, id int, decision elicit.Decision) []byte {
	t.Helper()
	status, body := s.post(fmt.Sprintf("/questions/%d/sign", id), fmt.Sprintf(`{"decision":%q}`, decision))
	var in struct {
		Challenge passkey.Bytes
		Keys      []passkey.Bytes
	}
	if err := json.Unmarshal([]byte(body), &in); status != http.StatusOK || err != nil || len(in.Keys) == 0 {
		t.Fatalf("no challenge: %d %s", status, body)
	}
	return in.Challenge
}

// signed returns an answer with a signature.
func signed(t *testing.T, answer string, a *passkey.Assertion) string {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`%s,"proof":%s}`, strings.TrimSuffix(answer, "}"), raw)
}

const (
	once       = `{"action":"accept"}`
	forSession = `{"action":"accept","content":{"decision":"approved_for_session"}}`
	stopIt     = `{"action":"accept","content":{"decision":"abort"}}`
	denyIt     = `{"action":"decline"}`
)

// origins are those of pages that need signatures: its own, and that of a proxy.
var origins = []string{"", "https://approvals.example.com"}

// TestSignedApproval approves with a passkey, and denies without one. The proof is of the question and the
// decision, and of nothing else.
func TestSignedApproval(t *testing.T) {
	t.Parallel()
	for _, origin := range origins {
		s := listenSigned(t, origin)
		if origin == "" && !strings.HasPrefix(s.Link(), "http://localhost:") {
			t.Errorf("the link is %s", s.Link())
		}
		stream := s.events()
		for answer, decision := range map[string]elicit.Decision{once: elicit.Approved, forSession: elicit.ApprovedForSession} {
			r := exec("1", "git", "push")
			back := ask(t.Context(), s.Page, r)
			id := stream.question("open").ID
			a := s.device.Sign(s.visitor.origin, s.challenge(t, id, decision))
			if status, body := s.post(fmt.Sprintf("/questions/%d", id), signed(t, answer, a)); status != http.StatusNoContent {
				t.Fatalf("%s: %d %s", decision, status, body)
			}
			if got := get(t, back); got.err != nil || got.answer != answer {
				t.Errorf("%s: the answer is %s, %v", decision, got.answer, got.err)
			}
			if _, err := s.Prove(exec("1", "git", "push"), decision); err == nil {
				t.Error("the proof is one of another question that asks the same")
			}
			for _, other := range []elicit.Decision{elicit.Approved, elicit.ApprovedForSession, elicit.ApprovedAlways} {
				proof, err := s.Prove(r, other)
				if (err == nil) != (other == decision) {
					t.Errorf("%s was signed: %s has the proof %s, %v", decision, other, proof, err)
				}
				if err != nil {
					continue
				}
				var read passkey.Proof
				if err := json.Unmarshal(proof, &read); err != nil {
					t.Fatal(err)
				}
				question, err := protocol.AppendEvent(nil, r.Event)
				if err != nil {
					t.Fatal(err)
				}
				if err := passkey.Verify(&read, question); err != nil {
					t.Errorf("the proof does not hold: %v", err)
				}
				if passkey.Verify(&read, []byte(strings.Replace(string(question), "push", "pull", 1))) == nil {
					t.Error("the proof is one of another question")
				}
				if st := read.Statement; st.Decision != decision || st.Thread != "1" || st.Origin != s.visitor.origin || st.Question != nil {
					t.Errorf("the statement is %+v", st)
				}
			}
			s.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: decision}, By: approval.ByDesk})
			if _, err := s.Prove(r, decision); err == nil {
				t.Error("a question that is decided has a proof")
			}
			stream.question("decided")
		}
		for answer, want := range map[string]string{denyIt: denyIt, stopIt: stopIt} {
			back := ask(t.Context(), s.Page, exec("1", "git", "push"))
			id := stream.question("open").ID
			if status, body := s.post(fmt.Sprintf("/questions/%d", id), answer); status != http.StatusNoContent {
				t.Errorf("%s: %d %s", answer, status, body)
			}
			if got := get(t, back); got.err != nil || got.answer != want {
				t.Errorf("%s: %s, %v", answer, got.answer, got.err)
			}
		}
	}
}

// TestUnsignedApprovals sends approvals that nobody signed for this question. Each is refused, and the
// question stays open: in the end a person approves it.
func TestUnsignedApprovals(t *testing.T) {
	t.Parallel()
	for _, origin := range origins {
		s := listenSigned(t, origin)
		other := passkeytest.New(t, "ES256")
		stream := s.events()
		r := exec("1", "git", "push")
		back := ask(t.Context(), s.Page, r)
		id := stream.question("open").ID
		others := ask(t.Context(), s.Page, exec("2", "ls"))
		second := stream.question("open").ID
		path := fmt.Sprintf("/questions/%d", id)
		fresh := func() []byte { return s.challenge(t, id, elicit.Approved) }
		at := s.visitor.origin
		for _, tt := range []struct {
			name, want string
			body       func() string
		}{
			{"no signature", "this one has none", func() string { return once }},
			{"no signature, for the session", "this one has none", func() string { return forSession }},
			{"no signature, always", "this one has none", func() string { return `{"action":"accept","content":{"decision":"approved_always"}}` }},
			{"an empty one", "another question", func() string { return signed(t, once, &passkey.Assertion{}) }},
			{"no challenge", "another question", func() string { return signed(t, once, s.device.Sign(at, nil)) }},
			{"a challenge that was made up", "another question", func() string { return signed(t, once, s.device.Sign(at, passkey.NewNonce())) }},
			{"another question", "another question", func() string {
				return signed(t, once, s.device.Sign(at, s.challenge(t, second, elicit.Approved)))
			}},
			{"another decision", "another decision", func() string {
				return signed(t, forSession, s.device.Sign(at, fresh()))
			}},
			{"another origin", "another page", func() string {
				return signed(t, once, s.device.Sign(strings.Replace(at, "//", "//x", 1), fresh()))
			}},
			{"another relying party", "another relying party", func() string {
				device := *s.device
				device.Party = "example.com"
				return signed(t, once, device.Sign(at, fresh()))
			}},
			{"nobody verified", "did not verify", func() string {
				device := *s.device
				device.Flags = passkeytest.Present
				return signed(t, once, device.Sign(at, fresh()))
			}},
			{"another passkey", "no registered passkey", func() string { return signed(t, once, other.Sign(at, fresh())) }},
			{"another passkey with the id of the first", "the signature is wrong", func() string {
				device := *other
				device.ID = s.device.ID
				return signed(t, once, device.Sign(at, fresh()))
			}},
			{"a member of the signature that is not known", "the body is wrong", func() string {
				return strings.Replace(signed(t, once, s.device.Sign(at, fresh())), `"proof":{`, `"proof":{"x":1,`, 1)
			}},
			{"two signatures", "the body is wrong", func() string {
				a := s.device.Sign(at, fresh())
				return signed(t, signed(t, once, a), a)
			}},
			{"huge", "longer than", func() string {
				a := s.device.Sign(at, fresh())
				a.AuthenticatorData = make([]byte, 1<<20)
				return signed(t, once, a)
			}},
		} {
			status, body := s.post(path, tt.body())
			if status != http.StatusForbidden && status != http.StatusBadRequest || !strings.Contains(body, tt.want) {
				t.Errorf("%s: %d %s; want %q", tt.name, status, body, tt.want)
			}
			if proof, err := s.Prove(r, elicit.Approved); err == nil {
				t.Errorf("%s: there is the proof %s", tt.name, proof)
			}
		}
		a := s.device.Sign(at, fresh())
		a.Signature[len(a.Signature)-1] ^= 1
		if status, body := s.post(path, signed(t, once, a)); status != http.StatusForbidden {
			t.Errorf("a changed signature: %d %s", status, body)
		}
		a.Signature[len(a.Signature)-1] ^= 1
		if status, body := s.post(path, signed(t, once, a)); status != http.StatusForbidden || !strings.Contains(body, "can be used once") {
			t.Errorf("a challenge that was used: %d %s", status, body)
		}
		oldest := fresh()
		for range 8 {
			fresh()
		}
		if status, body := s.post(path, signed(t, once, s.device.Sign(at, oldest))); status != http.StatusForbidden {
			t.Errorf("the ninth challenge: %d %s", status, body)
		}
		select {
		case got := <-back:
			t.Fatalf("the question was answered: %s, %v", got.answer, got.err)
		case got := <-others:
			t.Fatalf("the other question was answered: %s, %v", got.answer, got.err)
		default:
		}

		a = s.device.Sign(at, fresh())
		if status, body := s.post(path, signed(t, once, a)); status != http.StatusNoContent {
			t.Errorf("the person: %d %s", status, body)
		}
		if got := get(t, back); got.err != nil || got.answer != once {
			t.Errorf("%s, %v", got.answer, got.err)
		}
		for _, path := range []string{path, fmt.Sprintf("/questions/%d", second)} { // replayed
			if status, body := s.post(path, signed(t, once, a)); status != http.StatusConflict && status != http.StatusForbidden {
				t.Errorf("%s, again: %d %s", path, status, body)
			}
		}
		if len(others) > 0 {
			t.Error("the other question was answered")
		}
	}
}

// TestChallenge asks for challenges that there are not.
func TestChallenge(t *testing.T) {
	s := listenSigned(t, "")
	stream := s.events()
	r := exec("1", "git", "push")
	r.Question.Once = true
	back := ask(t.Context(), s.Page, r)
	id := stream.question("open").ID
	link := linkTo(t, s.Page, r)
	second := exec("2", "ls")
	ask(t.Context(), s.Page, second)
	elsewhere := linkTo(t, s.Page, second)
	for body, want := range map[string]int{
		`{"decision":"approved"}`: http.StatusOK, `{"decision":"approved_for_session"}`: http.StatusBadRequest, `{"decision":"approved_always"}`: http.StatusBadRequest,
		`{"decision":"denied"}`: http.StatusBadRequest, `{"decision":"abort"}`: http.StatusBadRequest, `{}`: http.StatusBadRequest, `{"x":1}`: http.StatusBadRequest,
	} {
		if status, text := s.post(fmt.Sprintf("/questions/%d/sign", id), body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	for _, path := range []string{"/questions/99/sign", "/questions/x/sign", "/questions//sign"} {
		if status, text := s.post(path, `{"decision":"approved"}`); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for link, want := range map[string]int{link: http.StatusOK, elsewhere: http.StatusForbidden} {
		v, _ := follow(t, link)
		if status, text := v.post(fmt.Sprintf("/questions/%d/sign", id), `{"decision":"approved"}`); status != want {
			t.Errorf("by the link of a question: %d %s", status, text)
		}
	}
	stranger := &visitor{t: t, origin: s.visitor.origin, client: http.DefaultClient}
	if status, text := stranger.post(fmt.Sprintf("/questions/%d/sign", id), `{"decision":"approved"}`); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, text)
	}

	for _, path := range []string{fmt.Sprintf("/questions/%d/sign", id), "/passkey/begin", "/passkey/add"} {
		for want, forge := range map[int]func(*http.Request){
			http.StatusMethodNotAllowed: func(r *http.Request) { r.Method = http.MethodPut },
			http.StatusForbidden:        func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") },
			http.StatusBadRequest:       func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		} {
			r := s.request(http.MethodPost, path, `{"decision":"approved"}`)
			forge(r)
			if res, text := s.send(r); res.StatusCode != want {
				t.Errorf("forged, %s: %d %s; want %d", path, res.StatusCode, text, want)
			}
		}
	}

	removed := s.challenge(t, id, elicit.Approved)
	if _, _, err := passkey.NewKeys(s.file).Remove(1); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/questions/%d", id)
	if status, text := s.post(path, signed(t, once, s.device.Sign(s.visitor.origin, removed))); status != http.StatusForbidden || !strings.Contains(text, "no registered passkey") {
		t.Errorf("with a removed passkey: %d %s", status, text)
	}
	if status, text := s.post(path+"/sign", `{"decision":"approved"}`); status != http.StatusForbidden || !strings.Contains(text, "no passkey is registered for localhost; codex-mcp passkey add registers one") {
		t.Errorf("without a passkey: %d %s", status, text)
	}
	if err := os.WriteFile(s.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := s.post(path+"/sign", `{"decision":"approved"}`); status != http.StatusForbidden || !strings.Contains(text, "passkeys.json") {
		t.Errorf("with a broken file: %d %s", status, text)
	}
	if status, text := s.post(path, denyIt); status != http.StatusNoContent {
		t.Errorf("denied: %d %s", status, text)
	}
	get(t, back)
	if status, text := s.post(path+"/sign", `{"decision":"approved"}`); status != http.StatusConflict {
		t.Errorf("an answered question: %d %s", status, text)
	}

	plain := listen(t, nil) // without passkeys nothing changes
	v := visit(t, plain)
	answered := ask(t.Context(), plain, exec("1", "ls"))
	id = v.events().question("open").ID
	if status, text := v.post(fmt.Sprintf("/questions/%d/sign", id), `{"decision":"approved"}`); status != http.StatusNotFound {
		t.Errorf("a page without passkeys: %d %s", status, text)
	}
	if status, text := v.post(fmt.Sprintf("/questions/%d", id), signed(t, once, &passkey.Assertion{})); status != http.StatusForbidden {
		t.Errorf("a page without passkeys: %d %s", status, text)
	}
	if proof, err := plain.Prove(exec("1", "ls"), elicit.Approved); proof != nil || err != nil {
		t.Errorf("a page without passkeys: %s, %v", proof, err)
	}
	if status, text := v.post(fmt.Sprintf("/questions/%d", id), once); status != http.StatusNoContent {
		t.Errorf("a page without passkeys: %d %s", status, text)
	}
	get(t, answered)
}

// TestRegistration uses the link of a registration as others would.
func TestRegistration(t *testing.T) {
	s := listenSigned(t, "")
	if status, body := s.post("/passkey/begin", `{"secret":""}`); status != http.StatusForbidden {
		t.Errorf("without a registration: %d %s", status, body)
	}
	if status, body := s.post("/passkey/add", created(t, s.device, s.visitor.origin, `{"challenge":"","rpId":"localhost"}`)); status != http.StatusForbidden {
		t.Errorf("without a registration: %d %s", status, body)
	}
	if status, body := s.register(t, s.device); status != http.StatusForbidden || !strings.Contains(body, "registered already") {
		t.Errorf("the same passkey: %d %s", status, body)
	}

	s = listenSigned(t, "")
	secret, end := s.begin(t)
	if _, err := s.RegisterPasskey(t.Context(), "", func(string) { t.Error("a second link") }); err == nil {
		t.Error("two registrations at a time")
	}
	add := func(options string) (int, string) {
		return s.post("/passkey/add", created(t, passkeytest.New(t, "EdDSA"), s.visitor.origin, options))
	}
	early := fmt.Sprintf(`{"challenge":%q,"rpId":"localhost"}`, passkey.NewNonce())
	if status, body := add(early); status != http.StatusForbidden {
		t.Errorf("before the link was used: %d %s", status, body)
	}
	for _, wrong := range []string{"", secret[:42], secret + "x", s.Link()[len(s.Link())-43:]} {
		if status, body := s.post("/passkey/begin", fmt.Sprintf(`{"secret":%q}`, wrong)); status != http.StatusForbidden {
			t.Errorf("%q: %d %s", wrong, status, body)
		}
	}
	if status, body := s.post("/session", fmt.Sprintf(`{"secret":%q}`, secret)); status != http.StatusForbidden {
		t.Errorf("the link opens the page: %d %s", status, body)
	}
	status, options := s.post("/passkey/begin", fmt.Sprintf(`{"secret":%q}`, secret))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, options)
	}
	if status, body := s.post("/passkey/begin", fmt.Sprintf(`{"secret":%q}`, secret)); status != http.StatusForbidden {
		t.Errorf("the link works twice: %d %s", status, body)
	}
	if status, body := add(early); status != http.StatusForbidden {
		t.Errorf("another challenge: %d %s", status, body)
	}
	if status, body := s.post("/passkey/x", `{}`); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
	if status, body := add(options); status != http.StatusOK || !strings.Contains(body, `"mine"`) {
		t.Errorf("the person: %d %s", status, body)
	}
	if err := get(t, end); err != nil {
		t.Error(err)
	}
	if status, body := add(options); status != http.StatusForbidden {
		t.Errorf("a second passkey: %d %s", status, body)
	}
	if all, err := passkey.NewKeys(s.file).List(); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.RegisterPasskey(ctx, "", func(string) { cancel() }); err == nil {
		t.Error("a registration that was ended has registered")
	}
	secret, _ = s.begin(t)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := listen(t, nil).RegisterPasskey(t.Context(), "", nil); err == nil {
		t.Error("a page without passkeys registers one")
	}
	_ = secret
}

// TestRegistrationThenClose closes the page as soon as a passkey is registered. The browser is told before.
func TestRegistrationThenClose(t *testing.T) {
	for range 30 {
		s := &signedPage{device: passkeytest.New(t, "ES256"), file: passkey.File(t.TempDir())}
		s.Page = listen(t, &page.Options{Passkeys: s.file})
		s.visitor = visit(t, s.Page)
		secret, end := s.begin(t)
		closed := make(chan error, 1)
		go func() { closed <- errors.Join(<-end, s.Close()) }()
		_, options := s.post("/passkey/begin", fmt.Sprintf(`{"secret":%q}`, secret))
		if status, body := s.post("/passkey/add", created(t, s.device, s.visitor.origin, options)); status != http.StatusOK || body != `{"name":"mine"}` {
			t.Errorf("%d %s", status, body)
		}
		if err := get(t, closed); err != nil {
			t.Error(err)
		}
	}
}

// TestListenByName looks at where a page with passkeys can be reached.
func TestListenByName(t *testing.T) {
	file := passkey.File(t.TempDir())
	p := listen(t, &page.Options{Passkeys: file})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.Address(), "http://"))
	if err != nil || p.Address() != "http://localhost:"+port {
		t.Fatalf("%s, %v", p.Address(), err)
	}
	hosts := []string{"127.0.0.1", "localhost"}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		hosts = append(hosts, "::1")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, host := range hosts {
		for name, want := range map[string]int{"localhost:" + port: http.StatusOK, "127.0.0.1:" + port: http.StatusForbidden, "[::1]:" + port: http.StatusForbidden} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/passkey.html", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = name
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if res.Body.Close(); err != nil || res.StatusCode != want {
				t.Errorf("%s at %s: %d %s, %v", name, host, res.StatusCode, body, err)
			}
			if csp := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'") {
				t.Errorf("the policy is %s", csp)
			}
		}
	}
	broken := filepath.Join(t.TempDir(), "passkeys.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*page.Options{
		"an address":                 {Passkeys: file, Origin: "http://127.0.0.1:9000"},
		"a file that cannot be read": {Passkeys: broken},
	} {
		if p, err := page.Listen(o); err == nil {
			t.Errorf("%s: %v", name, p.Close())
		}
	}
}
