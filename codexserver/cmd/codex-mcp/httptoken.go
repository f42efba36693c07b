package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxToken bounds the file of the token, in bytes.
const maxToken = 256

// tokenPattern matches a token. A user may write a longer one than loadToken makes.
var tokenPattern = lazyregexp.Regexp{Text: `^[A-Za-z0-9._~+/-]{32,200}=*$`}

// loadToken returns the token in the home, and makes it if the file does not exist.
func loadToken(home string) (string, error) {
	file := filepath.Join(home, "codex-mcp", "http-token")
	raw, err := safefile.LoadSecret(file, maxToken, func() []byte { return []byte(rand.Text() + rand.Text() + "\n") })
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if !tokenPattern.Get().MatchString(token) {
		return "", fmt.Errorf("%s: want one line of at least 32 letters and digits; remove the file, and start again "+
			"to make a new token", file)
	}
	return token, nil
}

var errToken = errors.New("missing or wrong token")

// bearer returns the function that authenticates requests with the one token of a server
// without principals. Its principal is local, the user who started the server.
func bearer(token string) func(*http.Request) (string, error) {
	want := sha256.Sum256([]byte(token))
	return func(r *http.Request) (string, error) {
		values := r.Header.Values("Authorization")
		if len(values) != 1 {
			return "", errToken
		}
		scheme, given, ok := strings.Cut(values[0], " ")
		got := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !ok || !strings.EqualFold(scheme, "Bearer") {
			return "", errToken
		}
		return "local", nil
	}
}

// printToken prints the token and the configuration of clients.
func printToken(w io.Writer, url, token string) error {
	_, err := fmt.Fprintf(w, `%s

The owner of this token can run commands as you, and approve them.
`, token)
	return errors.Join(err, httpserve.PrintClients(w, url, token))
}
