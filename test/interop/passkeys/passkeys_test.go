package passkeys

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/page"
	codex "github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-webauthn/webauthn/protocol"
)

// authenticator is one of the test's own, with the browser in front of it.
type authenticator struct {
	key  crypto.Signer
	cose []byte
	id   []byte
}

func newAuthenticator(t *testing.T, algorithm string) *authenticator {
	t.Helper()
	a := &authenticator{id: []byte("an id of a key")}
	var err error
	switch algorithm {
	case "ES256":
		var key *ecdsa.PrivateKey
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			break
		}
		var point []byte
		point, err = key.PublicKey.Bytes()
		a.key, a.cose = key, slices.Concat([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21}, str(2, point[1:33]), []byte{0x22}, str(2, point[33:]))
	case "EdDSA":
		var public ed25519.PublicKey
		public, a.key, err = ed25519.GenerateKey(rand.Reader)
		a.cose = slices.Concat([]byte{0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21}, str(2, public))
	case "RS256":
		var key *rsa.PrivateKey
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			break
		}
		a.key, a.cose = key, slices.Concat([]byte{0xa4, 1, 3, 3, 0x39, 1, 0, 0x20}, str(2, key.N.Bytes()), []byte{0x21}, str(2, big.NewInt(int64(key.E)).Bytes()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// str returns a string of CBOR.
func str(major byte, s []byte) []byte {
	switch n := len(s); {
	case n < 24:
		return append([]byte{major<<5 | byte(n)}, s...)
	case n < 256:
		return append([]byte{major<<5 | 24, byte(n)}, s...)
	default:
		return append([]byte{major<<5 | 25, byte(n >> 8), byte(n)}, s...)
	}
}

const present, verified, newKey = 1, 4, 64

// head returns the beginning of authenticator data.
func head(party string, flags byte, count uint32) []byte {
	sum := sha256.Sum256([]byte(party))
	return binary.BigEndian.AppendUint32(append(sum[:], flags), count)
}

// made returns the authenticator data of a new key.
func (a *authenticator) made(party string, flags byte, more ...byte) []byte {
	return slices.Concat(head(party, flags, 0), make([]byte, 16), []byte{0, byte(len(a.id))}, a.id, a.cose, more)
}

// object returns an attestation object.
func object(format string, data []byte) []byte {
	return slices.Concat([]byte{0xa3}, str(3, []byte("fmt")), str(3, []byte(format)), str(3, []byte("attStmt")), []byte{0xa0}, str(3, []byte("authData")), str(2, data))
}

func (a *authenticator) sign(t *testing.T, data, client []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(client)
	text := slices.Concat(data, sum[:])
	var signature []byte
	var err error
	if _, pure := a.key.(ed25519.PrivateKey); pure {
		signature, err = a.key.Sign(nil, text, crypto.Hash(0))
	} else {
		sum = sha256.Sum256(text)
		signature, err = a.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// members are those of client data that are not the usual ones; nil removes one.
type members map[string]any

func client(t *testing.T, kind, origin string, challenge []byte, change members) []byte {
	t.Helper()
	all := members{"type": kind, "challenge": url(challenge), "origin": origin, "crossOrigin": false}
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// desk is a page with a tab, as its script would use it.
type desk struct {
	t     *testing.T
	page  *page.Page
	file  string
	token string
	lines *bufio.Reader
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, file: filepath.Join(t.TempDir(), "passkeys.json")}
	var err error
	if d.page, err = page.Listen(&page.Options{Passkeys: d.file}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.page.Close(); err != nil {
			t.Error(err)
		}
	})
	_, secret, _ := strings.Cut(d.page.Link(), "#")
	var in struct{ Token string }
	d.into(&in, "/session", map[string]string{"secret": secret})
	d.token = in.Token
	d.lines = bufio.NewReader(d.send(http.MethodGet, "/events", nil).Body)
	return d
}

func (d *desk) send(method, path string, body any) *http.Response {
	d.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.page.Address()+path, bytes.NewReader(raw))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Origin", d.page.Address())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+d.token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { res.Body.Close() })
	return res
}

// post returns the status and the words of an answer.
func (d *desk) post(path string, body any) (int, string) {
	d.t.Helper()
	res := d.send(http.MethodPost, path, body)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (d *desk) into(v any, path string, body any) {
	d.t.Helper()
	if status, text := d.post(path, body); status != http.StatusOK || json.Unmarshal([]byte(text), v) != nil {
		d.t.Fatalf("%s: %d %s", path, status, text)
	}
}

// open asks a question and returns its id.
func (d *desk) open() int {
	d.t.Helper()
	argv := []string{"ls"}
	q := elicit.ExecQuestion{Command: argv, Cwd: "/work"}
	r := &approval.Request{Thread: approval.Thread{ID: "1", Stop: func() {}}, Event: codex.ExecApprovalRequest{Command: argv, Cwd: "/work"}, Question: q.Question()}
	go func() {
		_, _ = d.page.Ask(d.t.Context(), r) // whether it is answered is what a post returns
		d.page.Decided(r, approval.Decision{})
	}()
	for {
		line, err := d.lines.ReadString('\n')
		if err != nil {
			d.t.Fatal(err)
		}
		var update struct {
			Conversations []struct {
				Entries []struct {
					ID       int
					Question *struct{ State string }
				}
			}
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &update); err != nil {
			d.t.Fatal(err)
		}
		for _, c := range update.Conversations {
			for _, e := range c.Entries {
				if e.Question != nil && e.Question.State == "open" {
					return e.ID
				}
			}
		}
	}
}

// begin begins a registration and returns its challenge.
func (d *desk) begin() []byte {
	d.t.Helper()
	links := make(chan string, 1)
	go func() {
		_, _ = d.page.RegisterPasskey(d.t.Context(), "", func(link string) { links <- link })
	}()
	_, secret, _ := strings.Cut(<-links, "#")
	var in struct{ Challenge string }
	d.into(&in, "/passkey/begin", map[string]string{"secret": secret})
	challenge, err := base64.RawURLEncoding.DecodeString(in.Challenge)
	if err != nil {
		d.t.Fatal(err)
	}
	return challenge
}

// tally counts the verdicts of both.
type tally struct {
	t                     *testing.T
	both, neither, theirs int
	stricter              []string // why we alone may refuse
}

func (c *tally) add(name string, ours, theirs error) {
	c.t.Helper()
	switch {
	case ours == nil && theirs == nil:
		c.both++
	case ours != nil && theirs != nil:
		c.neither++
	case ours == nil:
		c.t.Errorf("%s: only we take it: %v", name, theirs)
	default:
		c.theirs++
		if !slices.ContainsFunc(c.stricter, func(why string) bool { return strings.Contains(ours.Error(), why) }) {
			c.t.Errorf("%s: only the other one takes it: %v", name, ours)
		}
	}
}

// end checks that the comparison was one.
func (c *tally) end(both, neither int) {
	c.t.Helper()
	c.t.Logf("both take %d, none takes %d, only the other one takes %d", c.both, c.neither, c.theirs)
	if c.both < both || c.neither < neither {
		c.t.Errorf("both take %d, none takes %d; want at least %d and %d", c.both, c.neither, both, neither)
	}
}

// TestAssertions signs in hundreds of ways, right and wrong, and changes single bits of what was signed.
func TestAssertions(t *testing.T) {
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run(algorithm, func(t *testing.T) {
			d, a := newDesk(t), newAuthenticator(t, algorithm)
			at := d.page.Address()
			challenge := d.begin()
			status, words := d.post("/passkey/add", map[string]string{
				"clientDataJSON":    url(client(t, "webauthn.create", at, challenge, nil)),
				"attestationObject": url(object("none", a.made("localhost", present|verified|newKey))),
			})
			if status != http.StatusOK {
				t.Fatal(words)
			}
			c := &tally{t: t, stricter: []string{
				"flags contradict each other", // synced, and not syncable
				"something after their end",   // a new key, which no assertion has
			}}
			id := d.open()
			try := func(name string, data []byte, change members, spoil func(client, data, signature []byte) (c, d, s []byte)) {
				t.Helper()
				var in struct{ Challenge string }
				d.into(&in, fmt.Sprintf("/questions/%d/sign", id), map[string]string{"decision": "approved"})
				challenge, err := base64.RawURLEncoding.DecodeString(in.Challenge)
				if err != nil {
					t.Fatal(err)
				}
				text := client(t, "webauthn.get", at, challenge, change)
				signature := a.sign(t, data, text)
				if spoil != nil {
					text, data, signature = spoil(text, data, signature)
				}
				theirs := theirAssertion(a, in.Challenge, at, text, data, signature)
				var ours error
				status, words := d.post(fmt.Sprintf("/questions/%d", id), map[string]any{"action": "accept", "proof": map[string]string{
					"id": url(a.id), "clientDataJSON": url(text), "authenticatorData": url(data), "signature": url(signature),
				}})
				if status == http.StatusNoContent {
					id = d.open()
				} else {
					ours = fmt.Errorf("%d %s", status, words)
				}
				c.add(name, ours, theirs)
			}
			right := head("localhost", present|verified, 0)
			for range 3 {
				try("right", right, nil, nil)
			}
			for flags := range 256 {
				try(fmt.Sprintf("flags, %08b", flags), head("localhost", byte(flags), 0), nil, nil)
				try(fmt.Sprintf("flags and extensions, %08b", flags), append(head("localhost", byte(flags), 0), 0xa1, 0x61, 'x', 0xf5), nil, nil)
			}
			for name, change := range map[string]members{
				"type": {"type": "webauthn.create"}, "no type": {"type": nil}, "origin": {"origin": "https://evil.example.com"}, "port": {"origin": at + "0"},
				"no origin": {"origin": nil}, "challenge": {"challenge": url(make([]byte, 32))}, "padded challenge": {"challenge": url(make([]byte, 32)) + "="},
				"no challenge": {"challenge": nil}, "crossOrigin": {"crossOrigin": true}, "no crossOrigin": {"crossOrigin": nil}, "topOrigin": {"topOrigin": at, "crossOrigin": true},
				"more": {"more": map[string]int{"x": 1}}, "a number": {"type": 1},
			} {
				try(name, right, change, nil)
			}
			for name, data := range map[string][]byte{
				"party": head("example.com", present|verified, 0), "no data": nil, "cut": right[:36], "trailing": append(bytes.Clone(right), 0),
				"a new key":                  a.made("localhost", present|verified|newKey),
				"extensions that are no map": append(head("localhost", present|verified|128, 0), 0x80),
				"extensions that are cut":    append(head("localhost", present|verified|128, 0), 0xa1, 0x61),
			} {
				try(name, data, nil, nil)
			}
			r := mathrand.New(mathrand.NewPCG(1, 2))
			for i := range 300 {
				var flip func(b []byte) []byte
				flip = func(b []byte) []byte {
					b = bytes.Clone(b)
					b[r.IntN(len(b))] ^= 1 << r.IntN(8)
					return b
				}
				try(fmt.Sprintf("bit, %d", i), right, nil, func(client, data, signature []byte) (c, d, s []byte) {
					switch i % 3 {
					case 0:
						return flip(client), data, signature
					case 1:
						return client, flip(data), signature
					}
					return client, data, flip(signature)
				})
			}
			c.end(5, 700)
		})
	}
}

// theirAssertion is what the other library says.
func theirAssertion(a *authenticator, challenge, origin string, client, data, signature []byte) error {
	raw, err := json.Marshal(map[string]any{"id": url(a.id), "rawId": url(a.id), "type": "public-key", "response": map[string]string{
		"clientDataJSON": url(client), "authenticatorData": url(data), "signature": url(signature),
	}})
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(raw)
	if err != nil {
		return err
	}
	return parsed.Verify(challenge, "localhost", "", []string{origin}, nil, nil, protocol.TopOriginExplicitVerificationMode, false, true, true, a.cose, protocol.SignaturePolicy{})
}

// TestAttestations registers new keys in hundreds of ways, right and wrong.
func TestAttestations(t *testing.T) {
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run(algorithm, func(t *testing.T) {
			d, a := newDesk(t), newAuthenticator(t, algorithm)
			at := d.page.Address()
			challenge := d.begin()
			c := &tally{t: t, stricter: []string{
				"flags contradict each other", "not a point of its curve", "not an RSA key of 2048", "with keys of the type",
				"the new key cannot be read", // its members have other names, or one more
			}}
			try := func(name string, object []byte, change members) {
				t.Helper()
				text := client(t, "webauthn.create", at, challenge, change)
				theirs := theirAttestation(a, url(challenge), at, text, object)
				var ours error
				status, words := d.post("/passkey/add", map[string]string{"clientDataJSON": url(text), "attestationObject": url(object)})
				if status == http.StatusOK {
					if err := os.Remove(d.file); err != nil { // or the next one is registered already
						t.Fatal(err)
					}
					challenge = d.begin()
				} else {
					ours = fmt.Errorf("%d %s", status, words)
				}
				c.add(name, ours, theirs)
			}
			data := a.made("localhost", present|verified|newKey)
			right := object("none", data)
			try("right", right, nil)
			for flags := range 256 {
				try(fmt.Sprintf("flags, %08b", flags), object("none", a.made("localhost", byte(flags))), nil)
				try(fmt.Sprintf("flags and extensions, %08b", flags), object("none", a.made("localhost", byte(flags), 0xa1, 0x61, 'x', 0xf5)), nil)
			}
			try("party", object("none", a.made("example.com", present|verified|newKey)), nil)
			try("type", right, members{"type": "webauthn.get"})
			try("origin", right, members{"origin": "https://evil.example.com"})
			try("crossOrigin", right, members{"crossOrigin": true})
			try("format", object("nine", data), nil)
			for i := range right {
				try(fmt.Sprintf("cut, %d", i), right[:i], nil)
				for bit := range 8 {
					changed := bytes.Clone(right)
					changed[i] ^= 1 << bit
					try(fmt.Sprintf("bit, %d of %d", bit, i), changed, nil)
				}
			}
			c.end(5, 500)
		})
	}
}

func theirAttestation(a *authenticator, challenge, origin string, client, object []byte) error {
	id := a.id
	if i := bytes.Index(object, []byte{0, byte(len(a.id))}); i > 0 && len(object) > i+2+len(a.id) { // what the client says is the same
		id = object[i+2 : i+2+len(a.id)]
	}
	raw, err := json.Marshal(map[string]any{"id": url(id), "rawId": url(id), "type": "public-key", "response": map[string]string{
		"clientDataJSON": url(client), "attestationObject": url(object),
	}})
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(raw)
	if err != nil {
		return err
	}
	params := []protocol.CredentialParameter{{Type: "public-key", Algorithm: -7}, {Type: "public-key", Algorithm: -8}, {Type: "public-key", Algorithm: -257}}
	_, err = parsed.Verify(challenge, "localhost", []string{origin}, nil, nil, protocol.TopOriginExplicitVerificationMode, false, true, true, nil, params, protocol.AttestationPolicy{}, protocol.SignaturePolicy{})
	return err
}
