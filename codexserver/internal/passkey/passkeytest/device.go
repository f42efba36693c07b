// Package passkeytest has an authenticator of software, for tests.
package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
)

// Device is an authenticator with one key, and the browser in front of it. It does what a test wants,
// also what no browser and no authenticator does.
type Device struct {
	// ID is the id of the key.
	ID []byte
	// Flags are sent in authenticator data. [New] sets user present and user verified.
	Flags byte
	// Count is how often the device has signed. 0 does not count.
	Count uint32
	// Client changes members of client data; nil removes one. Default: none.
	Client map[string]any
	// Party is the id of the relying party. Default: the host of the origin.
	Party string
	// Data is added to authenticator data. Default: nothing.
	Data []byte

	t    *testing.T
	key  crypto.Signer
	cose []byte
}

// The flags of a person who was there and was verified.
const (
	Present  byte = 1
	Verified byte = 4
)

// New returns a device with a new key of ES256, EdDSA or RS256.
func New(t *testing.T, algorithm string) *Device {
	t.Helper()
	d := &Device{t: t, ID: make([]byte, 16), Flags: Present | Verified}
	rand.Read(d.ID)
	var err error
	switch algorithm {
	case "ES256":
		var key *ecdsa.PrivateKey
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		d.must(err)
		var point []byte
		point, err = key.PublicKey.Bytes()
		d.key, d.cose = key, concat([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21}, text(2, point[1:33]), []byte{0x22}, text(2, point[33:]))
	case "EdDSA":
		var public ed25519.PublicKey
		public, d.key, err = ed25519.GenerateKey(rand.Reader)
		d.cose = concat([]byte{0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21}, text(2, public))
	case "RS256":
		var key *rsa.PrivateKey
		key, err = rsa.GenerateKey(rand.Reader, 2048)
		d.must(err)
		d.key, d.cose = key, concat([]byte{0xa4, 1, 3, 3, 0x39, 1, 0, 0x20}, text(2, key.N.Bytes()), []byte{0x21}, text(2, big.NewInt(int64(key.E)).Bytes()))
	default:
		t.Fatalf("no algorithm %q", algorithm)
	}
	d.must(err)
	return d
}

func (d *Device) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// Create answers navigator.credentials.create of a page with an origin.
func (d *Device) Create(origin string, challenge []byte) *passkey.Attestation {
	d.t.Helper()
	data := d.data(origin, 1<<6)
	data = concat(data, make([]byte, 16), binary.BigEndian.AppendUint16(nil, uint16(len(d.ID))), d.ID, d.cose, d.Data)
	return &passkey.Attestation{
		ClientData:  d.client("webauthn.create", origin, challenge),
		Attestation: Attest("none", data),
	}
}

// Attest returns an attestation object with an empty statement.
func Attest(format string, data []byte) []byte {
	return concat([]byte{0xa3}, text(3, []byte("fmt")), text(3, []byte(format)), text(3, []byte("attStmt")), []byte{0xa0}, text(3, []byte("authData")), text(2, data))
}

// Sign answers navigator.credentials.get of a page with an origin.
func (d *Device) Sign(origin string, challenge []byte) *passkey.Assertion {
	d.t.Helper()
	if d.Count > 0 {
		d.Count++
	}
	a := &passkey.Assertion{ID: d.ID, ClientData: d.client("webauthn.get", origin, challenge), AuthenticatorData: concat(d.data(origin, 0), d.Data)}
	d.Seal(a)
	return a
}

// Seal signs an assertion again, after a test has changed it.
func (d *Device) Seal(a *passkey.Assertion) {
	d.t.Helper()
	sum := sha256.Sum256(a.ClientData)
	signed := concat(a.AuthenticatorData, sum[:])
	var err error
	if _, pure := d.key.(ed25519.PrivateKey); pure {
		a.Signature, err = d.key.Sign(nil, signed, crypto.Hash(0))
	} else {
		sum = sha256.Sum256(signed)
		a.Signature, err = d.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	d.must(err)
}

// COSE returns the public key.
func (d *Device) COSE() []byte { return d.cose }

func (d *Device) data(origin string, flags byte) []byte {
	party := d.Party
	if party == "" {
		u, err := url.Parse(origin)
		d.must(err)
		party = u.Hostname()
	}
	sum := sha256.Sum256([]byte(party))
	return binary.BigEndian.AppendUint32(append(sum[:], d.Flags|flags), d.Count)
}

func (d *Device) client(kind, origin string, challenge []byte) []byte {
	all := map[string]any{"type": kind, "challenge": passkey.Bytes(challenge).String(), "origin": origin, "crossOrigin": false}
	maps.Copy(all, d.Client)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	raw, err := json.Marshal(all)
	d.must(err)
	return raw
}

// text returns a string of CBOR: of bytes if major is 2, of text if it is 3.
func text(major byte, s []byte) []byte {
	switch n := len(s); {
	case n < 24:
		return append([]byte{major<<5 | byte(n)}, s...)
	case n < 1<<8:
		return append([]byte{major<<5 | 24, byte(n)}, s...)
	default:
		return append([]byte{major<<5 | 25, byte(n >> 8), byte(n)}, s...)
	}
}

func concat(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
