package config

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/pelletier/go-toml/v2"
)

// layer is a configuration as nested tables. Its values are those of encoding/json: maps,
// slices, strings, bools, nil, and numbers of any type.
type layer = map[string]any

// maxFile is the size of the largest configuration file in bytes.
const maxFile = 4 << 20

// readFile reads a TOML file. A missing file is an empty layer.
func readFile(path string) (layer, error) {
	_, file, err := readDocument(path)
	return file, err
}

// readDocument is [readFile], and returns the text of the file, too.
func readDocument(path string) (doc []byte, file layer, err error) {
	doc, err = safefile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, layer{}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	file, err = parseFile(path, doc)
	return doc, file, err
}

// parseFile parses what the file at path has, perhaps behind the byte-order mark of an editor.
func parseFile(path string, data []byte) (layer, error) {
	if slices.Contains(data[:min(len(data), 4)], 0) || bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, fmt.Errorf("%s: the file is UTF-16, and TOML is UTF-8: save it as UTF-8 (in PowerShell, Set-Content -Encoding utf8)", path)
	}
	var doc layer
	if err := toml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &doc); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			return nil, fmt.Errorf("%s:%d:%d: %s", path, row, column, strings.TrimPrefix(err.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if doc == nil {
		doc = layer{}
	}
	return plain(doc).(layer), nil
}

// plain converts dates of TOML to text. No key has a date as its value.
func plain(v any) any {
	switch v := v.(type) {
	case layer:
		for k, e := range v {
			v[k] = plain(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case fmt.Stringer: // time.Time, toml.LocalDate and their like
		return v.String()
	}
	return v
}

// fromJSON converts a call's config object to a layer. Its keys may be dotted.
func fromJSON(raw map[string]stdjson.RawMessage) (layer, error) {
	flat := make(layer, len(raw))
	for key, text := range raw {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, fmt.Errorf("config key %q: %w", key, err)
		}
		flat[key] = v
	}
	return unflatten(flat)
}

// unflatten converts dotted keys to nested tables. It does not change the keys of nested
// tables, and drops nil values.
func unflatten(flat layer) (layer, error) {
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
		merge(out, nest(segments, flat[key]))
	}
	return out, nil
}

// merge merges over into dst. It copies tables of dst before it changes them.
func merge(dst, over layer) {
	for k, v := range over {
		table, isTable := v.(layer)
		old, wasTable := dst[k].(layer)
		if isTable {
			if wasTable {
				old = maps.Clone(old)
			} else {
				old = layer{}
			}
			merge(old, table)
			v = old
		}
		dst[k] = v
	}
}
