package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// locate adds the file and the line to an error whose key is set in config.toml and in no
// layer above it. The text of such an error begins with the dotted key.
func locate(path string, err error, profile string, above ...layer) error {
	key, _, _ := strings.Cut(err.Error(), ": ")
	var missing *MissingError
	if errors.As(err, &missing) {
		key = missing.Key
	}
	segments, splitErr := splitKey(key)
	if splitErr != nil || slices.ContainsFunc(above, func(l layer) bool { return holds(l, segments) }) {
		return err
	}
	doc, readErr := regularfile.Read(path, maxFile)
	if readErr != nil {
		return err
	}
	line := 0
	if profile != "" {
		line = keyLine(doc, append([]string{"profiles", profile}, segments...))
	}
	if line == 0 {
		line = keyLine(doc, segments)
	}
	if line == 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %w", path, line, err)
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
	l, err := parseLayout(doc)
	if err != nil {
		return 0
	}
	for _, s := range l.sections {
		if len(s.path) > 0 && begins(s.path, path) {
			return 1 + bytes.Count(doc[:s.header-1], []byte("\n")) // without its own line break
		}
		for _, e := range s.entries {
			if begins(path, e.path) || begins(e.path, path) {
				return 1 + bytes.Count(doc[:e.start], []byte("\n"))
			}
		}
	}
	return 0
}

// Unknown returns the keys of config.toml in home that have no effect here, each with file
// and line. They may be misspelt, or belong to a feature of Codex alone.
func Unknown(home string) []string { return unknownKeys(home, readHere()) }

// UnknownOverrides returns the keys of the command line that have no effect here.
func UnknownOverrides(overrides map[string]any) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(overrides)) {
		if !slices.Contains(readHere(), key) {
			found = append(found, explain("-c "+joinKey([]string{key}), key))
		}
	}
	return found
}

// readHere returns the top keys of config.toml that this package reads or may ignore.
func readHere() []string { return append(members(reflect.TypeFor[Config]()), theirKeys...) }

// explain adds to a text about a key what decides instead of it, if anything.
func explain(text, key string) string {
	if why := decidesElsewhere[key]; why != "" {
		return text + ": " + why
	}
	return text
}

// UnknownToCodex returns those keys of [Unknown] that Codex does not know either.
func UnknownToCodex(home string) []string {
	return unknownKeys(home, slices.Collect(maps.Keys(knownKeys())))
}

func unknownKeys(home string, known []string) []string {
	path := filepath.Join(home, "config.toml")
	file, err := readFile(path)
	if err != nil {
		return nil // Load reports the error
	}
	doc, err := regularfile.Read(path, maxFile)
	if err != nil {
		return nil
	}
	var found []string
	note := func(segments ...string) {
		text := fmt.Sprintf("%s:%d: %s", path, keyLine(doc, segments), joinKey(segments))
		found = append(found, explain(text, segments[len(segments)-1]))
	}
	unknown := func(known []string, segments ...string) {
		table, _ := at(file, segments).(layer)
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if !slices.Contains(known, key) {
				note(append(slices.Clone(segments), key)...)
			}
		}
	}
	unknown(known)
	unknown(append(members(reflect.TypeFor[Tools]()), "web_search_request"), "tools")
	each := func(known []string, table string) {
		entries, _ := file[table].(layer)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			unknown(known, table, name)
		}
	}
	each(known, "profiles")
	each(members(reflect.TypeFor[Provider]()), "model_providers")
	each(append(members(reflect.TypeFor[MCPServer]()), theirServerKeys...), "mcp_servers")
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

// members returns the keys of a table.
func members(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
