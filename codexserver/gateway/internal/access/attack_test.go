package access_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/go-jose/go-jose/v4"
)

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
		"no exp":             claim(object{"exp": nil}),
		"exp below 0":        claim(object{"exp": -1}),
		"exp a text":         claim(object{"exp": fmt.Sprint(now + 300)}),
		"exp in capitals":    claim(object{"exp": nil, "EXP": now + 300}),
		"not yet valid":      claim(object{"nbf": now + 60}),
		"issued tomorrow":    claim(object{"iat": now + 86400}),
		"nbf a text":         claim(object{"nbf": "0"}),
		"exp and exp":        i.signed(header(), `{"iss":"`+i.url+`","sub":"ann","aud":"`+resource+`","exp":1,"exp":`+fmt.Sprint(now+300)+`}`, rs256(t, i.rsa)),
		"sub and sub":        i.signed(header(), `{"iss":"`+i.url+`","sub":"eve","sub":"ann","aud":"`+resource+`","exp":`+fmt.Sprint(now+300)+`}`, rs256(t, i.rsa)),
		"claims that are []": i.signed(header(), `[]`, rs256(t, i.rsa)),
		"claims no JSON":     i.signed(header(), `{"iss":`, rs256(t, i.rsa)),
		// For whom, by whom.
		"another audience":           claim(object{"aud": "https://other.example.com/mcp"}),
		"no audience":                claim(object{"aud": nil}),
		"an empty audience":          claim(object{"aud": ""}),
		"a part of the audience":     claim(object{"aud": "https://codex.example.com"}),
		"the audience in capitals":   claim(object{"aud": strings.ToUpper(resource)}),
		"an audience that is true":   claim(object{"aud": true}),
		"the audience as resource":   claim(object{"aud": "other", "resource": resource}),
		"the client as audience":     claim(object{"aud": "test", "azp": "test"}),
		"another issuer":             claim(object{"iss": "https://issuer.example.com"}),
		"a real other issuer":        foreign.token(nil, nil),
		"the other issuer's key":     foreign.token(nil, object{"iss": i.url}),
		"no issuer":                  claim(object{"iss": nil}),
		"issuers":                    claim(object{"iss": []string{i.url}}),
		"the issuer in the header":   i.token(object{"iss": i.url}, object{"iss": nil}),
		"a list of subjects":         claim(object{"sub": []string{"ann"}}),
		"a subject that is a number": claim(object{"sub": 1}),
		// What kind.
		"an ID token":         i.token(object{"typ": "JWT"}, object{"aud": "client", "nonce": "n"}),
		"no typ":              typ(nil),
		"an empty typ":        typ(""),
		"typ with a space":    typ("at+jwt "),
		"typ of a DPoP proof": typ("dpop+jwt"),
		"typ a list":          typ([]string{"at+jwt"}),
		"typ as a parameter":  typ("application/at+jwt; x=y"),
		"typ in the claims":   i.token(object{"typ": "JWT"}, object{"typ": "at+jwt"}),
		// Which algorithm.
		"alg none":                none("none"),
		"alg NONE":                none("NONE"),
		"no alg":                  none(nil),
		"alg null":                i.signed(`{"typ":"at+jwt","alg":null,"kid":"r1"}`, i.claims(), unsigned),
		"none, signed":            i.signed(header().with(object{"alg": "none"}), i.claims(), rs256(t, i.rsa)),
		"alg and alg":             i.signed(`{"typ":"at+jwt","alg":"RS256","alg":"none","kid":"r1"}`, i.claims(), unsigned),
		"HS256 with the PEM":      hmac(asPEM, nil),
		"HS256 with the modulus":  hmac(i.rsa.N.Bytes(), nil),
		"HS256 without a kid":     hmac(asPEM, object{"kid": nil}),
		"HS256 with nothing":      hmac(nil, object{"kid": "/dev/null"}),
		"HS256, the oct key":      hmac([]byte("secretsecretsecretsecret"), object{"kid": "oct"}),
		"alg dir":                 hmac(asPEM, object{"alg": "dir"}),
		"alg rs256":               i.token(object{"alg": "rs256"}, nil),
		"PS256 for an RS256 key":  i.signed(header().with(object{"alg": "PS256"}), i.claims(), by(t, i.rsa, &rsa.PSSOptions{Hash: crypto.SHA256})),
		"RS256, signed PS256":     i.signed(header(), i.claims(), by(t, i.rsa, &rsa.PSSOptions{Hash: crypto.SHA256})),
		"ES256 with the RSA key":  i.signed(header().with(object{"alg": "ES256"}), i.claims(), rs256(t, i.rsa)),
		"ES384 with P-256":        i.signed(header().with(object{"alg": "ES384", "kid": "e1"}), i.claims(), es256(t, i.ec)),
		"ES256, a zero signature": i.signed(header().with(object{"alg": "ES256", "kid": "e1"}), i.claims(), func([]byte) []byte { return make([]byte, 64) }),
		"EdDSA, no such key":      i.signed(header().with(object{"alg": "EdDSA", "kid": "e1"}), i.claims(), es256(t, i.ec)),
		// Which key.
		"another's key":            forged(nil),
		"another's key, no kid":    forged(object{"kid": nil}),
		"an unknown kid":           forged(object{"kid": "r2"}),
		"a kid that is a URL":      forged(object{"kid": asked.URL}),
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
		// The form.
		"one dot":          good[:strings.Index(good, ".")] + ".",
		"five parts":       good + ".x.y",
		"JSON":             `{"protected":"` + strings.Split(good, ".")[0] + `","payload":"` + strings.Split(good, ".")[1] + `","signature":"` + strings.Split(good, ".")[2] + `"}`,
		"standard base64":  std([]byte(`{"alg":"RS256"}`)) + "." + std([]byte(`{"x":"??>>"}`)) + "." + std(make([]byte, 256)),
		"two with a comma": good + ", Bearer " + good,
		"a long token":     i.token(object{"x": strings.Repeat("x", 16<<10)}, nil),
		"a longer token":   strings.Repeat("a", 50<<10),
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

// TestForgedTokens sends invalid tokens. Nobody is let in, and the answer only says that the token was refused.
func TestForgedTokens(t *testing.T) {
	i := newIssuer(t)
	s, ann, bob := i.settings(nil)
	a := enter(t, s)
	began := time.Now()
	bad := badTokens(t, i)
	maps.Copy(bad, map[string]string{
		"a static token's hash": s.Principals["ann"].Tokens[0], "a longer static token": ann + "A", "a shorter one": ann[:len(ann)-1],
		"a static token in lower case": strings.ToLower(ann), "one in upper case": strings.ToUpper(ann), "one that begins like ann's": ann[:20] + bob[20:], "a name": "ann", "null": "null", "a star": "*",
		"the digits of its hash": strings.TrimPrefix(access.Hash(ann), "sha256:"), "both": ann + bob, "with a comma": ann + ", Bearer " + bob, "a space before it": " " + ann,
	})
	for status, tokens := range map[int]map[string]string{0: bad, http.StatusForbidden: strangers(i)} {
		for name, token := range tokens {
			why := refusal(t, a, with("Bearer "+token))
			if why.Status != status || (why.Code == "invalid_token") != (status == 0) {
				t.Errorf("%s: %+v", name, why)
			}
			for _, secret := range []string{"ann", "bob", "exp", "aud", "iss", "kid", i.url, ann} {
				if strings.Contains(why.Words, secret) || secret == ann && strings.Contains(why.Error(), ann) {
					t.Errorf("%s: the answer contains %q: %s", name, secret, why.Words)
				}
			}
		}
	}
	// An unknown key makes the server fetch the keys again, every ten seconds at most.
	if fetched, took := i.fetches.Load(), time.Since(began); fetched > 1+int64(took/(10*time.Second)) {
		t.Errorf("the keys were fetched %d times in %s", fetched, took)
	}
	for name, token := range map[string]string{"ann's": i.token(nil, nil), "ann's static": ann} {
		if who, err := a.Identify(with("Bearer " + token)); err != nil || who.Name != "ann" {
			t.Errorf("afterwards, with the token %s: %+v, %v", name, who, err)
		}
	}
}

// TestMisplacedToken sends a valid token in other places than the header Authorization, or in another form.
func TestMisplacedToken(t *testing.T) {
	i := newIssuer(t)
	s, ann, bob := i.settings(nil)
	a := enter(t, s)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	twice := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	query := func(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }
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
			"Remote-User":              set("Remote-User", "ann"),
			"Codex-Mcp-Scopes": func(r *http.Request) {
				r.Header.Set("Codex-Mcp-Principal", "ann")
				r.Header.Set("Codex-Mcp-Scopes", "codex:run codex:approve codex:read")
			},
			"Codex-Mcp-Principal": set("Codex-Mcp-Principal", "ann"),
			"Forwarded":           set("Forwarded", "for=127.0.0.1;by=ann"),
			"an empty header":     set("Authorization", ""),
			"no token":            set("Authorization", "Bearer"),
			"an empty token":      set("Authorization", "Bearer "),
			"no scheme":           set("Authorization", token),
			"Basic":               set("Authorization", "Basic "+token),
			"Digest":              set("Authorization", "Digest "+token),
			"DPoP":                set("Authorization", "DPoP "+token),
			"Token":               set("Authorization", "Token "+token),
			"Bearer:":             set("Authorization", "Bearer: "+token),
			"Bearer=":             set("Authorization", "Bearer="+token),
			"two spaces":          set("Authorization", "Bearer  "+token),
			"a tab":               set("Authorization", "Bearer\t"+token),
			"a comma":             set("Authorization", "Bearer,"+token),
			"Bearer Bearer":       set("Authorization", "Bearer Bearer "+token),
			"behind another":      set("Authorization", "Basic x, Bearer "+token),
			"before another":      set("Authorization", "Bearer "+token+", Basic x"),
			"before another's":    set("Authorization", "Bearer "+token+" "+bob),
			"as a parameter":      set("Authorization", `Bearer token="`+token+`"`),
			"twice":               twice("Bearer "+token, "Bearer "+token),
			"before a wrong one":  twice("Bearer "+token, "Bearer x"),
			"behind a wrong one":  twice("Bearer x", "Bearer "+token),
			"behind an empty one": twice("", "Bearer "+token),
			"twice, of two":       twice("Bearer "+token, "Bearer "+bob),
		} {
			r := with()
			change(r)
			if why := refusal(t, a, r); why.Status != 0 {
				t.Errorf("%s, %s: %+v", kind, name, why)
			}
		}
	}
}
