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
	"sync"

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
// and warnings about keys that it drops. The keys of raw may be dotted; the result has
// nested tables. Cwd is the call's working folder. Bounded is true when the server limits
// the folders that calls may name. The error is a [*CallKeyError] if a known key is not
// for calls.
//
// The result may have a shell_environment_policy. [Load] refuses it if it widens that of
// the configuration.
func CallKeys(raw map[string]stdjson.RawMessage, cwd string, bounded bool) (keys map[string]stdjson.RawMessage, warnings []string, err error) {
	tree, err := callTree(raw)
	if err != nil {
		return nil, nil, err
	}
	c := &callKeys{cwd: cwd, bounded: bounded, known: sync.OnceValue(allKeys), admitted: layer{}}
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
	return keys, c.warnings(), nil
}

// whoAllows says which setting lets calls set everything, if one does.
func whoAllows(bounded bool) string {
	if bounded {
		return "no setting allows it on a server that limits the folders of calls"
	}
	return "trusted_calls = true in " + SettingsFile + " allows it"
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
	bounded  bool
	known    func() []string // keys of config.toml
	admitted layer
	refused  []string
	programs []string // dropped: they name programs to start
	unknown  []string // dropped
}

// ruling is the decision about a key.
type ruling int

const (
	rulingUnknown ruling = iota // drop it with a warning
	rulingRefuse                // the call fails
	rulingProgram               // drop it with a warning, because many callers send it
	rulingAdmit
)

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
	value, isLeaf := v.(jsontext.Value)
	if isLeaf && len(path) == 1 && slices.Contains(callTables, path[0]) {
		return fmt.Errorf("key %q: want a table", path[0])
	}
	if isOurs(path[0]) {
		return fmt.Errorf("key %q: is set for the whole server, not for one call", path[0])
	}
	name := JoinKey(path...)
	switch c.rule(path, value) {
	case rulingAdmit:
		merge(c.admitted, nest(path, v))
	case rulingProgram:
		c.programs = append(c.programs, name)
	case rulingRefuse:
		c.refused = append(c.refused, name)
	default:
		c.unknown = append(c.unknown, name)
	}
	return nil
}

// callTables are the tables that a call may set keys of.
var callTables = []string{"features", "sandbox_workspace_write", "shell_environment_policy", "tools"}

// callScalars are the keys that a call may set to any value.
var callScalars = []string{
	"approval_policy", "compact_prompt", "developer_instructions", "hide_agent_reasoning", "model",
	"model_auto_compact_token_limit", "model_context_window", "model_provider", "model_reasoning_effort",
	"model_reasoning_summary", "model_reasoning_summary_format", "model_verbosity", "sandbox_mode",
	"show_raw_agent_reasoning",
}

// callMembers returns the members of one of callTables, or of approval_policy, that a call may
// set to any value.
func callMembers(table string) []string {
	switch table {
	case "approval_policy":
		return []string{"granular"}
	case "sandbox_workspace_write":
		return []string{"exclude_slash_tmp", "exclude_tmpdir_env_var", "network_access", "writable_roots"}
	case "tools":
		return []string{
			"client_search_provider", "experimental_request_user_input", "update_plan", "view_image", "web_search",
			"web_search_request",
		}
	}
	return nil
}

// rule decides about one leaf. An empty table has no value.
func (c *callKeys) rule(path []string, value jsontext.Value) ruling {
	top, isTrue, isFalse := path[0], string(value) == "true", string(value) == "false"
	switch {
	case len(path) == 1 && slices.Contains(callScalars, top):
		return rulingAdmit
	case len(path) == 1 && slices.Contains(callTables, top):
		return rulingAdmit // an empty table sets nothing
	case len(path) > 1 && slices.Contains(callMembers(top), path[1]):
		return rulingAdmit
	}
	switch top {
	case "mcp_servers":
		if len(path) == 3 && path[2] == "enabled" && isFalse {
			return rulingAdmit
		}
		return rulingProgram
	case "notify":
		return rulingProgram
	case "features":
		return featureRule(path, isTrue, isFalse)
	case "experimental_use_exec_command_tool", "experimental_use_unified_exec_tool": // a feature's older names
		if len(path) == 1 && (isTrue || isFalse) {
			return rulingAdmit
		}
	case "shell_environment_policy":
		return environmentRule(path, isFalse)
	case "experimental_instructions_file":
		if len(path) == 1 && c.inWorkspace(value) {
			return rulingAdmit
		}
	case "approval_policy", "sandbox_workspace_write", "tools":
		return rulingUnknown
	}
	if !slices.Contains(c.known(), top) || len(path) > 1 && slices.Contains(callScalars, top) {
		return rulingUnknown
	}
	return rulingRefuse
}

// featureRule decides about a feature. A feature may start programs, use the network, or,
// as hooks do, ask the user. A call may switch only features that do none of this.
func featureRule(path []string, isTrue, isFalse bool) ruling {
	switch kind := kindOf(path[1]); {
	case kind == noFeature:
		return rulingUnknown
	case len(path) == 2 && (isTrue && kind == freeFeature || isFalse && kind != otherFeature):
		return rulingAdmit
	}
	return rulingRefuse
}

// environmentRule admits keys that can narrow the policy. [Load] checks that they do.
func environmentRule(path []string, isFalse bool) ruling {
	switch path[1] {
	case "exclude", "include_only", "inherit":
		if len(path) == 2 {
			return rulingAdmit
		}
	case "ignore_default_excludes", "experimental_use_profile":
		if len(path) == 2 && isFalse {
			return rulingAdmit
		}
	case "filters", "set":
	default:
		return rulingUnknown
	}
	return rulingRefuse
}

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

func (c *callKeys) warnings() []string {
	var all []string
	if len(c.programs) > 0 {
		all = append(all, fmt.Sprintf("argument config: %s left out: a call may not name programs to start; %s", enumerate(c.programs), whoAllows(c.bounded)))
	}
	if len(c.unknown) > 0 {
		all = append(all, fmt.Sprintf("argument config: %s left out: no such key is known", enumerate(c.unknown)))
	}
	return all
}
