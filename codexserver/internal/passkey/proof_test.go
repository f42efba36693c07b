package passkey_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey/passkeytest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	here   = "http://localhost:8765"
	secure = "https://approvals.example.com"
)

var algorithms = []string{"ES256", "EdDSA", "RS256"}

func party(t *testing.T, origin string) passkey.Party {
	t.Helper()
	p, err := passkey.NewParty(origin)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func statement(origin string) *passkey.Statement {
	return &passkey.Statement{
		Question: jsontext.Value(`{"type":"exec_approval_request","call_id":"1","command":["git","push"]}`),
		Shown:    bytes.Repeat([]byte{7}, 32), Thread: "thread", Turn: "1", Call: "1", Decision: elicit.Approved,
		Origin: origin, At: time.Unix(1_700_000_000, 0).UTC(), Nonce: passkey.NewNonce(),
	}
}

func hash(t *testing.T, s *passkey.Statement) []byte {
	t.Helper()
	sum, err := s.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// registered returns keys with the one of a device.
func registered(t *testing.T, d *passkeytest.Device, origin string) *passkey.Keys {
	t.Helper()
	challenge := passkey.NewNonce()
	key, err := passkey.Register(party(t, origin), challenge, d.Create(origin, challenge))
	if err != nil {
		t.Fatal(err)
	}
	keys := passkey.NewKeys(filepath.Join(t.TempDir(), "codex-mcp", "passkeys.json"))
	if _, err := keys.Add(*key, ""); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestProve signs statements with each algorithm, at both kinds of origins. The proof holds after it
// was written and read, for its question alone.
func TestProve(t *testing.T) {
	for _, algorithm := range algorithms {
		d, stranger := passkeytest.New(t, algorithm), passkeytest.New(t, algorithm)
		for _, origin := range []string{here, secure} {
			for _, decision := range []elicit.Decision{elicit.Approved, elicit.ApprovedForSession, elicit.ApprovedAlways} {
				keys := registered(t, d, origin)
				s := statement(origin)
				s.Decision = decision
				proof, err := passkey.Prove(keys, s, d.Sign(origin, hash(t, s)))
				if err != nil {
					t.Fatalf("%s at %s: %v", algorithm, origin, err)
				}
				text, err := json.Marshal(proof)
				if err != nil {
					t.Fatal(err)
				}
				var read passkey.Proof
				if err := json.Unmarshal(text, &read, json.RejectUnknownMembers(true)); err != nil {
					t.Fatal(err)
				}
				spaced := jsontext.Value(` { "command" : ["git","push"], "call_id":"1", "type":"exec_approval_request" } `)
				for _, question := range []jsontext.Value{s.Question, spaced} {
					if err := passkey.Verify(&read, question); err != nil {
						t.Errorf("%s at %s: %s: %v", algorithm, origin, question, err)
					}
				}
				for _, question := range []string{`{"type":"exec_approval_request","call_id":"1","command":["git","pull"]}`, `{}`, ``, `{`, `{"a":1,"a":1}`} {
					if passkey.Verify(&read, jsontext.Value(question)) == nil {
						t.Errorf("%s at %s: the proof holds for %s", algorithm, origin, question)
					}
				}
				for name, change := range map[string]func(*passkey.Proof){
					"decision": func(p *passkey.Proof) { p.Statement.Decision = elicit.ApprovedForSession },
					"denied":   func(p *passkey.Proof) { p.Statement.Decision = elicit.Denied },
					"rule":     func(p *passkey.Proof) { p.Statement.Rule = "all" },
					"thread":   func(p *passkey.Proof) { p.Statement.Thread = "other" },
					"call":     func(p *passkey.Proof) { p.Statement.Call = "2" },
					"shown":    func(p *passkey.Proof) { p.Statement.Shown[0]++ },
					"time":     func(p *passkey.Proof) { p.Statement.At = p.Statement.At.Add(time.Second) },
					"nonce":    func(p *passkey.Proof) { p.Statement.Nonce = passkey.NewNonce() },
					"origin":   func(p *passkey.Proof) { p.Statement.Origin = "https://example.com" },
					"key":      func(p *passkey.Proof) { p.Key = stranger.COSE() },
				} {
					var other passkey.Proof
					if err := json.Unmarshal(text, &other); err != nil {
						t.Fatal(err)
					}
					if change(&other); name == "decision" && decision == elicit.ApprovedForSession {
						continue
					}
					if passkey.Verify(&other, s.Question) == nil {
						t.Errorf("%s at %s: the proof holds with another %s", algorithm, origin, name)
					}
				}
			}
		}
	}
}

// TestOddAssertions has assertions that are unusual, and right.
func TestOddAssertions(t *testing.T) {
	for name, change := range map[string]func(*passkeytest.Device){
		"a synced key":   func(d *passkeytest.Device) { d.Flags |= 1<<3 | 1<<4 },
		"extensions":     func(d *passkeytest.Device) { d.Flags |= 1 << 7; d.Data = []byte{0xa1, 0x61, 'x', 0xf5} },
		"more members":   func(d *passkeytest.Device) { d.Client = map[string]any{"more": []int{1}} },
		"no crossOrigin": func(d *passkeytest.Device) { d.Client = map[string]any{"crossOrigin": nil} },
		"the longest id": func(d *passkeytest.Device) { d.ID = bytes.Repeat([]byte{7}, 1023) },
	} {
		d := passkeytest.New(t, "ES256")
		change(d)
		keys, s := registered(t, d, here), statement(here)
		if _, err := passkey.Prove(keys, s, d.Sign(here, hash(t, s))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all, err := keys.List()
		if err != nil || all[0].Syncable != (name == "a synced key") {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

// TestHostileAssertions has assertions that do not prove the statement. Each is signed with the right
// key where that makes it more dangerous.
func TestHostileAssertions(t *testing.T) {
	devices := map[string]*passkeytest.Device{}
	for _, algorithm := range algorithms {
		devices[algorithm] = passkeytest.New(t, algorithm) // RSA keys take long
	}
	challenge := func(s *passkey.Statement) []byte { return hash(t, s) }
	for _, tt := range []struct {
		name, want string
		sign       func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion
	}{
		{"another question", "another question", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			other := *s
			other.Question = jsontext.Value(`{"type":"exec_approval_request","call_id":"1","command":["ls"]}`)
			return d.Sign(here, challenge(&other))
		}},
		{"another decision", "another question", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			other := *s
			other.Decision = elicit.ApprovedForSession
			return d.Sign(here, challenge(&other))
		}},
		{"an earlier time", "another question", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			other := *s
			other.Nonce = passkey.NewNonce()
			return d.Sign(here, challenge(&other))
		}},
		{"no challenge", "another question", func(d *passkeytest.Device, _ *passkey.Statement) *passkey.Assertion {
			return d.Sign(here, nil)
		}},
		{"another origin", "another page", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Party = "localhost"
			return d.Sign("https://evil.example.com", challenge(s))
		}},
		{"another port", "another page", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			return d.Sign("http://localhost:8766", challenge(s))
		}},
		{"another relying party", "another relying party", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Party = "example.com"
			return d.Sign(here, challenge(s))
		}},
		{"in a frame", "another page", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Client = map[string]any{"crossOrigin": true}
			return d.Sign(here, challenge(s))
		}},
		{"in a frame of", "another page", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Client = map[string]any{"topOrigin": "https://evil.example.com"}
			return d.Sign(here, challenge(s))
		}},
		{"a new key", "something else", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Client = map[string]any{"type": "webauthn.create"}
			return d.Sign(here, challenge(s))
		}},
		{"no type", "something else", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Client = map[string]any{"type": nil}
			return d.Sign(here, challenge(s))
		}},
		{"nobody there", "nobody touched", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags = passkeytest.Verified
			return d.Sign(here, challenge(s))
		}},
		{"nobody verified", "did not verify", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags = passkeytest.Present
			return d.Sign(here, challenge(s))
		}},
		{"synced without being syncable", "contradict", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags |= 1 << 4
			return d.Sign(here, challenge(s))
		}},
		{"more data", "cut or have something after", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Data = []byte{0}
			return d.Sign(here, challenge(s))
		}},
		{"a new key in the data", "cut or have something after", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags |= 1 << 6
			d.Data = append(make([]byte, 16), append([]byte{0, 1, 9}, d.COSE()...)...)
			return d.Sign(here, challenge(s))
		}},
		{"extensions that are cut", "not CBOR", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags |= 1 << 7
			d.Data = []byte{0xa1, 0x61}
			return d.Sign(here, challenge(s))
		}},
		{"extensions that are no map", "cut or have something after", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags |= 1 << 7
			d.Data = []byte{0x80}
			return d.Sign(here, challenge(s))
		}},
		{"a huge map", "not CBOR", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Flags |= 1 << 7
			d.Data = binary.BigEndian.AppendUint64([]byte{0xbb}, 1<<62)
			return d.Sign(here, challenge(s))
		}},
		{"huge data", "cut or have something after", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Data = make([]byte, 1<<20)
			return d.Sign(here, challenge(s))
		}},
		{"huge client data", "cannot be read", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			d.Client = map[string]any{"more": strings.Repeat("x", 1<<20)}
			return d.Sign(here, challenge(s))
		}},
		{"client data with a member twice", "cannot be read", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			a := d.Sign(here, challenge(s))
			a.ClientData = append(bytes.TrimSuffix(a.ClientData, []byte("}")), `,"type":"webauthn.get"}`...)
			d.Seal(a)
			return a
		}},
		{"another key", "the signature is wrong", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			other := passkeytest.New(t, "ES256")
			other.ID = d.ID
			return other.Sign(here, challenge(s))
		}},
		{"an unknown key", "no registered passkey", func(_ *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			return passkeytest.New(t, "ES256").Sign(here, challenge(s))
		}},
		{"no signature", "the signature is wrong", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			a := d.Sign(here, challenge(s))
			a.Signature = nil
			return a
		}},
		{"nothing", "no registered passkey", func(*passkeytest.Device, *passkey.Statement) *passkey.Assertion { return &passkey.Assertion{} }},
		{"cut data", "cut or have something after", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			a := d.Sign(here, challenge(s))
			a.AuthenticatorData = a.AuthenticatorData[:36]
			d.Seal(a)
			return a
		}},
		{"a higher count that was not signed", "the signature is wrong", func(d *passkeytest.Device, s *passkey.Statement) *passkey.Assertion {
			a := d.Sign(here, challenge(s))
			a.AuthenticatorData[36]++
			return a
		}},
	} {
		for _, algorithm := range algorithms {
			d := new(*devices[algorithm])
			keys := registered(t, d, here)
			s := statement(here)
			proof, err := passkey.Prove(keys, s, tt.sign(d, s))
			if err == nil || proof != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: %v, %v; want an error with %q", tt.name, algorithm, proof, err, tt.want)
			}
		}
	}
}

// TestKeyOfAnotherPage signs for this page with a key that is registered for another one.
func TestKeyOfAnotherPage(t *testing.T) {
	for _, algorithm := range algorithms {
		d := passkeytest.New(t, algorithm)
		keys := registered(t, d, secure)
		for origin, want := range map[string]string{here: "no registered passkey", secure: ""} {
			s := statement(origin)
			proof, err := passkey.Prove(keys, s, d.Sign(origin, hash(t, s)))
			if (err == nil) != (want == "") || (proof == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s at %s: a proof: %t, %v; want an error with %q", algorithm, origin, proof != nil, err, want)
			}
		}
	}
}

// TestChangedAssertions changes each bit of an assertion, and cuts it after each byte.
func TestChangedAssertions(t *testing.T) {
	for _, algorithm := range algorithms {
		d := passkeytest.New(t, algorithm)
		keys := registered(t, d, here)
		s := statement(here)
		good := d.Sign(here, hash(t, s))
		if _, err := passkey.Prove(keys, s, good); err != nil {
			t.Fatal(err)
		}
		for name, part := range map[string]func(*passkey.Assertion) *passkey.Bytes{
			"id":     func(a *passkey.Assertion) *passkey.Bytes { return &a.ID },
			"client": func(a *passkey.Assertion) *passkey.Bytes { return &a.ClientData },
			"data":   func(a *passkey.Assertion) *passkey.Bytes { return &a.AuthenticatorData },
			"sign":   func(a *passkey.Assertion) *passkey.Bytes { return &a.Signature },
		} {
			n := len(*part(good))
			for i := range 8 * n {
				a := *good
				*part(&a) = bytes.Clone(*part(&a))
				(*part(&a))[i/8] ^= 1 << (i % 8)
				if _, err := passkey.Prove(keys, s, &a); err == nil {
					t.Errorf("%s: bit %d of %s is of no matter", algorithm, i, name)
				}
			}
			for i := range n {
				a := *good
				*part(&a) = (*part(&a))[:i]
				if _, err := passkey.Prove(keys, s, &a); err == nil {
					t.Errorf("%s: the first %d bytes of %s are enough", algorithm, i, name)
				}
			}
		}
	}
}

// TestStatement has statements that nobody can sign, and one whose large numbers differ.
func TestStatement(t *testing.T) {
	for name, change := range map[string]func(*passkey.Statement){
		"no question": func(s *passkey.Statement) { s.Question = nil },
		"no JSON":     func(s *passkey.Statement) { s.Question = jsontext.Value("{") },
		"no nonce":    func(s *passkey.Statement) { s.Nonce = nil },
		"denied":      func(s *passkey.Statement) { s.Decision = elicit.Denied },
		"no decision": func(s *passkey.Statement) { s.Decision = "" },
	} {
		s := statement(here)
		change(s)
		if _, err := s.Hash(); err == nil {
			t.Errorf("%s: it has a hash", name)
		}
	}
	a, b := statement(here), statement(here)
	b.Nonce = a.Nonce
	a.Question, b.Question = jsontext.Value(`{"n":9007199254740993}`), jsontext.Value(`{"n":9007199254740992}`)
	if bytes.Equal(hash(t, a), hash(t, b)) {
		t.Error("large numbers are equal")
	}
}

// TestCount signs with an authenticator that counts, with its copy, and with one that begins to count.
func TestCount(t *testing.T) {
	d := passkeytest.New(t, "ES256")
	d.Count = 5
	keys := registered(t, d, here)
	try := func(count uint32) error {
		d.Count = count - 1
		if count == 0 {
			d.Count = 0
		}
		s := statement(here)
		_, err := passkey.Prove(keys, s, d.Sign(here, hash(t, s)))
		return err
	}
	for _, tt := range []struct {
		count uint32
		ok    bool
	}{{6, true}, {6, false}, {5, false}, {0, false}, {9, true}, {8, false}, {10, true}} {
		if err := try(tt.count); (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "copy") {
			t.Errorf("count %d: %v", tt.count, err)
		}
	}
	all, err := keys.List()
	if err != nil || all[0].Count != 10 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestNewParty(t *testing.T) {
	for origin, id := range map[string]string{
		here: "localhost", secure: "approvals.example.com", "https://example.com:8443": "example.com", "https://EXAMPLE.com/": "example.com",
		"http://127.0.0.1:8765": "", "http://[::1]:8765": "", "https://192.0.2.1": "", "http://example.com": "", "ftp://localhost": "", "": "", "https://a/b": "",
	} {
		p, err := passkey.NewParty(origin)
		if p.ID != id || (err == nil) != (id != "") {
			t.Errorf("%s: %+v, %v", origin, p, err)
		}
	}
}
