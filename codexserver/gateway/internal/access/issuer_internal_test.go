package access

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-jose/go-jose/v4"
)

const resource = "https://codex.example.com/mcp"

// issuer is the part of an authorization server that a resource server uses.
type issuer struct {
	*documents
	rsa  *rsa.PrivateKey   // kid r1
	ec   *ecdsa.PrivateKey // kid e1
	enc  *rsa.PrivateKey   // kid enc, not for signatures
	weak *rsa.PrivateKey   // kid weak
}

// rsaKeys are made once, because that takes long: two of the issuer, one of another issuer, and a short one.
var rsaKeys = sync.OnceValue(func() (keys [4]*rsa.PrivateKey) {
	for i, bits := range []int{2048, 2048, 2048, 1024} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	ec := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	keys := rsaKeys()
	i := &issuer{rsa: keys[0], ec: ec, enc: keys[1], weak: keys[3]}
	set := part(t, map[string]any{"keys": []any{
		jose.JSONWebKey{Key: i.rsa.Public(), KeyID: "r1", Use: "sig", Algorithm: "RS256"},
		jose.JSONWebKey{Key: i.ec.Public(), KeyID: "e1", Use: "sig"},
		jose.JSONWebKey{Key: i.enc.Public(), KeyID: "enc", Use: "enc"},
		jose.JSONWebKey{Key: i.weak.Public(), KeyID: "weak", Use: "sig"},
		map[string]string{"kty": "oct", "kid": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "HS256"},
		map[string]string{"kty": "unheard-of", "kid": "new"},
	}})
	i.documents = &documents{t: t, bodys: map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: set}}
	return i
}

func (i *issuer) enter(s settings.HTTP) *Access {
	i.t.Helper()
	a := enter(i.t, s)
	a.keys.client.Transport = i.documents
	return a
}

func (i *issuer) settings(change func(*settings.HTTP)) (s settings.HTTP, ann, bob string) {
	return team(i.t, func(s *settings.HTTP) {
		s.URL = resource
		s.OAuth = settings.OAuth{Issuer: where, Audience: resource, Claim: "sub"}
		if change != nil {
			change(s)
		}
	})
}

// object is the header or the claims of a token. The value nil removes a member.
type object map[string]any

func (o object) with(more object) object {
	all := object{}
	for _, from := range []object{o, more} {
		for k, v := range from {
			if all[k] = v; v == nil {
				delete(all, k)
			}
		}
	}
	return all
}

func header() object { return object{"typ": "at+jwt", "alg": "RS256", "kid": "r1"} }

func (i *issuer) claims() object {
	now := time.Now().Unix()
	return object{
		"iss": where, "sub": "ann", "aud": resource, "client_id": "test", "jti": "1", "iat": now, "exp": now + 300,
		"scope": "openid codex:run codex:approve codex:read",
	}
}

// token returns a valid token with these changes.
func (i *issuer) token(h, c object) string {
	return i.signed(header().with(h), i.claims().with(c), rs256(i.t, i.rsa))
}

// part returns an object as JSON, or its JSON.
func part(t *testing.T, v any) string {
	t.Helper()
	if text, is := v.(string); is {
		return text
	}
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// signed returns a token with the given parts, each an object or its JSON.
func (i *issuer) signed(h, c any, sign func([]byte) []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	input := encode([]byte(part(i.t, h))) + "." + encode([]byte(part(i.t, c)))
	return input + "." + encode(sign([]byte(input)))
}

// by returns a signature of RSA, in the way that the options say.
func by(t *testing.T, key *rsa.PrivateKey, o crypto.SignerOpts) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		b := must.Get(key.Sign(rand.Reader, sum[:], o))(t)
		return b
	}
}

func rs256(t *testing.T, key *rsa.PrivateKey) func([]byte) []byte { return by(t, key, crypto.SHA256) }

func es256(t *testing.T, key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		must.OK(t, err)
		b := make([]byte, 64)
		r.FillBytes(b[:32])
		s.FillBytes(b[32:])
		return b
	}
}

func hs256(secret []byte) func([]byte) []byte {
	return func(input []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(input)
		return mac.Sum(nil)
	}
}

func unsigned([]byte) []byte { return nil }

// flipped returns a token with one bit of a part changed.
func flipped(token string, at int) string {
	parts := strings.Split(token, ".")
	b := []byte(parts[at])
	if b[len(b)/2] == 'A' {
		b[len(b)/2] = 'B'
	} else {
		b[len(b)/2] = 'A'
	}
	parts[at] = string(b)
	return strings.Join(parts, ".")
}
