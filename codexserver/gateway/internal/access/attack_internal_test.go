package access

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-jose/go-jose/v4"
)

// badTokens returns access tokens that must be refused, by name.
func badTokens(t *testing.T, i *issuer) map[string]string {
	now := time.Now().Unix()
	good := i.token(nil, nil)
	other := rsaKeys()[2]
	public := must.Get(x509.MarshalPKIXPublicKey(i.rsa.Public()))(t)
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	theirs := jose.JSONWebKey{Key: other.Public(), KeyID: "r1", Use: "sig", Algorithm: "RS256"}
	forged := func(h object) string { return i.signed(header().with(h), i.claims(), rs256(t, other)) }
	hmac := func(secret []byte, h object) string {
		return i.signed(header().with(object{"alg": "HS256"}).with(h), i.claims(), hs256(secret))
	}
	none := func(alg any) string { return i.signed(header().with(object{"alg": alg}), i.claims(), unsigned) }
	claim := func(c object) string { return i.token(nil, c) }
	typ := func(v any) string { return i.token(object{"typ": v}, nil) }
	tokens := map[string]string{
		// Time.
		"expired":            claim(object{"exp": now - 60}),
		"no exp":             claim(object{"exp": nil}),
		"not yet valid":      claim(object{"nbf": now + 60}),
		"issued tomorrow":    claim(object{"iat": now + 86400}),
		"exp and exp":        i.signed(header(), `{"iss":"`+where+`","sub":"ann","aud":"`+resource+`","exp":1,"exp":`+fmt.Sprint(now+300)+`}`, rs256(t, i.rsa)),
		"claims that are []": i.signed(header(), `[]`, rs256(t, i.rsa)),
		// For whom, by whom.
		"another audience":           claim(object{"aud": "https://other.example.com/mcp"}),
		"another issuer":             claim(object{"iss": "https://issuer.example.com"}),
		"no issuer":                  claim(object{"iss": nil}),
		"the issuer in the header":   i.token(object{"iss": where}, object{"iss": nil}),
		"a subject that is a number": claim(object{"sub": 1}),
		// What kind.
		"an ID token":       i.token(object{"typ": "JWT"}, object{"aud": "client", "nonce": "n"}),
		"no typ":            typ(nil),
		"typ in the claims": i.token(object{"typ": "JWT"}, object{"typ": "at+jwt"}),
		// Which algorithm.
		"alg none":                none("none"),
		"alg and alg":             i.signed(`{"typ":"at+jwt","alg":"RS256","alg":"none","kid":"r1"}`, i.claims(), unsigned),
		"HS256 with the PEM":      hmac(asPEM, nil),
		"HS256, the oct key":      hmac([]byte("secretsecretsecretsecret"), object{"kid": "oct"}),
		"PS256 for an RS256 key":  i.signed(header().with(object{"alg": "PS256"}), i.claims(), by(t, i.rsa, &rsa.PSSOptions{Hash: crypto.SHA256})),
		"ES384 with P-256":        i.signed(header().with(object{"alg": "ES384", "kid": "e1"}), i.claims(), es256(t, i.ec)),
		"ES256, a zero signature": i.signed(header().with(object{"alg": "ES256", "kid": "e1"}), i.claims(), func([]byte) []byte { return make([]byte, 64) }),
		// Which key.
		"another's key":    forged(nil),
		"an unknown kid":   forged(object{"kid": "r2"}),
		"a key to encrypt": i.signed(header().with(object{"kid": "enc"}), i.claims(), rs256(t, i.enc)),
		"a short key":      i.signed(header().with(object{"kid": "weak"}), i.claims(), rs256(t, i.weak)),
		"its own jwk":      forged(object{"jwk": theirs}),
		"its own jku":      forged(object{"jku": "https://evil.example/jku"}),
		"crit":             i.token(object{"crit": []string{"x"}, "x": 1}, nil),
		// The signature.
		"a changed signature":          flipped(good, 2),
		"changed claims":               flipped(good, 1),
		"the signature of an ID token": strings.Join([]string{strings.Split(good, ".")[0], strings.Split(good, ".")[1], strings.Split(i.token(object{"typ": "JWT"}, nil), ".")[2]}, "."),
		// The form.
		"JSON":         `{"protected":"` + strings.Split(good, ".")[0] + `","payload":"` + strings.Split(good, ".")[1] + `","signature":"` + strings.Split(good, ".")[2] + `"}`,
		"a long token": i.token(object{"x": strings.Repeat("x", 16<<10)}, nil),
		"deep claims":  i.signed(header(), `{"iss":"`+where+`","x":`+strings.Repeat("[", 4000)+strings.Repeat("]", 4000)+`}`, rs256(t, other)),
	}
	return tokens
}

// strangers returns valid tokens of people who are not users of this server, by name.
func strangers(i *issuer) map[string]string {
	tokens := map[string]string{}
	for name, sub := range map[string]any{
		"nobody": nil, "an empty name": "", "capitals": "ANN", "a space behind": "ann ", "a name that is no subject": "bob",
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
	a := i.enter(s)
	began := time.Now()
	bad := badTokens(t, i)
	maps.Copy(bad, map[string]string{
		"a static token's hash": s.Principals["ann"].Tokens[0], "a longer static token": ann + "A", "a shorter one": ann[:len(ann)-1],
		"a static token in lower case": strings.ToLower(ann), "one that begins like ann's": ann[:20] + bob[20:],
	})
	for status, tokens := range map[int]map[string]string{0: bad, http.StatusForbidden: strangers(i)} {
		for name, token := range tokens {
			why := refusal(t, a, with("Bearer "+token))
			if why.Status != status || (why.Code == "invalid_token") != (status == 0) {
				t.Errorf("%s: %+v", name, why)
			}
			for _, secret := range []string{"ann", "bob", "exp", "aud", "iss", "kid", where, ann} {
				if strings.Contains(why.Words, secret) || secret == ann && strings.Contains(why.Error(), ann) {
					t.Errorf("%s: the answer contains %q: %s", name, secret, why.Words)
				}
			}
		}
	}
	// An unknown key makes the server fetch the keys again, every ten seconds at most.
	if fetched, took := i.count(keysURL), time.Since(began); fetched > 1+int(took/fetchEvery) || i.count("https://evil.example/jku") > 0 {
		t.Errorf("the keys were fetched %d times in %s; asked for %q", fetched, took, i.asked)
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
	s, ann, _ := i.settings(nil)
	a := i.enter(s)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	twice := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	for kind, token := range map[string]string{"a static token": ann, "an access token": i.token(nil, nil)} {
		for name, change := range map[string]func(*http.Request){
			"nothing":                 func(*http.Request) {},
			"access_token in a query": func(r *http.Request) { r.URL.RawQuery = "access_token=" + token },
			"a user of the URL":       func(r *http.Request) { r.SetBasicAuth("ann", token) },
			"a cookie":                set("Cookie", "Authorization=Bearer "+token+"; token="+token),
			"Codex-Mcp-Scopes": func(r *http.Request) {
				r.Header.Set("Codex-Mcp-Principal", "ann")
				r.Header.Set("Codex-Mcp-Scopes", "codex:run codex:approve codex:read")
			},
			"an empty token":      set("Authorization", "Bearer "),
			"no scheme":           set("Authorization", token),
			"DPoP":                set("Authorization", "DPoP "+token),
			"two spaces":          set("Authorization", "Bearer  "+token),
			"before another":      set("Authorization", "Bearer "+token+", Basic x"),
			"twice":               twice("Bearer "+token, "Bearer "+token),
			"behind an empty one": twice("", "Bearer "+token),
		} {
			r := with()
			change(r)
			if why := refusal(t, a, r); why.Status != 0 {
				t.Errorf("%s, %s: %+v", kind, name, why)
			}
		}
	}
}
