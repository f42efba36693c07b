package access_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/go-jose/go-jose/v4"
)

// site is a server with an Access. Its engine counts the turns.
type site struct {
	t     *testing.T
	url   string
	turns atomic.Int64
}

// serve starts a server for the users of s. Each request comes from a new address, so that
// the limit of failures does not apply.
func serve(t *testing.T, s settings.HTTP) *site {
	t.Helper()
	x := &site{t: t}
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
		x.turns.Add(1)
		host.Emit(protocol.AgentMessage{Message: "heard " + protocol.TextOf(in)})
		return nil
	})
	a := enter(t, s, &access.Options{})
	own := codexserver.New(e, nil)
	h, err := mcphttp.New(func(ctx context.Context, name string) mcphttp.Service { return own.Principal(ctx, name) }, &mcphttp.Options{
		Authenticate: a.Identify, Challenge: `Bearer realm="codex-mcp"`, Metadata: access.MetadataURL(s), Principals: len(s.Principals), Origins: s.Origins,
	})
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", n>>16&255, n>>8&255, n&255)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	x.url = server.URL
	return x
}

// way is one kind of request.
type way struct {
	name, method, body string
	h                  map[string]string
}

const today = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// ways returns the kinds of requests, some of them in an open session.
func ways(session string) []way {
	in := map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
	return []way{
		{"a call", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"p"},` + today + `}}`,
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "codex"}},
		{"a list", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + today + `}}`,
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}},
		{"initialize", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil},
		{"a call in a session", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"p"}}}`, in},
		{"an answer", "POST", `{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, in},
		{"GET", "GET", "", in},
		{"DELETE", "DELETE", "", in},
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request after change has changed it.
func (x *site) send(w way, change func(*http.Request)) answer {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, w.method, x.url, strings.NewReader(w.body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range w.h {
		r.Header.Set(name, value)
	}
	change(r)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatalf("%s: %v", w.name, err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(body)}
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// session begins a session.
func (x *site) session(token string) string {
	x.t.Helper()
	got := x.send(ways("")[2], bearer(token))
	if got.header.Get("Mcp-Session-Id") == "" {
		x.t.Fatalf("initialize: %+v", got)
	}
	return got.header.Get("Mcp-Session-Id")
}

// badTokens returns access tokens that must be refused, by name.
func badTokens(t *testing.T, i *issuer) map[string]string {
	now := time.Now().Unix()
	good := i.token(nil, nil)
	other, foreign := rsaKey(t, 2048), newIssuer(t)
	public, err := x509.MarshalPKIXPublicKey(i.rsa.Public())
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	asJWK, err := (&jose.JSONWebKey{Key: i.rsa.Public(), KeyID: "r1"}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	theirs := jose.JSONWebKey{Key: other.Public(), KeyID: "r1", Use: "sig", Algorithm: "RS256"}
	// The URL of the attacker's keys, which the server must not fetch.
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the server asked for %s", r.URL)
	}))
	t.Cleanup(asked.Close)
	forged := func(h object) string { return i.signed(header().with(h), i.claims(), rs256(t, other)) }
	hmac := func(secret []byte, h object) string {
		return i.signed(header().with(object{"alg": "HS256"}).with(h), i.claims(), hs256(secret))
	}
	none := func(alg any) string { return i.signed(header().with(object{"alg": alg}), i.claims(), unsigned) }
	claim := func(c object) string { return i.token(nil, c) }
	typ := func(v any) string { return i.token(object{"typ": v}, nil) }
	cut := strings.LastIndex(good, ".")
	std := base64.StdEncoding.EncodeToString
	tokens := map[string]string{
		// Time.
		"expired":            claim(object{"exp": now - 60}),
		"expired long ago":   claim(object{"exp": 1}),
		"no exp":             claim(object{"exp": nil}),
		"exp 0":              claim(object{"exp": 0}),
		"exp below 0":        claim(object{"exp": -1}),
		"exp a text":         claim(object{"exp": fmt.Sprint(now + 300)}),
		"exp true":           claim(object{"exp": true}),
		"exp a list":         claim(object{"exp": []int64{now + 300}}),
		"exp in capitals":    claim(object{"exp": nil, "EXP": now + 300}),
		"not yet valid":      claim(object{"nbf": now + 60}),
		"issued tomorrow":    claim(object{"iat": now + 86400}),
		"nbf a text":         claim(object{"nbf": "0"}),
		"exp and exp":        i.signed(header(), `{"iss":"`+i.url+`","sub":"ann","aud":"`+resource+`","exp":1,"exp":`+fmt.Sprint(now+300)+`}`, rs256(t, i.rsa)),
		"sub and sub":        i.signed(header(), `{"iss":"`+i.url+`","sub":"eve","sub":"ann","aud":"`+resource+`","exp":`+fmt.Sprint(now+300)+`}`, rs256(t, i.rsa)),
		"claims that are []": i.signed(header(), `[]`, rs256(t, i.rsa)),
		"claims null":        i.signed(header(), `null`, rs256(t, i.rsa)),
		"claims no JSON":     i.signed(header(), `{"iss":`, rs256(t, i.rsa)),
		"no claims":          i.signed(header(), ``, rs256(t, i.rsa)),
		// For whom, by whom.
		"another audience":             claim(object{"aud": "https://other.example.com/mcp"}),
		"no audience":                  claim(object{"aud": nil}),
		"an empty audience":            claim(object{"aud": ""}),
		"no audiences":                 claim(object{"aud": []string{}}),
		"a part of the audience":       claim(object{"aud": "https://codex.example.com"}),
		"a longer audience":            claim(object{"aud": resource + "/"}),
		"the audience with a fragment": claim(object{"aud": resource + "#x"}),
		"the audience in capitals":     claim(object{"aud": strings.ToUpper(resource)}),
		"audiences in one text":        claim(object{"aud": resource + " https://other.example.com"}),
		"an audience that is true":     claim(object{"aud": true}),
		"the audience as resource":     claim(object{"aud": "other", "resource": resource}),
		"the client as audience":       claim(object{"aud": "test", "azp": "test"}),
		"another issuer":               claim(object{"iss": "https://issuer.example.com"}),
		"a real other issuer":          foreign.token(nil, nil),
		"the other issuer's key":       foreign.token(nil, object{"iss": i.url}),
		"a longer issuer":              claim(object{"iss": i.url + "/"}),
		"the issuer in capitals":       claim(object{"iss": strings.ToUpper(i.url)}),
		"no issuer":                    claim(object{"iss": nil}),
		"issuers":                      claim(object{"iss": []string{i.url}}),
		"the issuer in the header":     i.token(object{"iss": i.url}, object{"iss": nil}),
		"a list of subjects":           claim(object{"sub": []string{"ann"}}),
		"a subject that is a number":   claim(object{"sub": 1}),
		"a subject that is true":       claim(object{"sub": true}),
		"a subject that is an object":  claim(object{"sub": object{"ann": "ann"}}),
		// What kind.
		"an ID token":             i.token(object{"typ": "JWT"}, object{"aud": "client", "nonce": "n"}),
		"an ID token for us":      i.token(object{"typ": "JWT"}, object{"nonce": "n"}),
		"no typ":                  typ(nil),
		"an empty typ":            typ(""),
		"typ jwt":                 typ("jwt"),
		"typ with a space":        typ("at+jwt "),
		"typ of a logout token":   typ("logout+jwt"),
		"typ of a DPoP proof":     typ("dpop+jwt"),
		"typ of a request object": typ("oauth-authz-req+jwt"),
		"typ of introspection":    typ("token-introspection+jwt"),
		"typ a number":            typ(1),
		"typ a list":              typ([]string{"at+jwt"}),
		"typ as a parameter":      typ("application/at+jwt; x=y"),
		"typ in the claims":       i.token(object{"typ": "JWT"}, object{"typ": "at+jwt"}),
		// Which algorithm.
		"alg none":                none("none"),
		"alg None":                none("None"),
		"alg NONE":                none("NONE"),
		"alg nOnE":                none("nOnE"),
		"an empty alg":            none(""),
		"no alg":                  none(nil),
		"alg null":                i.signed(`{"typ":"at+jwt","alg":null,"kid":"r1"}`, i.claims(), unsigned),
		"alg a list":              none([]string{"RS256"}),
		"none, signed":            i.signed(header().with(object{"alg": "none"}), i.claims(), rs256(t, i.rsa)),
		"alg and alg":             i.signed(`{"typ":"at+jwt","alg":"RS256","alg":"none","kid":"r1"}`, i.claims(), unsigned),
		"HS256 with the PEM":      hmac(asPEM, nil),
		"HS256 with the DER":      hmac(public, nil),
		"HS256 with the JWK":      hmac(asJWK, nil),
		"HS256 with the modulus":  hmac(i.rsa.N.Bytes(), nil),
		"HS256 without a kid":     hmac(asPEM, object{"kid": nil}),
		"HS256 with nothing":      hmac(nil, object{"kid": "/dev/null"}),
		"HS256, the oct key":      hmac([]byte("secretsecretsecretsecret"), object{"kid": "oct"}),
		"HS384":                   hmac(asPEM, object{"alg": "HS384"}),
		"HS512":                   hmac(asPEM, object{"alg": "HS512"}),
		"alg dir":                 hmac(asPEM, object{"alg": "dir"}),
		"alg rs256":               i.token(object{"alg": "rs256"}, nil),
		"PS256 for an RS256 key":  i.signed(header().with(object{"alg": "PS256"}), i.claims(), ps256(t, i.rsa)),
		"RS256, signed PS256":     i.signed(header(), i.claims(), ps256(t, i.rsa)),
		"ES256 with the RSA key":  i.signed(header().with(object{"alg": "ES256"}), i.claims(), rs256(t, i.rsa)),
		"ES384 with P-256":        i.signed(header().with(object{"alg": "ES384", "kid": "e1"}), i.claims(), es256(t, i.ec)),
		"ES256, a zero signature": i.signed(header().with(object{"alg": "ES256", "kid": "e1"}), i.claims(), func([]byte) []byte { return make([]byte, 64) }),
		"EdDSA, no such key":      i.signed(header().with(object{"alg": "EdDSA", "kid": "e1"}), i.claims(), es256(t, i.ec)),
		// Which key.
		"another's key":            forged(nil),
		"another's key, no kid":    forged(object{"kid": nil}),
		"an unknown kid":           forged(object{"kid": "r2"}),
		"a kid that is a path":     forged(object{"kid": "../../../../dev/null"}),
		"a kid that is a query":    forged(object{"kid": "r1' OR '1'='1"}),
		"a kid that is a URL":      forged(object{"kid": asked.URL}),
		"a kid with a NUL":         forged(object{"kid": "r1\x00"}),
		"a long kid":               forged(object{"kid": strings.Repeat("k", 8000)}),
		"a kid that is a number":   i.token(object{"kid": 1}, nil),
		"a kid in capitals":        i.token(object{"kid": "R1"}, nil),
		"the kid of another key":   i.token(object{"kid": "e1"}, nil),
		"a key to encrypt":         i.signed(header().with(object{"kid": "enc"}), i.claims(), rs256(t, i.enc)),
		"a key to encrypt, no kid": i.signed(header().with(object{"kid": nil}), i.claims(), rs256(t, i.enc)),
		"a short key":              i.signed(header().with(object{"kid": "weak"}), i.claims(), rs256(t, i.weak)),
		"a short key, no kid":      i.signed(header().with(object{"kid": nil}), i.claims(), rs256(t, i.weak)),
		"its own jwk":              forged(object{"jwk": theirs}),
		"its own jwk, no kid":      forged(object{"jwk": theirs, "kid": nil}),
		"its own jku":              forged(object{"jku": asked.URL + "/jku"}),
		"its own x5u":              forged(object{"x5u": asked.URL + "/x5u"}),
		"its own x5c":              forged(object{"x5c": []string{std(public)}}),
		"its own x5t":              forged(object{"x5t": "AAAA"}),
		"a private jwk":            forged(object{"jwk": jose.JSONWebKey{Key: other, KeyID: "r1"}}),
		"crit":                     i.token(object{"crit": []string{"x"}, "x": 1}, nil),
		"an empty crit":            i.token(object{"crit": []string{}}, nil),
		"b64":                      i.token(object{"crit": []string{"b64"}, "b64": false}, nil),
		"zip":                      i.token(object{"enc": "A128GCM"}, object{"exp": 1}),
		// The signature.
		"no signature":                 good[:cut+1],
		"no signature at all":          good[:cut],
		"half a signature":             good[:cut+100],
		"a longer signature":           good + "AAAA",
		"a changed signature":          flipped(good, 2),
		"changed claims":               flipped(good, 1),
		"a changed header":             flipped(good, 0),
		"another's claims":             strings.Join([]string{strings.Split(good, ".")[0], part(t, i.claims().with(object{"sub": "bob@example.com"})), strings.Split(good, ".")[2]}, "."),
		"the signature of an ID token": strings.Join([]string{strings.Split(good, ".")[0], strings.Split(good, ".")[1], strings.Split(i.token(object{"typ": "JWT"}, nil), ".")[2]}, "."),
		"the empty signature":          i.signed(header(), i.claims(), unsigned),
		"padding":                      good + "=",
		"padding in the header":        strings.Replace(good, ".", "==.", 1),
		// The form.
		"two dots":         "..",
		"dots":             "....",
		"one dot":          good[:strings.Index(good, ".")] + ".",
		"five parts":       good + ".x.y",
		"a dot before":     "." + good,
		"a dot behind":     good + ".",
		"JSON":             `{"protected":"` + strings.Split(good, ".")[0] + `","payload":"` + strings.Split(good, ".")[1] + `","signature":"` + strings.Split(good, ".")[2] + `"}`,
		"standard base64":  std([]byte(`{"alg":"RS256"}`)) + "." + std([]byte(`{"x":"??>>"}`)) + "." + std(make([]byte, 256)),
		"twice":            good + good,
		"two":              good + " " + good,
		"two with a comma": good + ", Bearer " + good,
		"quoted":           `"` + good + `"`,
		"escaped":          strings.Replace(good, ".", "%2E", 2),
		"a long token":     i.token(object{"x": strings.Repeat("x", 16<<10)}, nil),
		"a longer token":   strings.Repeat("a", 50<<10),
		"many dots":        strings.Repeat(".", 10000),
		"deep JSON":        part(t, strings.Repeat("[", 5000)) + "." + part(t, strings.Repeat("[", 5000)) + ".AAAA",
		"deep claims":      i.signed(header(), `{"iss":"`+i.url+`","x":`+strings.Repeat("[", 4000)+strings.Repeat("]", 4000)+`}`, rs256(t, other)),
	}
	return tokens
}

// strangers returns valid tokens of people who are not users of this server, by name.
func strangers(i *issuer) map[string]string {
	tokens := map[string]string{}
	for name, sub := range map[string]any{
		"nobody": nil, "an empty name": "", "a stranger": "eve", "capitals": "ANN", "a space behind": "ann ", "a NUL behind": "ann\x00",
		"a path": "../ann", "a path below": "ann/x", "a path back": "x/../ann", "a path from here": "./ann", "a path with a slash": "ann/", "a letter that looks like it": "аnn",
		"a name that is no subject": "bob", "a line behind": "ann\n", "a user of a domain": "ann@example.com", "a star": "*",
	} {
		tokens[name] = i.token(nil, object{"sub": sub})
	}
	tokens["another member"] = i.token(nil, object{"sub": nil, "Sub": "ann", "username": "ann", "principal": "ann", "client_id": "ann"})
	return tokens
}

// TestForgedTokens sends invalid tokens with each kind of request. Nothing must run, and the
// answer must only say that the token was refused.
func TestForgedTokens(t *testing.T) {
	i := newIssuer(t)
	s, ann, bob := i.settings(nil)
	x := serve(t, s)
	began := time.Now()
	session := x.session(i.token(nil, nil))
	n := 0
	refused := func(name string, w way, status int, change func(*http.Request)) {
		t.Helper()
		n++
		got := x.send(w, change)
		if got.status != status || len(got.body) > 100 || strings.Contains(got.body, "jsonrpc") || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s with %s: %+v", w.name, name, got)
		}
		if got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s with %s: WWW-Authenticate is missing", w.name, name)
		}
		for _, secret := range []string{"ann", "bob", "exp", "aud", "iss", "kid", i.url} {
			if strings.Contains(got.body, secret) || strings.Contains(got.header.Get("WWW-Authenticate"), secret+"\"") {
				t.Errorf("%s with %s: the answer contains %q: %+v", w.name, name, secret, got)
			}
		}
	}
	bad := badTokens(t, i)
	maps.Copy(bad, map[string]string{
		"a static token's hash": s.Principals["ann"].Tokens[0], "a longer static token": ann + "A", "a shorter one": ann[:len(ann)-1],
		"a static token in lower case": strings.ToLower(ann), "one that begins like ann's": ann[:20] + bob[20:], "half of each": ann[:21] + bob[21:],
		"a name": "ann", "true": "true", "null": "null", "a star": "*", "undefined": "undefined",
	})
	for _, w := range ways(session) {
		for name, token := range bad {
			refused(name, w, 401, bearer(token))
		}
		for name, token := range strangers(i) {
			refused("the subject "+name, w, 403, bearer(token))
		}
	}
	if n < 700 {
		t.Errorf("only %d requests", n)
	}
	if got := x.turns.Load(); got != 0 {
		t.Errorf("%d turns ran", got)
	}
	// An unknown key makes the server fetch the keys again, every ten seconds at most.
	if fetched, took := i.fetches.Load(), time.Since(began); fetched > 1+int64(took/(10*time.Second)) {
		t.Errorf("the keys were fetched %d times in %s", fetched, took)
	}
	for name, token := range map[string]string{"ann's": i.token(nil, nil), "ann's static": ann} {
		if got := x.send(ways(session)[3], bearer(token)); got.status != 200 || !strings.Contains(got.body, "heard p") {
			t.Errorf("afterwards, with the token %s: %+v", name, got)
		}
	}
}

// TestMisplacedToken sends a valid token in other places than the header Authorization.
func TestMisplacedToken(t *testing.T) {
	i := newIssuer(t)
	s, ann, bob := i.settings(nil)
	x := serve(t, s)
	session := x.session(ann)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	twice := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	query := func(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }
	n := 0
	for kind, token := range map[string]string{"a static token": ann, "an access token": i.token(nil, nil)} {
		for name, change := range map[string]func(*http.Request){
			"nothing":                  func(*http.Request) {},
			"access_token in a query":  query("access_token=" + token),
			"token in a query":         query("token=" + token),
			"authorization in a query": query("Authorization=Bearer%20" + token),
			"a user of the URL":        func(r *http.Request) { r.SetBasicAuth("ann", token) },
			"a password":               func(r *http.Request) { r.SetBasicAuth(token, "") },
			"a cookie":                 set("Cookie", "Authorization=Bearer "+token+"; token="+token),
			"X-Authorization":          set("X-Authorization", "Bearer "+token),
			"Proxy-Authorization":      set("Proxy-Authorization", "Bearer "+token),
			"X-Api-Key":                set("X-Api-Key", token),
			"Sec-WebSocket-Protocol":   set("Sec-Websocket-Protocol", token),
			"X-Forwarded-User":         set("X-Forwarded-User", "ann"),
			"X-Remote-User":            set("X-Remote-User", "ann"),
			"Remote-User":              set("Remote-User", "ann"),
			"X-Codex-Mcp-Principal":    set("X-Codex-Mcp-Principal", "ann"),
			"X-Codex-Principal":        set("X-Codex-Principal", "ann"),
			"Codex-Mcp-Scopes": func(r *http.Request) {
				r.Header.Set("Codex-Mcp-Principal", "ann")
				r.Header.Set("Codex-Mcp-Scopes", "codex:run codex:approve codex:read")
			},
			"Codex-Mcp-Principal":    set("Codex-Mcp-Principal", "ann"),
			"Forwarded":              set("Forwarded", "for=127.0.0.1;by=ann"),
			"X-Original-URL":         set("X-Original-Url", "/healthz"),
			"X-HTTP-Method-Override": set("X-Http-Method-Override", "OPTIONS"),
			"a form":                 set("Content-Type", "application/x-www-form-urlencoded"),
			"no scheme":              set("Authorization", token),
			"Basic":                  set("Authorization", "Basic "+token),
			"Digest":                 set("Authorization", "Digest "+token),
			"DPoP":                   set("Authorization", "DPoP "+token),
			"Token":                  set("Authorization", "Token "+token),
			"Bearer:":                set("Authorization", "Bearer: "+token),
			"Bearer=":                set("Authorization", "Bearer="+token),
			"two spaces":             set("Authorization", "Bearer  "+token),
			"a tab":                  set("Authorization", "Bearer\t"+token),
			"a comma":                set("Authorization", "Bearer,"+token),
			"Bearer Bearer":          set("Authorization", "Bearer Bearer "+token),
			"behind another":         set("Authorization", "Basic x, Bearer "+token),
			"before another":         set("Authorization", "Bearer "+token+", Basic x"),
			"before another's":       set("Authorization", "Bearer "+token+" "+bob),
			"as a parameter":         set("Authorization", `Bearer token="`+token+`"`),
			"twice":                  twice("Bearer "+token, "Bearer "+token),
			"before a wrong one":     twice("Bearer "+token, "Bearer x"),
			"behind a wrong one":     twice("Bearer x", "Bearer "+token),
			"behind an empty one":    twice("", "Bearer "+token),
			"twice, of two":          twice("Bearer "+token, "Bearer "+bob),
			"OPTIONS":                func(r *http.Request) { r.Method = http.MethodOptions },
		} {
			for _, w := range ways(session) {
				n++
				got := x.send(w, change)
				if got.status != 401 || strings.Contains(got.body, "jsonrpc") {
					t.Errorf("%s, %s, %s: %+v", w.name, kind, name, got)
				}
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d requests", n)
	}
	if got := x.turns.Load(); got != 0 {
		t.Errorf("%d turns ran", got)
	}
}

// TestForeignSession sends a valid token to the session of another user, and a token with
// too few scopes to the session of its own user.
func TestForeignSession(t *testing.T) {
	i := newIssuer(t)
	s, ann, bob := i.settings(nil)
	x := serve(t, s)
	session := x.session(ann)
	for kind, token := range map[string]string{"static": bob, "access": i.token(nil, object{"sub": "bob@example.com"})} {
		for _, w := range ways(session)[3:] {
			got := x.send(w, bearer(token))
			if want := 404; got.status != want || strings.Contains(got.body, "heard") {
				t.Errorf("%s with bob's %s token: %+v", w.name, kind, got)
			}
		}
	}
	for name, scopes := range map[string]string{
		"none": "", "another's": "openid profile email", "capitals": "CODEX:RUN CODEX:READ CODEX:APPROVE", "commas": "codex:run,codex:read,codex:approve",
		"a star": "codex:* *", "a longer word": "codex:runner codex:reader codex:approved", "a shorter word": "codex: run read approve",
		"quotes": `"codex:run" "codex:read" "codex:approve"`,
	} {
		token := i.token(nil, object{"scope": scopes})
		for _, w := range ways(session) {
			got := x.send(w, bearer(token))
			if got.status != 403 || !strings.Contains(got.header.Get("WWW-Authenticate"), `error="insufficient_scope"`) || strings.Contains(got.body, "result") {
				t.Errorf("%s with the scopes %s: %+v", w.name, name, got)
			}
		}
	}
	if got := x.turns.Load(); got != 0 {
		t.Errorf("%d turns ran", got)
	}
	for scopes, allowed := range map[string][]int{"codex:read": {1, 2, 5}, "codex:run": {0, 3}, "codex:approve": {4}} {
		token := i.token(nil, object{"scope": scopes})
		for at, w := range ways(session) {
			if w.name == "GET" || w.name == "DELETE" {
				continue // a stream, and the end of the session
			}
			got := x.send(w, bearer(token))
			may := false
			for _, a := range allowed {
				may = may || a == at
			}
			if may == (got.status == 403) {
				t.Errorf("%s with %s: %+v", w.name, scopes, got)
			}
		}
	}
}
