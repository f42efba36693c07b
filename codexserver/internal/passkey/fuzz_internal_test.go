package passkey

import (
	"bytes"
	"testing"
)

// fuzzParty and fuzzChallenge are those of the corpus.
var fuzzParty = Party{ID: "localhost", Origin: "http://localhost:8765"}

var fuzzChallenge = bytes.Repeat([]byte{7}, 32)

// FuzzRegister reads attestation objects. What is registered can be read again, and is bounded.
func FuzzRegister(f *testing.F) {
	f.Fuzz(func(t *testing.T, client, object []byte) {
		key, err := Register(fuzzParty, fuzzChallenge, &Attestation{client, object})
		if err != nil {
			return
		}
		parsed, rest, err := readKey(key.PublicKey)
		if err != nil || len(rest) > 0 || parsed.algorithm != key.Algorithm || len(key.ID) == 0 || len(key.ID) > maxID || key.Party != fuzzParty.ID {
			t.Errorf("%+v, %v", key, err)
		}
	})
}

// FuzzAssertion reads assertions for keys of any kind. None is accepted that is not bound to the
// challenge, the origin and the relying party.
func FuzzAssertion(f *testing.F) {
	f.Fuzz(func(t *testing.T, key, client, data, signature []byte) {
		a := &Assertion{ClientData: client, AuthenticatorData: data, Signature: signature}
		if _, err := verifyChallenge(fuzzParty, key, fuzzChallenge, a); err != nil {
			return
		}
		if !bytes.Equal(a.Challenge(), fuzzChallenge) || !bytes.Contains(client, []byte("localhost:8765")) || data[32]&5 != 5 {
			t.Errorf("accepted: %s, %x", client, data)
		}
		other := bytes.Clone(fuzzChallenge)
		other[0]++
		if _, err := verifyChallenge(fuzzParty, key, other, a); err == nil {
			t.Error("accepted for another challenge")
		}
		if _, err := verifyChallenge(Party{"example.com", fuzzParty.Origin}, key, fuzzChallenge, a); err == nil {
			t.Error("accepted for another relying party")
		}
	})
}
