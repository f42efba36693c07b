package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckFolder returns an error about the argument cwd of a call if there is no such folder.
// "" is the default, which needs no check.
func CheckFolder(cwd string) error {
	info, err := os.Stat(cwd)
	switch {
	case cwd == "":
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("argument /cwd: %s does not exist", cwd)
	case err != nil:
		return fmt.Errorf("argument /cwd: %w", err)
	case !info.IsDir():
		return fmt.Errorf("argument /cwd: %s is not a folder", cwd)
	}
	return nil
}

// CallKeys returns the keys of a call's configuration, which [ReadCall] returned, that a call may set, and warnings
// about keys that it leaves out. Cwd is the call's working folder. Bounded is true when the server limits the folders
// that calls may name. CallKeys fails if a known key is not for calls, or a table has one that is not known.
func CallKeys(
	call protocol.Overrides, cwd string, bounded bool,
) (keys protocol.Overrides, warnings []string, err error) {
	c := &callKeys{cwd: cwd, admitted: layer{}}
	for _, key := range slices.Sorted(maps.Keys(call)) {
		if Ours(key) {
			return nil, nil, fmt.Errorf("key %q: is set for the whole server, not for one call", key)
		}
		c.walk([]string{key}, call[key])
	}
	if len(c.refused) > 0 {
		return nil, nil, fmt.Errorf("a call may not set %s; %s", enumerate(c.refused), whoAllows(bounded))
	}
	if len(c.programs) > 0 {
		warnings = append(warnings, fmt.Sprintf("argument config: %s left out: a call may not name programs to "+
			"start; %s", enumerate(c.programs), whoAllows(bounded)))
	}
	if len(c.unknown) > 0 {
		warnings = append(warnings, fmt.Sprintf("argument config: %s left out: no such key is known",
			enumerate(c.unknown)))
	}
	return c.admitted, warnings, nil
}

// whoAllows says which setting lets calls set everything, if one does.
func whoAllows(bounded bool) string {
	if bounded {
		return "no setting allows it on a server that limits the folders of calls"
	}
	return "calls.trusted = true in " + SettingsFile + " allows it"
}

// enumerate lists keys for a message, which is short.
func enumerate(quoted []string) string { return text.Brief(strings.Join(quoted, ", "), 600) }

// callKeys sorts the leaves of a call's config.
type callKeys struct {
	cwd      string
	admitted layer
	refused  []string // in quotes, as all below
	programs []string // left out: they name programs to start
	unknown  []string // left out
}

func (c *callKeys) walk(path []string, v any) {
	if table, ok := v.(layer); ok && len(table) > 0 {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			c.walk(append(slices.Clip(path), key), table[key])
		}
		return
	}
	switch name := strconv.Quote(JoinKey(path...)); {
	case c.admits(path, v):
		Merge(c.admitted, Nest(v, path...))
	case path[0] == "mcp_servers" || path[0] == "notify": // many callers send them
		c.programs = append(c.programs, name)
	case !knownTop(path[0]):
		c.unknown = append(c.unknown, name)
	default:
		c.refused = append(c.refused, name)
	}
}

// admits reports whether a call may set a key to a value. A table is an empty one. A key on no list may
// start a program, use the network, protect something, or, as hooks do, ask the user.
func (c *callKeys) admits(path []string, v any) bool {
	on, isBool := v.(bool)
	off, below := isBool && !on, path[len(path)-1]
	switch name := JoinKey(path...); {
	case path[0] == "mcp_servers":
		return len(path) == 3 && below == "enabled" && off
	case path[0] == "features" && len(path) == 2:
		return isBool && isOn(freeFeatures, below) || off && isOn(offFeatures, below)
	case name == "experimental_instructions_file":
		return c.inWorkspace(v)
	case len(path) > 1 && isOn(callMembers, JoinKey(path[:2]...)):
		return true
	case isTable(v):
		return isOn(callTables, name)
	default:
		return isOn(callScalars, name) || isBool && isOn(callSwitches, name)
	}
}

// isOn reports whether a list, whose words are separated by space, has a name.
func isOn(list, name string) bool { return slices.Contains(strings.Fields(list), name) }

// inWorkspace reports whether a path, with links followed, leads into the working folder. A
// relative path begins there. A call must not have other files sent to the model.
func (c *callKeys) inWorkspace(value any) bool {
	path, _ := value.(string)
	if path == "" || c.cwd == "" {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.cwd, path)
	}
	file, err := filepath.EvalSymlinks(path)
	folder, missing := filepath.EvalSymlinks(c.cwd)
	return err == nil && missing == nil && paths.Below(file, folder)
}

// ReadCall returns a call's configuration as nested tables. A key may be dotted. Null sets nothing. ReadCall replaces
// numbers, booleans, lists and tables that a host sent as texts with JSON by these, where the key takes no text.
func ReadCall(call protocol.Overrides) (protocol.Overrides, error) {
	tree, err := Unflatten(call)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if JoinKey(name) != name { // whoever splits it again would find another key
			return nil, fmt.Errorf("key %q: want a name without quotes, dots and spaces", name)
		}
		tree[name] = withoutTexts(tree[name], typeAt(reflect.TypeFor[document](), name))
	}
	return tree, nil
}

// withoutTexts replaces the texts in a value of type t, nil for an unknown key.
func withoutTexts(v any, t reflect.Type) any {
	if table, is := v.(layer); is && t != nil {
		for name, member := range table {
			table[name] = withoutTexts(member, typeAt(t, name))
		}
	}
	given, _ := v.(string)
	text := jsontext.Value(strings.TrimSpace(given))
	if t == nil || len(text) == 0 || !strings.Contains(jsonOf[t.Kind()], string(text.Kind())) {
		return v
	}
	var read protocol.Overrides
	if json.Unmarshal(slices.Concat([]byte(`{"v":`), text, []byte(`}`)), &read) != nil || len(read) != 1 {
		return v
	}
	return withoutTexts(read["v"], t)
}

// jsonOf has the kinds of JSON that a Go kind may be, but no text.
var jsonOf = [reflect.UnsafePointer + 1]string{
	reflect.Bool: "tf", reflect.Int: "0", reflect.Int64: "0", reflect.Float64: "0", reflect.Slice: "[",
	reflect.Map: "{", reflect.Struct: "{",
}

// Chooses reports whether a call's configuration has a dotted key, or a key below it. It takes a dot in a name for one of a
// dotted key, and a name with quotes or space around it for any, also where no engine does.
func Chooses(call map[string]any, key string) bool {
	for name, v := range call {
		if name == key || strings.HasPrefix(name, key+".") || strings.ContainsAny(name, `"'`) ||
			strings.TrimSpace(name) != name {
			return true
		}
		table, _ := v.(layer)
		if below, is := strings.CutPrefix(key, name+"."); is && Chooses(table, below) {
			return true
		}
	}
	return false
}

// The words of a list are names of keys, or of features of Codex.

// callScalars may have any value.
const callScalars = `
approval_policy compact_prompt developer_instructions hide_agent_reasoning model
model_auto_compact_token_limit model_context_window model_provider model_reasoning_effort
model_reasoning_summary model_reasoning_summary_format model_verbosity sandbox_mode
show_raw_agent_reasoning
`

// callMembers may have any value, and any keys below.
const callMembers = `
approval_policy.granular sandbox_workspace_write.exclude_slash_tmp
sandbox_workspace_write.exclude_tmpdir_env_var sandbox_workspace_write.network_access
sandbox_workspace_write.writable_roots tools.client_search_provider tools.experimental_request_user_input
tools.update_plan tools.view_image tools.web_search tools.web_search_request
`

// callTables may be empty.
const callTables = `features sandbox_workspace_write tools`

// callSwitches may be true or false. They are older names of a feature.
const callSwitches = `experimental_use_exec_command_tool experimental_use_unified_exec_tool`

// freeFeatures may be switched on and off: they start nothing and protect nothing.
const freeFeatures = `
apply_patch_freeform apply_patch_preserve_line_endings async_compaction concurrent_reasoning_summaries
current_time_reminder enable_request_compression fast_mode image_resize_notice personality
reasoning_effort_override remote_compaction_v2 standalone_web_search terminal_visualization_instructions
token_budget ultrafast_mode unified_exec view_image view_image_tool web_search_cached web_search_request
`

// offFeatures may only be switched off: they start something or use the network, and
// protect nothing.
const offFeatures = `
apps browser_use browser_use_external chronicle code_mode code_mode_host computer_use image_generation
in_app_browser js_repl memories multi_agent multi_agent_v2 remote_control remote_plugin shell_snapshot
skill_mcp_dependency_install tool_suggest
`
