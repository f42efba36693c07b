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
	"github.com/codexmcp/codexmcp/internal/text"
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

// UnknownToCodex returns those of the keys that [Layers].Unknown is called with that Codex does not
// know either.
func UnknownToCodex(home string, overrides map[string]any) (found []string) {
	path := filepath.Join(home, "config.toml")
	doc, file, _ := readDocument(path) // Load reports the error
	noteUnknown(path, doc, file, overrides, allKeys, func(key string) { found = append(found, key) })
	return found
}

// noteUnknown calls note with the keys of the file at path, and then of the overrides, that are neither
// among top nor known keys of their tables, each with its place.
func noteUnknown(path string, doc []byte, file, overrides layer, top func() []string, note func(key string)) {
	unknownKeys(file, top, func(why string, segments ...string) {
		note(fmt.Sprintf("%s:%d: %s%s", path, keyLine(doc, segments), JoinKey(segments...), why))
	})
	unknownKeys(overrides, top, func(why string, segments ...string) {
		note("-c " + JoinKey(segments...) + why)
	})
}

// unknownKeys calls note with the keys of l that are neither among top nor known keys of its tables.
// why is what decides instead of a key, or which one was meant, after a separator; or it is "".
func unknownKeys(l layer, top func() []string, note func(why string, segments ...string)) {
	unknown := func(known func() []string, segments ...string) {
		table, _ := at(l, segments).(layer)
		if len(table) == 0 {
			return
		}
		names := known()
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if slices.Contains(names, key) {
				continue
			}
			why, candidates := decidesElsewhere(key), names
			if len(segments) == 0 {
				candidates = slices.Concat(names, ourTables)
			}
			if meant := text.Nearest(key, slices.Values(candidates)); why == "" && meant != "" {
				why = "do you mean " + meant + "?"
			}
			if why != "" {
				why = ": " + why
			}
			note(why, append(slices.Clone(segments), key)...)
		}
	}
	unknown(top)
	unknown(toolsKeys, "tools")
	unknown(workspaceKeys, workspaceTable)
	each := func(known func() []string, table string) {
		entries, _ := l[table].(layer)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			unknown(known, table, name)
		}
	}
	each(top, "profiles")
	each(providerKeys, "model_providers")
	each(serverTableKeys, "mcp_servers")
}

// workspaceTable has the keys of the sandbox mode workspace-write.
const workspaceTable = "sandbox_workspace_write"

// guardedKeys say what is asked, and what commands may touch.
var guardedKeys = []string{"approval_policy", "sandbox_mode", workspaceTable, "approvals", "calls", "sandbox", "shell_environment_policy"}

// guardedOfOurs are such keys of ours, which other names may mean.
var guardedOfOurs = []string{"calls.full_access", "calls.locked_arguments", "calls.trusted"}

// misspelt returns an error for the first of the overrides that is a typo away from one of guardedKeys:
// who wrote it would believe that it counts.
func misspelt(overrides layer) error {
	find := func(known func() []string, meant []string, path ...string) error {
		table, _ := at(overrides, path).(layer)
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if near := text.Nearest(key, slices.Values(meant)); near != "" && near != key && !slices.Contains(known(), key) {
				return fmt.Errorf("-c %s: unknown key; do you mean %s?", JoinKey(append(path, key)...), near)
			}
		}
		return nil
	}
	if err := find(allKeys, guardedKeys); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(overrides)) {
		if near := nearestOfOurs(key, new(Settings).keys()); slices.Contains(guardedOfOurs, near) && !slices.Contains(allKeys(), key) {
			return fmt.Errorf("-c %s: unknown key; do you mean %s?", JoinKey(key), near)
		}
	}
	if _, ok := overrides[workspaceTable]; ok {
		if err := find(workspaceKeys, workspaceKeys(), workspaceTable); err != nil {
			return err
		}
	}
	profiles, _ := overrides["profiles"].(layer)
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if err := find(allKeys, guardedKeys, "profiles", name); err != nil {
			return err
		}
	}
	return nil
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
