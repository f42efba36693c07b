package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxToken bounds a static token, in bytes.
const maxToken = 256

// hashPrefix begins a hash in the configuration.
const hashPrefix = "sha256:"

// NewToken returns a new token and its hash for the configuration.
//
// The token is 256 random bits, so a plain hash keeps it: a slow hash with a salt
// protects what people choose, which can be guessed. Here it would only let a sender of
// wrong tokens load the server.
func NewToken() (token, hash string) {
	random := make([]byte, 32)
	rand.Read(random)
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, Hash(token)
}

// Hash returns the hash of a token as http.principals.NAME.tokens has it.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// tokens are the hashes of static tokens.
type tokens []tokenHash

type tokenHash struct {
	sum   [sha256.Size]byte
	owner *principal
}

func (t *tokens) add(owner *principal, hashes []string) error {
	for i, hash := range hashes {
		digits, ok := strings.CutPrefix(hash, hashPrefix)
		sum, err := hex.DecodeString(digits)
		if !ok || err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("http.principals.%s.tokens[%d]: not a sha256 hash", owner.name, i)
		}
		*t = append(*t, tokenHash{[sha256.Size]byte(sum), owner})
	}
	return nil
}

// find returns whose token it is, nil for an unknown one. It compares with every hash,
// so that the time does not depend on whose it is.
func (t tokens) find(token string) (owner *principal) {
	if len(token) > maxToken {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	at := -1
	for i := range t {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t[i].sum[:]), i, at)
	}
	if at < 0 {
		return nil
	}
	return t[at].owner
}
