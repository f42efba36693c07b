package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// place is a table that may set the keys of a configuration.
type place struct {
	file  string
	table []string // nil is the whole file
}

// locate adds to an error where its key is set: on the command line, or the file and the
// line. The text of such an error begins with the dotted key. A call that sets the key
// knows it. Of the places, an earlier one counts more.
func locate(err error, call, flags layer, places ...place) error {
	key, _, _ := strings.Cut(err.Error(), ": ")
	var missing *MissingError
	if errors.As(err, &missing) {
		key = missing.Key
	}
	segments, splitErr := splitKey(key)
	switch {
	case splitErr != nil || holds(call, segments):
		return err
	case holds(flags, segments):
		return fmt.Errorf("-c %w", err)
	}
	// The line of a missing key is that of its table.
	for n := len(segments); n > 0; n-- {
		for _, p := range places {
			doc, readErr := safefile.Read(p.file, maxFile)
			if readErr != nil {
				continue
			}
			if line := keyLine(doc, slices.Concat(p.table, segments[:n])); line > 0 {
				return fmt.Errorf("%s:%d: %w", p.file, line, err)
			}
		}
	}
	return fmt.Errorf("%s: %w", places[len(places)-1].file, err)
}

// holds reports whether a layer sets the key or a part of it.
func holds(l layer, segments []string) bool {
	for _, s := range segments {
		v, ok := l[s]
		if !ok {
			return false
		}
		if l, ok = v.(layer); !ok {
			return true
		}
	}
	return true
}

// keyLine returns the first line that sets a key, a table that contains it, or a part of
// it. It returns 0 if there is none.
func keyLine(doc []byte, path []string) int {
	lines, err := linesOf(doc)
	if err != nil {
		return 0
	}
	for _, l := range lines {
		if begins(l.path, path) || !l.header && begins(path, l.path) {
			return 1 + bytes.Count(doc[:l.start], []byte("\n"))
		}
	}
	return 0
}

func begins(path, with []string) bool {
	return len(with) <= len(path) && slices.Equal(path[:len(with)], with)
}

// Unknown returns the keys of config.toml in home that have no effect here, each with file
// and line. They may be misspelt, or belong to a feature of Codex alone.
func Unknown(home string) []string {
	return unknownKeys(home, func(known *keyNames) map[string]bool { return known.here })
}

// UnknownOverrides returns the keys of the command line that have no effect here.
func UnknownOverrides(overrides map[string]any) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(overrides)) {
		if !knownNames.get().here[key] {
			found = append(found, explain("-c "+JoinKey(key), key))
		}
	}
	return found
}

// explain adds to a text about a key what decides instead of it, if anything.
func explain(text, key string) string {
	if why := decidesElsewhere[key]; why != "" {
		return text + ": " + why
	}
	return text
}

// UnknownToCodex returns those keys of [Unknown] that Codex does not know either.
func UnknownToCodex(home string) []string {
	return unknownKeys(home, func(known *keyNames) map[string]bool { return known.top })
}

// unknownKeys returns the keys of config.toml that are not among top, nor among those of its tables.
func unknownKeys(home string, topOf func(*keyNames) map[string]bool) []string {
	path := filepath.Join(home, "config.toml")
	doc, err := safefile.Read(path, maxFile)
	if err != nil {
		return nil // Load reports the error
	}
	file, err := parseFile(path, doc)
	if err != nil {
		return nil
	}
	names := knownNames.get()
	top := topOf(names)
	var found []string
	note := func(segments ...string) {
		text := fmt.Sprintf("%s:%d: %s", path, keyLine(doc, segments), JoinKey(segments...))
		found = append(found, explain(text, segments[len(segments)-1]))
	}
	unknown := func(known map[string]bool, segments ...string) {
		table, _ := at(file, segments).(layer)
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if !known[key] {
				note(append(slices.Clone(segments), key)...)
			}
		}
	}
	unknown(top)
	unknown(names.tools, "tools")
	each := func(known map[string]bool, table string) {
		entries, _ := file[table].(layer)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			unknown(known, table, name)
		}
	}
	each(top, "profiles")
	each(names.provider, "model_providers")
	each(names.server, "mcp_servers")
	return found
}

// at returns the value of a key, or nil.
func at(l layer, segments []string) any {
	var v any = l
	for _, s := range segments {
		table, _ := v.(layer)
		v = table[s]
	}
	return v
}
