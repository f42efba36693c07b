package passkey_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey/passkeytest"
)

// TestRegister registers a key of each algorithm.
func TestRegister(t *testing.T) {
	for _, algorithm := range algorithms {
		d := passkeytest.New(t, algorithm)
		challenge := passkey.NewNonce()
		key, err := passkey.Register(party(t, secure), challenge, d.Create(secure, challenge))
		if err != nil {
			t.Fatal(err)
		}
		if key.Algorithm != algorithm || key.Party != "approvals.example.com" || !bytes.Equal(key.ID, d.ID) || !bytes.Equal(key.PublicKey, d.COSE()) {
			t.Errorf("%+v", key)
		}
	}
}

// TestHostileAttestations has new keys that are not registered.
func TestHostileAttestations(t *testing.T) {
	create := func(d *passkeytest.Device, challenge []byte) *passkey.Attestation { return d.Create(here, challenge) }
	replace := func(old, new string) func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
		return func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			a := d.Create(here, challenge)
			changed := bytes.Replace(a.Attestation, []byte(old), []byte(new), 1)
			if bytes.Equal(changed, a.Attestation) {
				t.Fatalf("there is no %x in %x", old, a.Attestation)
			}
			a.Attestation = changed
			return a
		}
	}
	for _, tt := range []struct {
		name, want string
		create     func(d *passkeytest.Device, challenge []byte) *passkey.Attestation
	}{
		{"another challenge", "another question", func(d *passkeytest.Device, _ []byte) *passkey.Attestation {
			return d.Create(here, passkey.NewNonce())
		}},
		{"another origin", "another page", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.Party = "localhost"
			return d.Create("https://evil.example.com", challenge)
		}},
		{"another relying party", "another relying party", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.Party = "example.com"
			return create(d, challenge)
		}},
		{"nobody verified", "did not verify", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.Flags = passkeytest.Present
			return create(d, challenge)
		}},
		{"a signature", "something else", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.Client = map[string]any{"type": "webauthn.get"}
			return create(d, challenge)
		}},
		{"no key", "cannot be read", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			a := d.Create(here, challenge)
			a.Attestation = passkeytest.Attest("none", d.Sign(here, challenge).AuthenticatorData)
			return a
		}},
		{"an empty id", "cut or have something after", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.ID = nil
			return create(d, challenge)
		}},
		{"a long id", "cut or have something after", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.ID = make([]byte, 1024)
			return create(d, challenge)
		}},
		{"something after the key", "cut or have something after", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.Data = []byte{0}
			return create(d, challenge)
		}},
		{"something after the object", "cannot be read", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			a := d.Create(here, challenge)
			a.Attestation = append(a.Attestation, 0)
			return a
		}},
		{"a huge object", "cannot be read", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			a := d.Create(here, challenge)
			a.Attestation = append(a.Attestation, make([]byte, 1<<20)...)
			return a
		}},
		{"an attestation", "not none", replace("none", "tpm2")},
		{"ES512", "not ES256", replace("\x01\x02\x03\x26", "\x01\x02\x03\x36")},
		{"a member twice", "not CBOR", replace("\x63fmt\x64none", "\x67attStmt\xa0")},
		{"another curve", "not a point", replace("\x03\x26\x20\x01", "\x03\x26\x20\x02")},
		{"a point off the curve", "not a point", func(d *passkeytest.Device, challenge []byte) *passkey.Attestation {
			d.COSE()[12]++
			return create(d, challenge)
		}},
	} {
		d := passkeytest.New(t, "ES256")
		challenge := passkey.NewNonce()
		key, err := passkey.Register(party(t, here), challenge, tt.create(d, challenge))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v; want an error with %q", tt.name, key, err, tt.want)
		}
	}
}

// TestCutAttestations cuts an attestation object after each byte.
func TestCutAttestations(t *testing.T) {
	for _, algorithm := range algorithms {
		d := passkeytest.New(t, algorithm)
		challenge := passkey.NewNonce()
		a := d.Create(here, challenge)
		whole := a.Attestation
		for i := range whole {
			a.Attestation = whole[:i]
			if _, err := passkey.Register(party(t, here), challenge, a); err == nil {
				t.Errorf("%s: the first %d bytes are enough", algorithm, i)
			}
		}
	}
}
