package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// layer is a configuration as nested tables. Its values are those of encoding/json: maps,
// slices, strings, bools, nil, and numbers of any type; a file may also have dates, which are texts in JSON.
type layer = map[string]any

func isTable(value any) bool {
	_, is := value.(layer)
	return is
}

// maxFile is the size of the largest configuration file in bytes.
const maxFile = 4 << 20

// ReadFile reads a TOML file as nested tables, perhaps behind the byte-order mark of an editor. A missing file has
// none. The error names the line.
func ReadFile(path string) (map[string]any, error) {
	data, err := safefile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return layer{}, nil
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(data[:min(len(data), 4)], 0) || bytes.HasPrefix(data, []byte{0xff, 0xfe}) ||
		bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, fmt.Errorf("%s: the file is UTF-16, and TOML is UTF-8: save it as UTF-8 (in PowerShell, "+
			"Set-Content -Encoding utf8)", path)
	}
	doc := layer{}
	if err := toml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &doc); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			return nil, fmt.Errorf("%s:%d:%d: %s", path, row, column, strings.TrimPrefix(err.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return doc, nil
}

// line is a header or a key with its value in a TOML document.
type line struct {
	header bool
	path   []string // of the header or of the key, from the top
	start  int      // of the key, or the end of the header
	value  int      // where the value of a key begins
}

// linesOf parses a document.
func linesOf(doc []byte) ([]line, error) {
	var lines []line
	var table []string
	var p unstable.Parser
	p.Reset(doc)
	for p.NextExpression() {
		e := p.Expression()
		var names []string
		end := 0
		for key := e.Key(); key.Next(); {
			names = append(names, string(key.Node().Data))
			end = int(key.Node().Raw.Offset + key.Node().Raw.Length)
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = names
			lines = append(lines, line{header: true, path: names, start: end})
		case unstable.KeyValue:
			lines = append(lines, line{path: slices.Concat(table, names), start: int(e.Raw.Offset),
				value: int(e.Value().Raw.Offset)})
		}
	}
	return lines, p.Error()
}

// ParseOverride parses a KEY=VALUE of the flag -c. The key is dotted; a segment with
// a dot must be quoted. The value is a TOML value or, if it cannot be parsed as one, a
// plain string, with quotes around it removed.
func ParseOverride(s string) (key string, value any, err error) {
	key, text, found := strings.Cut(s, "=")
	key = strings.TrimSpace(key)
	if !found || key == "" {
		return "", nil, &FlagError{fmt.Errorf("%s: want KEY=VALUE", s)}
	}
	if _, err := splitKey(key); err != nil {
		return "", nil, &FlagError{err}
	}
	text = strings.TrimSpace(text)
	var doc map[string]any
	// A line break could add a second key to the document. No key has a date as its value.
	if err := toml.Unmarshal([]byte("v = "+text), &doc); err == nil && len(doc) == 1 {
		if _, isDate := doc["v"].(encoding.TextMarshaler); !isDate {
			return key, doc["v"], nil
		}
	}
	return key, strings.Trim(text, `"'`), nil
}

// splitKey splits a dotted key at the dots outside quotes. A key with quotes is one of TOML; any other may have each
// character.
func splitKey(key string) ([]string, error) {
	if strings.ContainsAny(key, `"'`) {
		lines, err := linesOf([]byte(key + "=0"))
		if err == nil && (len(lines) != 1 || lines[0].value != len(key)+1 || strings.Contains(key, "\n")) {
			err = errors.New("want a key and nothing else")
		}
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		return lines[0].path, nil
	}
	segments := strings.Split(key, ".")
	for i, s := range segments {
		if segments[i] = strings.TrimSpace(s); segments[i] == "" {
			return nil, fmt.Errorf("key %q: want a name before and after each dot", key)
		}
	}
	return segments, nil
}

// JoinKey writes segments as a dotted key, with quotes where they are needed.
func JoinKey(segments ...string) string {
	quoted := make([]string, len(segments))
	for i, s := range segments {
		if quoted[i] = s; s == "" || strings.TrimSpace(s) != s || strings.ContainsAny(s, `."' =`) {
			quoted[i] = strconv.Quote(s)
		}
	}
	return strings.Join(quoted, ".")
}

// Nest returns a value under a key as nested tables.
func Nest(v any, path ...string) map[string]any {
	for _, name := range slices.Backward(path) {
		v = layer{name: v}
	}
	return v.(layer)
}

// Unflatten converts dotted keys to nested tables. It does not change the keys of nested
// tables, and drops nil values.
func Unflatten(flat map[string]any) (map[string]any, error) {
	out := layer{}
	// In sorted order a table comes before its dotted members.
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		if flat[key] == nil {
			continue
		}
		segments, err := splitKey(key)
		if err != nil {
			return nil, err
		}
		Merge(out, Nest(flat[key], segments...))
	}
	return out, nil
}

// Merge merges over into dst, as Codex does: a table key by key, of which null says nothing. It copies tables of dst before
// it changes them.
func Merge(dst, over map[string]any) {
	for k, v := range over {
		old, had := dst[k].(layer)
		if table, is := v.(layer); is {
			if old = maps.Clone(old); old == nil {
				old = layer{}
			}
			Merge(old, table)
			v = old
		} else if v == nil && had {
			continue
		}
		dst[k] = v
	}
}

// stack merges layers into the first one, later ones over earlier ones.
func stack(bottom layer, over ...layer) layer {
	for _, l := range over {
		Merge(bottom, l)
	}
	return bottom
}

// At returns the value of a key, or nil.
func At(tree map[string]any, path ...string) any {
	var v any = tree
	for _, name := range path {
		table, _ := v.(layer)
		v = table[name]
	}
	return v
}
