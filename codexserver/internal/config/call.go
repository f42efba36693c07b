package config

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckFolder returns an error about the argument cwd of a call if there is no such folder.
// "" is the default, which needs no check.
func CheckFolder(cwd string) error {
	if cwd == "" {
		return nil
	}
	info, err := os.Stat(cwd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("argument /cwd: %s does not exist", cwd)
	case err != nil:
		return fmt.Errorf("argument /cwd: %w", err)
	case !info.IsDir():
		return fmt.Errorf("argument /cwd: %s is not a folder", cwd)
	}
	return nil
}

// CallKeys returns the keys of the argument config that a call of the tool codex may set,
// and warnings about keys that it leaves out. The keys of raw may be dotted; the result has
// nested tables. Cwd is the call's working folder. Bounded is true when the server limits
// the folders that calls may name. The error is a [*CallKeyError] if a known key is not
// for calls, or a table has one that is not known.
//
// The result may have a shell_environment_policy. [Load] refuses it if it widens that of
// the configuration.
func CallKeys(raw map[string]stdjson.RawMessage, cwd string, bounded bool) (keys map[string]stdjson.RawMessage, warnings []string, err error) {
	tree, err := callTree(raw)
	if err != nil {
		return nil, nil, err
	}
	c := &callKeys{cwd: cwd, admitted: layer{}}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if err := c.walk([]string{key}, tree[key]); err != nil {
			return nil, nil, err
		}
	}
	if len(c.refused) > 0 {
		return nil, nil, &CallKeyError{Keys: c.refused, Bounded: bounded}
	}
	keys = make(map[string]stdjson.RawMessage, len(c.admitted))
	for key, v := range c.admitted {
		text, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			return nil, nil, fmt.Errorf("key %q: %w", key, err)
		}
		keys[key] = stdjson.RawMessage(text)
	}
	if len(c.programs) > 0 {
		warnings = append(warnings, fmt.Sprintf("argument config: %s left out: a call may not name programs to start; %s", enumerate(c.programs), whoAllows(bounded)))
	}
	if len(c.unknown) > 0 {
		warnings = append(warnings, fmt.Sprintf("argument config: %s left out: no such key is known", enumerate(c.unknown)))
	}
	return keys, warnings, nil
}

// whoAllows says which setting lets calls set everything, if one does.
func whoAllows(bounded bool) string {
	if bounded {
		return "no setting allows it on a server that limits the folders of calls"
	}
	return "calls.trusted = true in " + SettingsFile + " allows it"
}

// CallKeyError reports that a call set keys that are not for calls.
type CallKeyError struct {
	// Keys are dotted.
	Keys []string
	// Bounded is true when the server limits the folders that calls may name.
	Bounded bool
}

// Error implements error.
func (e *CallKeyError) Error() string {
	return fmt.Sprintf("a call may not set %s; %s", enumerate(e.Keys), whoAllows(e.Bounded))
}

// enumerate lists the first keys for a message, each shortened.
func enumerate(keys []string) string {
	const most, longest = 8, 80
	var shown []string
	for _, key := range keys[:min(len(keys), most)] {
		shown = append(shown, fmt.Sprintf("%q", text.Brief(key, longest)))
	}
	list := strings.Join(shown, ", ")
	if more := len(keys) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// callTree nests a call's keys. The leaves of the tree are JSON text.
func callTree(raw map[string]stdjson.RawMessage) (layer, error) {
	flat := make(layer, len(raw))
	for key, text := range raw {
		v, err := tableOf(jsontext.Value(text))
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		flat[key] = v
	}
	return unflatten(flat)
}

// tableOf converts objects to tables and null to nil. Other values stay JSON text.
func tableOf(v jsontext.Value) (any, error) {
	switch v.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if err := json.Unmarshal(v, &members); err != nil {
			return nil, err
		}
		table := make(layer, len(members))
		for name, member := range members {
			var err error
			if table[name], err = tableOf(member); err != nil {
				return nil, err
			}
		}
		return table, nil
	case 'n':
		return nil, nil
	}
	if !v.IsValid() {
		return nil, fmt.Errorf("not a JSON value")
	}
	return v, nil
}

// callKeys sorts the leaves of a call's config.
type callKeys struct {
	cwd      string
	admitted layer
	refused  []string
	programs []string // left out: they name programs to start
	unknown  []string // left out
}

func (c *callKeys) walk(path []string, v any) error {
	if table, ok := v.(layer); ok && len(table) > 0 {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if err := c.walk(append(slices.Clip(path), key), table[key]); err != nil {
				return err
			}
		}
		return nil
	}
	if v == nil {
		v = jsontext.Value("null")
	}
	value, _ := v.(jsontext.Value)
	switch name := JoinKey(path...); {
	case isOurs(path[0]):
		return fmt.Errorf("key %q: is set for the whole server, not for one call", path[0])
	case c.admits(path, string(value)):
		merge(c.admitted, nest(path, v))
	case path[0] == "mcp_servers" || path[0] == "notify": // many callers send them
		c.programs = append(c.programs, name)
	case !slices.Contains(allKeys(), path[0]):
		c.unknown = append(c.unknown, name)
	default:
		c.refused = append(c.refused, name)
	}
	return nil
}

// admits reports whether a call may set a key to a JSON text, "" for an empty table. A key on no list may
// start a program, use the network, protect something, or, as hooks do, ask the user.
func (c *callKeys) admits(path []string, value string) bool {
	isBool, below := value == "true" || value == "false", path[len(path)-1]
	switch name := JoinKey(path...); {
	case path[0] == "mcp_servers":
		return len(path) == 3 && below == "enabled" && value == "false"
	case path[0] == "features" && len(path) == 2:
		return isBool && isOn(freeFeatures, below) || value == "false" && isOn(offFeatures, below)
	case name == "experimental_instructions_file":
		return c.inWorkspace(jsontext.Value(value))
	case len(path) > 1 && isOn(callMembers, JoinKey(path[:2]...)):
		return true
	case value == "": // it sets nothing
		return isOn(callTables, name)
	default:
		return isOn(callScalars, name) || isBool && isOn(callSwitches, name) || value == "false" && isOn(callOff, name)
	}
}

// isOn reports whether a list, whose words are separated by space, has a name.
func isOn(list, name string) bool { return slices.Contains(strings.Fields(list), name) }

// inWorkspace reports whether a path, with links followed, leads into the working folder. A
// relative path begins there. A call must not have other files sent to the model.
func (c *callKeys) inWorkspace(value jsontext.Value) bool {
	var path string
	if json.Unmarshal(value, &path) != nil || path == "" || c.cwd == "" {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.cwd, path)
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	folder, err := filepath.EvalSymlinks(c.cwd)
	if err != nil {
		return false
	}
	return paths.Below(file, folder)
}
