package config

import (
	"cmp"
	"slices"
	"strings"
)

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
	type part struct{ begin, end int }
	var parts []*part
	for _, secret := range s {
		for from := 0; ; {
			i := strings.Index(text[from:], secret)
			if i < 0 {
				break
			}
			parts = append(parts, &part{from + i, from + i + len(secret)})
			from += i + 1
		}
		for n := min(len(secret), len(text)); n >= shortestPart; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				parts = append(parts, &part{len(text) - n, len(text)})
				break
			}
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.begin, b.begin) })
	var b strings.Builder
	done := 0
	for i := 0; i < len(parts); {
		p := *parts[i]
		for i++; i < len(parts) && parts[i].begin < p.end; i++ {
			p.end = max(p.end, parts[i].end)
		}
		b.WriteString(text[done:p.begin])
		b.WriteString("[redacted]")
		done = p.end
	}
	return b.String() + text[done:]
}
