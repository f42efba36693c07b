package text

import "strings"

// Secrets are values that a provider or an MCP server gets, such as keys, and may repeat in an
// error.
type Secrets []string

const (
	// shortestSecret is the length of the shortest text that is hidden, in bytes. Shorter
	// values, such as "1", are part of many texts and no secrets.
	shortestSecret = 6
	// shortestPart is that of the beginning of a secret at the end of a text.
	shortestPart = 4
)

// NewSecrets returns the secrets in values. The second part of a value such as "Bearer TOKEN" is
// one, too.
func NewSecrets(values ...string) Secrets {
	var s Secrets
	for _, value := range values {
		value = strings.TrimSpace(value)
		_, token, _ := strings.Cut(value, " ")
		for _, secret := range []string{value, strings.TrimSpace(token)} {
			if len(secret) >= shortestSecret {
				s = append(s, secret)
			}
		}
	}
	return s
}

// Hide returns text with a mark in place of each part that belongs to a secret. Secrets may
// overlap in it, or contain each other. A text that was cut may end in the beginning of one.
func (s Secrets) Hide(text string) string {
	var b strings.Builder
	end := 0 // of the part
	for i := range len(text) {
		n := s.begin(text[i:])
		switch {
		case i < end: // a part goes on
		case n > 0:
			b.WriteString("[redacted]")
		default:
			b.WriteByte(text[i])
		}
		end = max(end, i+n)
	}
	return b.String()
}

// begin returns how long the part of a secret is with which text begins.
func (s Secrets) begin(text string) (n int) {
	for _, secret := range s {
		if strings.HasPrefix(text, secret) {
			n = max(n, len(secret))
		} else if len(text) >= shortestPart && strings.HasPrefix(secret, text) {
			n = len(text)
		}
	}
	return n
}
