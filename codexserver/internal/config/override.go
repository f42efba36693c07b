package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// ParseOverride parses a KEY=VALUE of the flag -c. The key is dotted; a segment with
// a dot must be quoted. The value is a TOML value or, if it cannot be parsed as one, a
// plain string, with quotes around it removed.
func ParseOverride(s string) (key string, value any, err error) {
	key, text, found := strings.Cut(s, "=")
	key = strings.TrimSpace(key)
	if !found || key == "" {
		return "", nil, fmt.Errorf("-c %s: want KEY=VALUE", s)
	}
	if _, err := splitKey(key); err != nil {
		return "", nil, fmt.Errorf("-c: %w", err)
	}
	text = strings.TrimSpace(text)
	var doc map[string]any
	// A line break could add a second key to the document.
	if err := toml.Unmarshal([]byte("v = "+text), &doc); err == nil && len(doc) == 1 {
		return key, plain(doc["v"]), nil
	}
	return key, strings.Trim(text, `"'`), nil
}

// splitKey splits a dotted key at the dots outside quotes.
func splitKey(key string) ([]string, error) {
	var segments []string
	rest := key
	for {
		segment, after, more, err := cutSegment(rest)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		segments = append(segments, segment)
		if !more {
			return segments, nil
		}
		rest = after
	}
}

func cutSegment(s string) (segment, rest string, more bool, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", "", false, errors.New("want a name before and after each dot")
	}
	if q := s[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[1:], q)
		if end < 0 {
			return "", "", false, errors.New("quote is not closed")
		}
		segment, rest = s[1:1+end], strings.TrimSpace(s[end+2:])
		if rest == "" {
			return segment, "", false, nil
		}
		if rest[0] != '.' {
			return "", "", false, errors.New("want a dot after a quoted segment")
		}
		return segment, rest[1:], true, nil
	}
	segment, rest, more = strings.Cut(s, ".")
	segment = strings.TrimSpace(segment)
	if segment == "" {
		return "", "", false, errors.New("want a name before and after each dot")
	}
	return segment, rest, more, nil
}

// JoinKey writes segments as a dotted key, with quotes where they are needed.
func JoinKey(segments ...string) string {
	quoted := make([]string, len(segments))
	for i, s := range segments {
		if quoted[i] = s; s == "" || strings.ContainsAny(s, `."' =`) {
			quoted[i] = strconv.Quote(s)
		}
	}
	return strings.Join(quoted, ".")
}

// nest returns a value under a key as nested tables.
func nest(segments []string, v any) layer {
	for _, s := range slices.Backward(segments) {
		v = layer{s: v}
	}
	return v.(layer)
}
