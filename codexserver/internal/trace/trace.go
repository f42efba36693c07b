// Package trace writes the messages of a server for a person to read, with secrets replaced.
package trace

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

// Hooks returns hooks that write every message to w, a line each, secrets replaced:
//
//	2026-01-02T15:04:05.000Z < {"jsonrpc":"2.0", …}
//
// < is from the client, > to it. Without a writer they do nothing.
func Hooks(w io.Writer) *jsonrpc.Hooks {
	if w == nil {
		return &jsonrpc.Hooks{}
	}
	var mu sync.Mutex
	write := func(direction string) func([]byte) {
		return func(message []byte) {
			line := append([]byte(time.Now().UTC().Format("2006-01-02T15:04:05.000Z ")+direction+" "),
				redact(message)...)
			mu.Lock()
			defer mu.Unlock()
			_, _ = w.Write(append(line, '\n')) // a trace that cannot be written must not end the session
		}
	}
	return &jsonrpc.Hooks{Received: write("<"), Sent: write(">")}
}

// secrets are the names, in lower case, of members whose values a trace must not show.
var secrets = []string{
	"apikey", "api_key", "openai_api_key", "authtoken", "auth_token", "authorization",
	"access_token", "refresh_token", "id_token", "token", "authurl", "password", "secret",
}

// links matches links of the approvals page, as in a desk's invitation. They begin with the page's own origin, or with any that approvals.page_origin names;
// there the length of the secret tells them. A person who has the secret in such a link can approve.
var links = lazyregexp.Regexp{Text: `(https?://(?:127\.0\.0\.1|localhost|\[::1\]):[0-9]+/[^\s"#]*#)[^\s"]+|` +
	`(/#)[A-Za-z0-9_-]{43}`}

// redact replaces the values of secret members at any depth, and the secrets of links.
// Text that is not JSON is not shown: it might hold anything.
func redact(message []byte) []byte {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(message), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		secret := isSecret(dec)
		if secret && dec.PeekKind() > 0 {
			if err := dec.SkipValue(); err != nil {
				break
			}
			if err := enc.WriteToken(jsontext.String("<redacted>")); err != nil {
				break
			}
			continue
		}
		token, err := dec.ReadToken()
		if err != nil {
			if err != io.EOF {
				return []byte(`"<not JSON>"`)
			}
			break
		}
		if err := enc.WriteToken(token); err != nil {
			break
		}
	}
	return links.Get().ReplaceAll(bytes.TrimSpace(out.Bytes()), []byte("${1}${2}<redacted>"))
}

// isSecret reports whether the next value belongs to a secret member.
func isSecret(dec *jsontext.Decoder) bool {
	kind, n := dec.StackIndex(dec.StackDepth())
	if kind != '{' || n%2 == 0 { // a name comes next
		return false
	}
	name := dec.StackPointer().LastToken()
	return slices.Contains(secrets, strings.ToLower(name))
}
