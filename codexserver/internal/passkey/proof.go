package passkey

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Assertion is what a browser returns for a challenge.
type Assertion struct {
	ID                Bytes `json:"id"`
	ClientData        Bytes `json:"clientDataJSON"`
	AuthenticatorData Bytes `json:"authenticatorData"`
	Signature         Bytes `json:"signature"`
}

// Challenge returns the challenge that the browser says it has signed, nil if that cannot be read.
func (a *Assertion) Challenge() []byte {
	c, err := readClient(a.ClientData)
	if err != nil {
		return nil
	}
	return c.Challenge
}

// Proof proves an approval to those who know its key.
type Proof struct {
	// Statement is what was signed, without the question.
	Statement Statement `json:"statement"`
	// Key is the public key, in COSE.
	Key Bytes `json:"publicKey"`
	// Assertion has the signature, and the id of the key.
	Assertion
}

const (
	// maxData is the length of the longest authenticator data without a new key, in bytes.
	maxData = 4 << 10
	// maxSignature is the length of the longest signature, in bytes.
	maxSignature = maxRSA / 8
)

var (
	errUnknown   = errors.New("no registered passkey of this page has signed")
	errSignature = errors.New("the signature is wrong")
	errCount     = errors.New("the passkey has counted fewer signatures than before, so there is a copy of it; codex-mcp passkey remove removes it")
)

// Prove checks that one of the keys signed the statement on the page that it names, and returns
// the proof. It notes how often an authenticator that counts has signed; a copy of it counts less.
func Prove(keys *Keys, s *Statement, a *Assertion) (*Proof, error) {
	p, err := NewParty(s.Origin)
	if err != nil {
		return nil, err
	}
	all, err := keys.List()
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if k.Party != p.ID || !bytes.Equal(k.ID, a.ID) {
			continue
		}
		count, err := verify(p, k.PublicKey, s, a)
		if err != nil {
			return nil, err
		}
		if err := keys.counted(k, count); err != nil {
			return nil, err
		}
		proof := &Proof{Statement: *s, Key: k.PublicKey, Assertion: *a}
		proof.Statement.Question = nil
		return proof, nil
	}
	return nil, errUnknown
}

// Verify checks that the key of a proof signed its statement about a question, which is the event in
// the line of approvals.log that has the proof. It needs no file. The caller must know whose key it
// is: anybody can make one.
func Verify(proof *Proof, question jsontext.Value) error {
	p, err := NewParty(proof.Statement.Origin)
	if err != nil {
		return err
	}
	s := proof.Statement
	s.Question = question
	_, err = verify(p, proof.Key, &s, &proof.Assertion)
	return err
}

// verify checks an assertion, and returns how often the authenticator has signed.
func verify(p Party, cose []byte, s *Statement, a *Assertion) (count uint32, err error) {
	challenge, err := s.Hash()
	if err != nil {
		return 0, err
	}
	return verifyChallenge(p, cose, challenge, a)
}

func verifyChallenge(p Party, cose, challenge []byte, a *Assertion) (count uint32, err error) {
	key, rest, err := readKey(cose)
	if err != nil {
		return 0, err
	}
	if len(rest) > 0 {
		return 0, fmt.Errorf("the key: %w", errCBOR)
	}
	client, err := readClient(a.ClientData)
	if err != nil {
		return 0, err
	}
	if err := client.check(typeGet, p, challenge); err != nil {
		return 0, err
	}
	if len(a.AuthenticatorData) > maxData || len(a.Signature) > maxSignature {
		return 0, errAuthenticator
	}
	data, err := readAuthenticator(a.AuthenticatorData)
	if err != nil {
		return 0, err
	}
	if data.flags&flagKey != 0 {
		return 0, errAuthenticator
	}
	if err := data.check(p); err != nil {
		return 0, err
	}
	sum := sha256.Sum256(a.ClientData)
	if !key.signed(slices.Concat(a.AuthenticatorData, sum[:]), a.Signature) {
		return 0, errSignature
	}
	return data.count, nil
}
