package config

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/codexserver/internal/safefile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/pelletier/go-toml/v2"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
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
	after, err := edit(before, append(table[:len(table):len(table)], "model"), model)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	after, err = edit(after, append(table, "model_reasoning_effort"), (*string)(effort))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	return safefile.Write(path, after, 0o600)
}

// edit sets the string at path in a TOML document, or removes it if value is nil. It
// parses the result again, and fails if that is not as expected.
func edit(doc []byte, path []string, value *string) ([]byte, error) {
	var want, got map[string]any
	if err := toml.Unmarshal(doc, &want); err != nil {
		return nil, err
	}
	if want == nil {
		want = map[string]any{}
	}
	if err := put(want, path, value); err != nil {
		return nil, err
	}
	layout, err := parseLayout(doc)
	if err != nil {
		return nil, err
	}
	var out []byte
	if value != nil {
		out = layout.set(path, quote(*value))
	} else {
		out = layout.remove(path)
	}
	if err := toml.Unmarshal(out, &got); err != nil || !same(want, got) {
		return nil, fmt.Errorf("%s cannot be changed automatically in a file with this layout; edit the file", joinKey(path))
	}
	return out, nil
}

// put makes the change of edit in the parsed document.
func put(doc map[string]any, path []string, value *string) error {
	for i, name := range path[:len(path)-1] {
		next, there := doc[name]
		if !there {
			if value == nil {
				return nil
			}
			next = map[string]any{}
			doc[name] = next
		}
		table, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not a table", joinKey(path[:i+1]))
		}
		doc = table
	}
	if value == nil {
		delete(doc, path[len(path)-1])
	} else {
		doc[path[len(path)-1]] = *value
	}
	return nil
}

// same compares documents. It ignores empty tables, because a table that only dotted keys
// define disappears with the last of them.
func same(a, b map[string]any) bool {
	left, errLeft := toml.Marshal(pruned(a))
	right, errRight := toml.Marshal(pruned(b))
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}

func pruned(doc map[string]any) map[string]any {
	doc = maps.Clone(doc)
	for k, v := range doc {
		if table, ok := v.(map[string]any); ok {
			if table = pruned(table); len(table) == 0 {
				delete(doc, k)
			} else {
				doc[k] = table
			}
		}
	}
	return doc
}

// quote writes a basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoteKey writes a key, without quotes if possible.
func quoteKey(s string) string {
	for _, r := range s {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r) {
			return quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

func quoteKeys(path []string) string {
	quoted := make([]string, len(path))
	for i, s := range path {
		quoted[i] = quoteKey(s)
	}
	return strings.Join(quoted, ".")
}
