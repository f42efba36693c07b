package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"
)

// SetDefaultModel writes model and model_reasoning_effort to config.toml in home. If the
// file names a profile, it writes them to that profile's table. Nil removes a key. The rest
// of the file does not change, including comments and order. The file is replaced as a
// whole, or not at all.
func SetDefaultModel(home string, model *string, effort *protocol.ReasoningEffort) error {
	path := filepath.Join(home, "config.toml")
	before, err := safefile.Read(path, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	doc, err := readFile(path) // its errors name the line
	if err != nil {
		return err
	}
	var table []string
	if profile, _ := doc["profile"].(string); profile != "" {
		table = []string{"profiles", profile}
	}
	after, err := edit(before, table, "model", model)
	if err == nil {
		after, err = edit(after, table, "model_reasoning_effort", (*string)(effort))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	return safefile.Write(path, after, 0o600)
}

// edit sets a string in a table of a TOML document, or removes it if value is nil. It does
// not change inline tables, and adds no key to a table without a header. It parses the result
// again, and fails if that is not as expected.
func edit(doc []byte, table []string, key string, value *string) ([]byte, error) {
	var want, got map[string]any
	if err := toml.Unmarshal(doc, &want); err != nil {
		return nil, err
	}
	if want == nil {
		want = map[string]any{}
	}
	if err := put(want, table, key, value); err != nil {
		return nil, err
	}
	out := editLine(doc, table, key, value)
	if err := toml.Unmarshal(out, &got); err != nil || len(want)+len(got) > 0 && !reflect.DeepEqual(want, got) {
		return nil, fmt.Errorf("%s cannot be changed automatically in a file with this layout; edit the file", JoinKey(append(slices.Clone(table), key)...))
	}
	return out, nil
}

// put makes the change of edit in the parsed document.
func put(doc map[string]any, table []string, key string, value *string) error {
	for i, name := range table {
		next, there := doc[name]
		if !there {
			if value == nil {
				return nil
			}
			next = map[string]any{}
			doc[name] = next
		}
		inner, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not a table", JoinKey(table[:i+1]...))
		}
		doc = inner
	}
	if value == nil {
		delete(doc, key)
	} else {
		doc[key] = *value
	}
	return nil
}

// editLine replaces or removes the value of a key, or adds a line with the key.
func editLine(doc []byte, table []string, key string, value *string) []byte {
	lines, err := linesOf(doc)
	if err != nil {
		return doc
	}
	target, place := append(slices.Clone(table), key), -1 // where to add a line
	if len(table) == 0 {
		place = 0
	}
	for _, l := range lines {
		if !l.header && slices.Equal(l.path, target) && value != nil {
			return slices.Concat(doc[:l.value], []byte(quote(*value)), doc[l.end:])
		}
		if !l.header && slices.Equal(l.path, target) {
			return removeEntry(doc, l)
		}
		if !l.array && slices.Equal(l.table, table) {
			place = lineEnd(doc, l.end)
		}
	}
	if value == nil {
		return doc
	}
	newline := "\n"
	if bytes.Contains(doc, []byte("\r\n")) {
		newline = "\r\n"
	}
	added := key + " = " + quote(*value) + newline
	if place < 0 {
		place = len(doc)
		if added = "[profiles." + quoteKey(table[1]) + "]" + newline + added; place > 0 {
			added = newline + added
		}
	}
	if place > 0 && doc[place-1] != '\n' {
		added = newline + added
	}
	return slices.Concat(doc[:place], []byte(added), doc[place:])
}

// removeEntry removes a key and its line. A comment on the line stays.
func removeEntry(doc []byte, l line) []byte {
	begin, end := bytes.LastIndexByte(doc[:l.start], '\n')+1, lineEnd(doc, l.end)
	rest := l.end + blanks(doc[l.end:end])
	if rest < end && doc[rest] == '#' {
		begin, end = l.start, rest
	}
	return slices.Concat(doc[:begin], doc[end:])
}

// lineEnd returns the position after the next line break.
func lineEnd(doc []byte, at int) int {
	if i := bytes.IndexByte(doc[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(doc)
}

func blanks(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t")) }

// quote writes a basic string.
func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s) // invalid UTF-8 becomes U+FFFD, and the check of the result fails
	return strings.ReplaceAll(string(b), "\x7f", `\u007F`)
}

// quoteKey writes a key, without quotes if possible.
func quoteKey(s string) string {
	if s == "" || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return quote(s)
	}
	return s
}
