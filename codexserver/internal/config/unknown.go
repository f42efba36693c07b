package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

// document is what config.toml, -c and a call's config may have.
type document struct {
	Config
	Profiles map[string]Config `json:"profiles"`
	Features map[string]bool   `json:"features"`
}

var documentType = reflect.TypeFor[document]()

// known returns the keys of a table of config.toml that need no warning. codex is true where those do not that
// only Codex reads.
func known(table reflect.Type, codex bool) []string {
	names := members(table)
	switch table {
	case documentType, reflect.TypeFor[Config]():
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
func knownTop(key string) bool { return slices.Contains(known(documentType, true), key) }

// unknownKeys calls note with the path of each key, in v and below, that is not among the known ones of its table.
// meant is a known key that it resembles, or "". t is the type of v.
func unknownKeys(v any, t reflect.Type, path []string, codex bool, note func(meant string, path []string)) {
	below := func(key string, v any, t reflect.Type) {
		if t != nil && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			unknownKeys(v, t, append(slices.Clip(path), key), codex, note)
		}
	}
	if list, is := v.([]any); is && t.Kind() == reflect.Slice {
		for i, element := range list {
			below(strconv.Itoa(i), element, t.Elem())
		}
	}
	table, _ := v.(layer)
	if len(table) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(table))
	if t.Kind() == reflect.Struct {
		names := known(t, codex)
		candidates := names
		if t == documentType {
			candidates = slices.Concat(names, ourTables)
		}
		for _, key := range keys {
			if !slices.Contains(names, key) {
				note(text.Nearest(key, slices.Values(candidates)), append(slices.Clip(path), key))
			}
		}
	}
	for _, key := range keys {
		below(key, table[key], typeAt(t, []string{key}))
	}
}

// decodeKnown decodes the value at path, and fails for a key that no field has.
func decodeKnown(path []string, v any, dst reflect.Value) (err error) {
	unknownKeys(v, dst.Type(), path, false, func(meant string, path []string) {
		if err == nil {
			err = unknownKey(meant, path)
		}
	})
	if err == nil {
		err = decodeValue(path, v, dst)
	}
	return err
}

func unknownKey(meant string, path []string) error {
	if meant != "" {
		return keyErrorf(path, "unknown key; do you mean %s?", meant)
	}
	return keyErrorf(path, "unknown key")
}

// UnknownToCodex returns those of the keys that [Layers].Unknown is called with that Codex does not
// know either.
func UnknownToCodex(home string, overrides map[string]any) (found []string) {
	noteUnknown(filepath.Join(home, "config.toml"), overrides, true, func(key string) { found = append(found, key) })
	return found
}

// noteUnknown calls note with the unknown keys of the file at path, and then of the overrides, each with its
// place. The text also says what decides instead of the key, or which one was meant.
func noteUnknown(path string, overrides layer, codex bool, note func(key string)) {
	in := func(l layer, place func(key []string) string) {
		unknownKeys(l, documentType, nil, codex, func(meant string, key []string) {
			why, is := decidesElsewhere[key[len(key)-1]]
			if is {
				why = ": " + why
			} else if meant != "" {
				why = ": do you mean " + meant + "?"
			}
			note(place(key) + JoinKey(key...) + why)
		})
	}
	file, _ := readFile(path) // Load reports the error
	in(file, func(key []string) string { return fmt.Sprintf("%s:%d: ", path, keyLine(path, key)) })
	in(overrides, func([]string) string { return "-c " })
}

// decidesElsewhere says, for some keys of Codex that the native engine does not read, what decides instead.
var decidesElsewhere = map[string]string{
	"approvals_reviewer": "the user is asked", "auto_review": "the user is asked", "hooks": "no hook runs",
	"default_permissions": "sandbox_mode decides what commands may touch", "permissions": "sandbox_mode decides what commands may touch",
}

// workspaceTable has the keys of the sandbox mode workspace-write.
const workspaceTable = "sandbox_workspace_write"

// guardedKeys say what is asked, and what commands may touch.
var guardedKeys = []string{"approval_policy", "sandbox_mode", workspaceTable, "approvals", "calls", "sandbox", ShellEnvironmentKey}

// guardedOfOurs are such keys of ours, which other names may mean.
var guardedOfOurs = []string{"calls.full_access", "calls.locked_arguments", "calls.trusted"}

// misspelt returns an error for the first of the overrides that is a typo away from one of guardedKeys or of
// the keys of workspaceTable: who wrote it would believe that it counts.
func misspelt(overrides layer) (err error) {
	unknownKeys(overrides, documentType, nil, true, func(meant string, path []string) {
		if len(path) == 1 && !slices.Contains(guardedKeys, meant) {
			if meant = nearestOfOurs(path[0], new(Settings).keys()); !slices.Contains(guardedOfOurs, meant) {
				meant = ""
			}
		}
		guarded := len(path) == 1 || path[0] == workspaceTable || path[0] == "profiles" && slices.Contains(guardedKeys, meant)
		if err == nil && guarded && meant != "" {
			err = fmt.Errorf("-c %w", unknownKey(meant, path))
		}
	})
	return err
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
const ignoredServerKeys = `http_headers_helper name oauth oauth_resource required scopes supports_parallel_tool_calls`

// codexKeys are the keys of the config.toml of Codex 0.42 to 0.169, other than those of [Config] and
// ignoredKeys.
const codexKeys = `
agents allow_login_shell allow_symlinked_codex_home apps apps_mcp_product_sku approvals_reviewer auto_review cloud
computer_use default_permissions disable_paste_burst experimental_compact_prompt_file experimental_environment
experimental_realtime_start_instructions experimental_realtime_webrtc_call_base_url
experimental_realtime_ws_backend_prompt experimental_realtime_ws_base_url experimental_realtime_ws_model
experimental_realtime_ws_startup_context experimental_sandbox_command_assessment experimental_thread_store
experimental_thread_store_endpoint experimental_use_freeform_apply_patch goals hooks include_apps_instructions
include_collaboration_mode_instructions include_environment_context include_environment_context_time
include_permissions_instructions js_repl_node_module_dirs js_repl_node_path mcp_enterprise_managed_auth
model_auto_compact_token_limit_scope model_post_turn_compact_threshold_percent orchestrator permissions
project_root_markers realtime responses_api_metadata sandbox_permissions tool_suggest
`
