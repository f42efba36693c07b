package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// maxToken bounds a static token, in bytes.
const maxToken = 256

// hashPrefix precedes each hash in the configuration.
const hashPrefix = "sha256:"

// NewToken returns a new token and its hash for the configuration.
//
// A plain SHA-256 is enough, because a token has 256 random bits and cannot be guessed. A
// slow, salted hash protects passwords that people choose. Here it would only let senders
// of wrong tokens slow down the server.
func NewToken() (token, hash string) {
	random := make([]byte, 32)
	rand.Read(random)
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, Hash(token)
}

// Hash returns the hash of a token in the form of http.principals.NAME.tokens.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// tokens are the hashes of static tokens.
type tokens []tokenHash

type tokenHash struct {
	sum   [sha256.Size]byte
	owner mcphttp.Principal
}

func (t *tokens) add(owner mcphttp.Principal, hashes []string) error {
	for i, hash := range hashes {
		digits, ok := strings.CutPrefix(hash, hashPrefix)
		sum, err := hex.DecodeString(digits)
		if !ok || err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("http.principals.%s.tokens[%d]: want sha256: and 64 hexadecimal digits", owner.Name, i)
		}
		*t = append(*t, tokenHash{[sha256.Size]byte(sum), owner})
	}
	return nil
}

// find returns the owner of a token, if it is known. It compares the token with
// every hash, so that the time does not depend on which one matches.
func (t tokens) find(token string) (owner mcphttp.Principal, known bool) {
	if len(token) > maxToken {
		return owner, false
	}
	sum := sha256.Sum256([]byte(token))
	at := -1
	for i := range t {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t[i].sum[:]), i, at)
	}
	if at < 0 {
		return owner, false
	}
	return t[at].owner, true
}
