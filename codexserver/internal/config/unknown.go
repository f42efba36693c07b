package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

// document is what config.toml, -c and a call's config may have.
type document struct {
	Config
	Profiles map[string]Config `json:"profiles"`
	Features map[string]bool   `json:"features"`
}

// documentFields are the keys of a document, which each conversation reads.
var documentFields = sync.OnceValue(func() map[string]reflect.Type { return fieldsIn(reflect.TypeFor[document]()) })

// known returns the keys of a table of config.toml that need no warning. codex is true where those do not that
// only Codex reads.
func known(table reflect.Type, codex bool) (names []string) {
	names = slices.Sorted(maps.Keys(fieldsOf(table)))
	switch table {
	case reflect.TypeFor[document](), reflect.TypeFor[Config]():
		if names = append(names, strings.Fields(ignoredKeys)...); codex {
			names = append(names, strings.Fields(codexKeys)...)
		}
	case reflect.TypeFor[Tools]():
		names = append(names, "web_search_request")
	case reflect.TypeFor[MCPServer]():
		names = append(names, strings.Fields(ignoredServerKeys)...)
	}
	return names
}

// knownTop reports whether Codex or the native engine knows a top key of config.toml.
func knownTop(key string) bool { return slices.Contains(known(reflect.TypeFor[document](), true), key) }

// unknown is the error of a key that is not among the known ones of its table.
type unknown struct {
	meant string // a known key that it resembles, or ""
	path  []string
}

// Error implements error.
func (u unknown) Error() string {
	words := JoinKey(u.path...) + ": unknown key"
	if u.meant != "" {
		words += "; do you mean " + u.meant + "?"
	}
	return words
}

// unknownKeys returns the unknown keys in v, which has the type t, and below.
func unknownKeys(v any, t reflect.Type, path []string, codex bool) (found []unknown) {
	below := func(key string, v any, t reflect.Type) {
		if t != nil && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			found = append(found, unknownKeys(v, t, append(slices.Clip(path), key), codex)...)
		}
	}
	if list, is := v.([]any); is && t.Kind() == reflect.Slice {
		for i, element := range list {
			below(strconv.Itoa(i), element, t.Elem())
		}
	}
	table, _ := v.(layer)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if is := typeAt(t, key); is != nil {
			below(key, table[key], is)
			continue
		}
		if t.Kind() != reflect.Struct {
			continue
		}
		names := known(t, codex)
		if slices.Contains(names, key) {
			continue
		}
		if t == reflect.TypeFor[document]() {
			names = append(names, ourTables...)
		}
		found = append(found, unknown{text.Nearest(key, slices.Values(names)), append(slices.Clip(path), key)})
	}
	return found
}

// decodeKnown decodes the value at path, and fails for a key that no field has.
func decodeKnown(path []string, v any, dst reflect.Value) error {
	for _, u := range unknownKeys(v, dst.Type(), path, false) {
		return u
	}
	return decodeValue(path, v, dst)
}

// Unknown returns the keys of config.toml and of the overrides that have no effect on the native engine, or that Codex
// does not know either, each with its place, the file and the line or -c, and what decides instead or was meant. Such a
// key may be misspelt, or belong to a feature of Codex alone.
func Unknown(home string, overrides map[string]any, codex bool) (found []string) {
	path := filepath.Join(home, "config.toml")
	in := func(l layer, place func(key []string) string) {
		for _, u := range unknownKeys(l, reflect.TypeFor[document](), nil, codex) {
			why := decidesElsewhere[u.path[len(u.path)-1]]
			if why != "" {
				why = ": " + why
			} else if u.meant != "" {
				why = ": do you mean " + u.meant + "?"
			}
			found = append(found, place(u.path)+JoinKey(u.path...)+why)
		}
	}
	file, _ := ReadFile(path) // Load reports the error
	in(file, func(key []string) string { return fmt.Sprintf("%s:%d: ", path, keyLine(path, key)) })
	in(overrides, func([]string) string { return "-c " })
	return found
}

// decidesElsewhere says, for some keys of Codex that the native engine does not read, what decides instead.
var decidesElsewhere = map[string]string{
	"approvals_reviewer": "the user is asked", "auto_review": "the user is asked", "hooks": "no hook runs",
}

// workspaceTable has the keys of the sandbox mode workspace-write.
const workspaceTable = "sandbox_workspace_write"

// guardedKeys are the keys of Codex that say what is asked, and what commands may touch.
var guardedKeys = []string{"approval_policy", "approvals_reviewer", "default_permissions", "permissions",
	"sandbox_mode", workspaceTable, "shell_environment_policy"}

// guardedOfOurs are such keys of ours, which other names of -c may mean.
var guardedOfOurs = []string{"approvals", "calls", "calls.full_access", "calls.locked_arguments", "calls.trusted",
	"sandbox"}

// misspelt returns an error for the first key of Codex's on the command line, in config.toml or in the file of a profile
// in home that is a typo away from one of guardedKeys or of the keys of their tables, or is one of these outside of its
// table: who wrote it would believe that it counts. On the command line it may also mean one of guardedOfOurs. What cannot be
// read is left to Load, which looks again at what it reads: a file may have changed.
func misspelt(home string, flags layer) error {
	if err := guarded(flags, true); err != nil {
		return &FlagError{err}
	}
	files := []string{filepath.Join(home, "config.toml")}
	names, _ := Profiles(home)
	for _, name := range names {
		files = append(files, profilePath(home, name))
	}
	for _, file := range files {
		keys, _ := ReadFile(file)
		if err := guarded(keys, false); err != nil {
			return locate(err, nil, nil, place{file: file})
		}
	}
	return nil
}

// guarded returns an error for the first such key of a layer. It may mean one of guardedOfOurs if ours is true.
func guarded(l layer, ours bool) error {
	for _, u := range unknownKeys(l, reflect.TypeFor[document](), nil, true) {
		key := u.path
		if key[0] == "profiles" && len(key) > 2 {
			key = key[2:]
		}
		switch inTable := text.Nearest(key[0], slices.Values(known(reflect.TypeFor[WorkspaceWrite](), true))); {
		case len(key) > 1 && u.meant != "" && slices.Contains(guardedKeys, key[0]), len(key) == 1 &&
			slices.Contains(guardedKeys, u.meant):
			return u
		case len(key) == 1 && inTable != "":
			return unknown{workspaceTable + "." + inTable, u.path}
		case len(u.path) == 1 && ours:
			if meant := nearestOfOurs(key[0], new(Settings).keys()); slices.Contains(guardedOfOurs, meant) {
				return unknown{meant, u.path}
			}
		}
	}
	return nil
}

// The words of a list are names of keys.

// ignoredKeys are keys of Codex, of September 2025 and later, that the native engine ignores
// and need not warn about.
const ignoredKeys = `
analytics audio background_terminal_max_timeout browser_use chatgpt_base_url check_for_update_on_startup
cli_auth_credentials_store commit_attribution desktop disable_response_storage experimental_instructions_file
experimental_resume experimental_use_exec_command_tool experimental_use_rmcp_client
experimental_use_unified_exec_tool features feedback file_opener forced_chatgpt_workspace_id forced_login_method
ghost_snapshot history instructions log_dir marketplaces mcp_oauth_callback_port mcp_oauth_callback_url
mcp_oauth_credentials_store mcp_optional_startup_grace_ms memories model_catalog_json model_max_output_tokens
model_reasoning_summary_format notice oss_provider otel personality plan_mode_reasoning_effort plugins
preferred_auth_method profile profiles projects review_model service_tier shell_environment_policy skills
sqlite_home suppress_unstable_features_warning thread_unload_delay_secs tool_output_token_limit tui windows
windows_wsl_setup_acknowledged zsh_path
`

// ignoredServerKeys are such keys of an MCP server.
const ignoredServerKeys = `http_headers_helper name oauth oauth_resource scopes supports_parallel_tool_calls`

// codexKeys are the keys of the config.toml of Codex 0.42 to 0.171, other than those of [Config] and
// ignoredKeys.
const codexKeys = `
agents allow_login_shell allow_symlinked_codex_home apps apps_mcp_product_sku approvals_reviewer auto_review cloud
code_mode computer_use disable_paste_burst experimental_compact_prompt_file experimental_environment
experimental_realtime_start_instructions experimental_realtime_webrtc_call_base_url
experimental_realtime_ws_backend_prompt experimental_realtime_ws_base_url experimental_realtime_ws_model
experimental_realtime_ws_startup_context experimental_sandbox_command_assessment experimental_thread_store
experimental_thread_store_endpoint experimental_use_freeform_apply_patch goals hooks include_apps_instructions
include_collaboration_mode_instructions include_environment_context include_environment_context_time
include_permissions_instructions js_repl_node_module_dirs js_repl_node_path mcp_enterprise_managed_auth
model_auto_compact_token_limit_scope model_post_turn_compact_threshold_percent orchestrator
realtime responses responses_api_metadata rollout_trace sandbox_permissions tool_suggest
`
