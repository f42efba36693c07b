package passkey

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Statement is what a person states by a signature: that they approve a question.
type Statement struct {
	// Question is the event that asks, as approvals.log has it. A [Proof] leaves it out, because it
	// stands next to it.
	Question jsontext.Value `json:"question,omitzero"`
	// Shown is the hash of all that the page showed of it.
	Shown Bytes `json:"shown"`
	// Thread, Turn and Call say what asks, Server and Principal where it runs and for whom.
	Thread    string `json:"threadId"`
	Turn      string `json:"turn,omitzero"`
	Call      string `json:"call,omitzero"`
	Server    string `json:"server,omitzero"`
	Principal string `json:"principal,omitzero"`
	// Decision is an approval, and Rule what it allows from then on.
	Decision elicit.Decision `json:"decision"`
	Rule     string          `json:"rule,omitzero"`
	// Origin is the page's.
	Origin string `json:"origin"`
	// At is when the page was asked for the challenge, and Nonce random.
	At    time.Time `json:"at"`
	Nonce Bytes     `json:"nonce"`
}

// nonceSize is the length of a nonce, in bytes.
const nonceSize = 32

// NewNonce returns a random nonce.
func NewNonce() Bytes {
	b := make([]byte, nonceSize)
	rand.Read(b) // never fails
	return b
}

// domain begins what is hashed, so that no other text has the same hash.
const domain = "codex-mcp approval, version 1\x00"

// Hash returns the challenge for the statement. Two ways to write the same question in JSON have the
// same hash.
func (s *Statement) Hash() ([]byte, error) {
	if len(s.Nonce) != nonceSize || len(s.Question) == 0 || !s.Decision.Approves() {
		return nil, errors.New("the statement has no question, no approval or no nonce")
	}
	whole := *s
	whole.Question = s.Question.Clone()
	// The options are those of the record. Numbers keep their digits, or large ones would be equal.
	if err := whole.Question.Canonicalize(jsontext.AllowInvalidUTF8(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, fmt.Errorf("the question: %w", err)
	}
	text, err := json.Marshal(&whole, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write([]byte(domain))
	sum.Write(text)
	return sum.Sum(nil), nil
}
