package page

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// pushService is a push service in memory, with the browser behind it: it checks who sends (RFC 8292)
// and decrypts (RFC 8291).
type pushService struct {
	t       *testing.T
	key     *ecdh.PrivateKey // the browser's
	auth    []byte
	server  string                                   // the server's public key
	answers func(http.ResponseWriter, *http.Request) // if the wake-up is taken; nil is 201
	woken   []string                                 // "path at seconds"
	began   time.Time                                // of the test
	read    int                                      // bytes of an answer
}

func newPushService(t *testing.T) *pushService {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &pushService{t: t, key: key, auth: make([]byte, 16), began: time.Now()}
	rand.Read(s.auth)
	return s
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (s *pushService) unb64(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		s.t.Errorf("%q: %v", text, err)
	}
	return b
}

// subscription is what the page's script sends of a browser's subscription.
func (s *pushService) subscription(endpoint string) string {
	return fmt.Sprintf(`{"endpoint":%q,"keys":{"p256dh":%q,"auth":%q}}`, endpoint, b64(s.key.PublicKey().Bytes()), b64(s.auth))
}

// RoundTrip implements http.RoundTripper.
func (s *pushService) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.checkSender(r)
	if text := s.decrypt(body); text != "" {
		s.t.Errorf("the wake-up says %q", text)
	}
	s.woken = append(s.woken, fmt.Sprintf("%s at %s", r.URL.Path, time.Since(s.began)))
	w := httptest.NewRecorder()
	if s.answers == nil {
		w.WriteHeader(http.StatusCreated)
	} else {
		s.answers(w, r)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	res := w.Result()
	res.Body = endless{&s.read}
	return res, nil
}

// endless is an answer without an end, which counts what is read of it.
type endless struct{ read *int }

func (e endless) Read(p []byte) (int, error) { *e.read += len(p); return len(p), nil }
func (endless) Close() error                 { return nil }

// checkSender checks the header by which the server says who it is, and that nothing else does.
func (s *pushService) checkSender(r *http.Request) {
	var token, key string
	if _, err := fmt.Sscanf(strings.ReplaceAll(r.Header.Get("Authorization"), ",", " "), "vapid t=%s k=%s", &token, &key); err != nil || key != s.server {
		s.t.Errorf("authorization %q: %v", r.Header.Get("Authorization"), err)
		return
	}
	r.Header.Del("Authorization")
	if diff := cmp.Diff(http.Header{
		"Content-Encoding": {"aes128gcm"}, "Content-Type": {"application/octet-stream"},
		"Topic": {"question"}, "Ttl": {"600"}, "Urgency": {"high"}, "User-Agent": {""},
	}, r.Header); diff != "" {
		s.t.Errorf("the headers (-want +got):\n%s", diff)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || string(s.unb64(parts[0])) != `{"typ":"JWT","alg":"ES256"}` {
		s.t.Errorf("the token is %q", token)
		return
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), s.unb64(key))
	if err != nil {
		s.t.Error(err)
		return
	}
	sum, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), s.unb64(parts[2])
	if len(signature) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		s.t.Error("the token is not signed by its key")
	}
	want := map[string]any{"aud": "https://" + r.URL.Host, "exp": float64(time.Now().Add(12 * time.Hour).Unix()), "sub": "https://github.com/codexmcp/codexmcp"}
	var claims map[string]any
	if err := json.Unmarshal(s.unb64(parts[1]), &claims); err != nil || !cmp.Equal(claims, want) {
		s.t.Errorf("the token claims %v, want %v: %v", claims, want, err)
	}
}

// decrypt returns the text of a wake-up, without its padding.
func (s *pushService) decrypt(body []byte) string {
	const header = 16 + 4 + 1 + 65
	if len(body) != header+128+16 || binary.BigEndian.Uint32(body[16:]) < uint32(len(body)-header) || body[20] != 65 {
		s.t.Errorf("a body of %d bytes", len(body))
		return ""
	}
	once, err := ecdh.P256().NewPublicKey(body[21:header])
	if err != nil {
		s.t.Error(err)
		return ""
	}
	shared, err := s.key.ECDH(once)
	derive := func(secret, salt []byte, info string, n int) []byte {
		key, failed := hkdf.Key(sha256.New, secret, salt, info, n)
		err = errors.Join(err, failed)
		return key
	}
	text := derive(shared, s.auth, "WebPush: info\x00"+string(s.key.PublicKey().Bytes())+string(once.Bytes()), 32)
	key := derive(text, body[:16], "Content-Encoding: aes128gcm\x00", 16)
	nonce := derive(text, body[:16], "Content-Encoding: nonce\x00", 12)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	record, err := gcm.Open(nil, nonce, body[header:], nil)
	if err != nil {
		s.t.Error(err)
	}
	record = bytes.TrimRight(record, "\x00")
	text, last := bytes.CutSuffix(record, []byte{2})
	if !last {
		s.t.Errorf("the record %q does not end", record)
	}
	return string(text)
}

// pushPage is a page that wakes devices, and a tab that has access to it.
type pushPage struct {
	*Page
	t       *testing.T
	service *pushService
	token   string
}

// newPushPage returns a page that sends to a push service in memory, or with client false to public
// addresses.
func newPushPage(t *testing.T, client bool) *pushPage {
	t.Helper()
	p := &pushPage{t: t, service: newPushService(t)}
	o := &Push{}
	if client {
		jar, _ := cookiejar.New(nil) // never fails
		o.Client = &http.Client{Transport: p.service, Jar: jar}
	}
	p.Page = newPage("127.0.0.1:1", &Options{Push: o})
	if err := p.startPush(); err != nil {
		t.Fatal(err)
	}
	p.listen(make(pipes))
	p.token, _ = p.door.admit(p.door.invite())
	p.service.server = p.push.sender.Key()
	return p
}

// device sends a request of the tab and returns the answer.
func (p *pushPage) device(do, body string, forge func(*http.Request)) (int, string) {
	p.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/push/"+do, strings.NewReader(body))
	r.Host = p.host
	r.Header.Set("Origin", "http://"+p.host)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+p.token)
	if forge != nil {
		forge(r)
	}
	w := httptest.NewRecorder()
	p.serve(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// add subscribes devices of the push service.
func (p *pushPage) add(endpoints ...string) {
	p.t.Helper()
	for _, e := range endpoints {
		if status, body := p.device("add", p.service.subscription(e), nil); status != http.StatusOK {
			p.t.Fatalf("%s: %d %s", e, status, body)
		}
	}
}

// ask asks a question, which is withdrawn when the function that it returns is called.
func (p *pushPage) ask() (withdraw func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := request("1", "true")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.Ask(ctx, r)
		p.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied}, By: approval.ByClient})
	}()
	return func() { cancel(); <-done }
}

// TestPush wakes devices: once for each question that is not answered at once, and not too often.
func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPushPage(t, true)
		p.add("https://push.example/a", "https://push.example/b", "https://push.example/a")
		if status, body := p.device("remove", `{"endpoint":"https://push.example/b"}`, nil); status != http.StatusOK || body != fmt.Sprintf(`{"key":%q,"devices":1}`, p.service.server) {
			t.Errorf("removed: %d %s", status, body)
		}
		until := func(at time.Duration) { time.Sleep(time.Until(p.service.began.Add(at))); synctest.Wait() }

		p.ask()() // answered before a person could
		until(10 * time.Second)
		first := p.ask()
		until(20 * time.Second) // woken at 11 s
		for range 100 {
			p.ask()()
		}
		second := p.ask()
		until(100 * time.Second) // at 42 s
		first()
		second()
		p.ask()()
		until(200 * time.Second)
		third := p.ask()
		until(201*time.Second + 1)
		p.service.answers = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) }
		fourth := p.ask()
		until(300 * time.Second) // at 3m52s, for the last time
		p.ask()
		until(400 * time.Second)
		want := []string{"/a at 11s", "/a at 42s", "/a at 3m21s", "/a at 3m52s"}
		if diff := cmp.Diff(want, p.service.woken); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		third()
		fourth()
	})
}

// TestPushAnswers has push services that do what they should not. The question does not wait for them,
// nothing of their answers is read, nothing secret is told, and Close ends all.
func TestPushAnswers(t *testing.T) {
	to := func(address string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, address, http.StatusTemporaryRedirect)
		}
	}
	for name, tt := range map[string]struct {
		answers func(http.ResponseWriter, *http.Request)
		failed  string
		devices int // kept
	}{
		"taken":                 {nil, "", 1},
		"an endless answer":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, "", 1},
		"an endless error":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }, "the push service answered with status 400", 1},
		"unknown":               {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "", 0},
		"gone":                  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, "", 0},
		"a redirect":            {to("https://push.example/other"), "the push service answered with status 307", 1},
		"a redirect to here":    {to("http://127.0.0.1:1/"), "the push service answered with status 307", 1},
		"a redirect to a cloud": {to("http://169.254.169.254/"), "the push service answered with status 307", 1},
		"a cookie": {func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			w.WriteHeader(http.StatusCreated)
		}, "", 1},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "context deadline exceeded", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPushPage(t, true)
				p.service.answers = tt.answers
				p.add("https://push.example/secret")
				for range 2 {
					began := time.Now()
					withdraw := p.ask()
					time.Sleep(time.Second)
					synctest.Wait() // it is being sent
					withdraw()
					if took := time.Since(began); took != time.Second {
						t.Errorf("the question waited %s for the push service", took-time.Second)
					}
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				sent := 1 + tt.devices
				if len(p.service.woken) != sent || p.service.read != 0 {
					t.Errorf("woken %q, read %d bytes", p.service.woken, p.service.read)
				}
				failed := ""
				if tt.failed != "" {
					failed = `,"failed":["https://push.example: ` + tt.failed + `"]`
				}
				devices := ""
				if tt.devices > 0 {
					devices = fmt.Sprintf(`,"devices":%d`, tt.devices)
				}
				want := fmt.Sprintf(`{"key":%q%s%s}`, p.service.server, devices, failed)
				if _, state := p.device("state", "{}", nil); state != want {
					t.Errorf("the state is %s, want %s", state, want)
				}
				if n := len(p.push.list()); n != tt.devices {
					t.Errorf("%d devices are kept", n)
				}
				last := p.ask()
				time.Sleep(time.Second)
				synctest.Wait()
				began := time.Now()
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("Close waited %s", took)
				}
				last()
			})
		})
	}
}

// TestPushAttacks sends what a page, a tab or a program may send that is not the owner's browser. TestForged has
// the requests that no route takes.
func TestPushAttacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPushPage(t, false)
		good := p.service.subscription("https://push.example.com/x")
		stranger := func(r *http.Request) { r.Header.Del("Authorization") }
		for _, tt := range []struct {
			name, do, body string
			forge          func(*http.Request)
			want           int
		}{
			{"no token", "add", good, stranger, 401},
			{"no token, removing", "remove", good, stranger, 401},
			{"no token, looking", "state", "{}", stranger, 401},
			{"another route", "wake", "{}", nil, 404},
			{"no endpoint", "add", "{}", nil, 400},
			{"a member too much", "add", `{"endpoint":"https://push.example.com/x","url":""}`, nil, 400},
			{"no keys", "add", `{"endpoint":"https://push.example.com/x"}`, nil, 400},
			{"keys of nobody", "add", `{"endpoint":"https://push.example.com/x","keys":{"p256dh":"BAAA","auth":"AAAA"}}`, nil, 400},
			{"this machine", "add", p.service.subscription("https://127.0.0.1/"), nil, 400},
			{"its name", "add", p.service.subscription("https://localhost/"), nil, 400},
			{"the page itself", "add", p.service.subscription("http://127.0.0.1:1/"), nil, 400},
			{"the network", "add", p.service.subscription("https://10.0.0.1/"), nil, 400},
			{"a cloud's metadata", "add", p.service.subscription("https://169.254.169.254/"), nil, 400},
			{"another port", "add", p.service.subscription("https://push.example.com:6379/"), nil, 400},
		} {
			if status, body := p.device(tt.do, tt.body, tt.forge); status != tt.want || strings.Contains(body, p.service.server) {
				t.Errorf("%s: %d %s, want %d", tt.name, status, body, tt.want)
			}
		}
		if n := len(p.push.list()); n != 0 {
			t.Errorf("%d devices after the attacks", n)
		}
		for i := range 1000 {
			p.add(fmt.Sprint("https://push.example.com/", i))
		}
		if all := p.push.list(); len(all) != maxDevices || all[0].Endpoint() != "https://push.example.com/992" {
			t.Errorf("%d devices of 1,000 are kept, the oldest %s", len(all), all[0].Endpoint())
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}

		for origin, want := range map[string]bool{
			"https://home.example": true, "http://127.0.0.1:8765": true, "http://localhost:1": true, "http://[::1]:1": true,
			"http://192.168.0.1:8765": false, "http://workstation": false, "http://localhost.evil.example": false, "null": false, "": false,
		} {
			if got := secure(origin); got != want {
				t.Errorf("secure(%q) is %v", origin, got)
			}
		}
	})
}

// TestNoPush checks that a page wakes nobody unless it is told to, and lets no script become a worker.
func TestNoPush(t *testing.T) {
	p := &pushPage{Page: newPage("127.0.0.1:1", &Options{}), t: t, service: newPushService(t)}
	if err := p.startPush(); err != nil {
		t.Fatal(err)
	}
	p.token, _ = p.door.admit(p.door.invite())
	for do, want := range map[string]string{"state": "200 {}", "add": "404 this server wakes no devices", "remove": "404 this server wakes no devices"} {
		if status, body := p.device(do, p.service.subscription("https://push.example.com/x"), nil); fmt.Sprint(status, " ", body) != want {
			t.Errorf("%s: %d %s", do, status, body)
		}
	}
	policy := func(p *Page) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = p.host
		p.serve(w, r)
		return w.Header().Get("Content-Security-Policy")
	}
	without := policy(p.Page)
	if !strings.HasSuffix(without, "; trusted-types 'none'") {
		t.Errorf("the policy is %s", without)
	}
	with := newPage("127.0.0.1:1", &Options{Push: &Push{}})
	var err error
	if with.push, err = newPush(with.options.Push); err != nil {
		t.Fatal(err)
	}
	if got, want := policy(with), strings.TrimSuffix(without, "'none'")+"worker"; got != want {
		t.Errorf("the policy is %s, want %s", got, want)
	}
}
