package config

// theirKeys are keys of Codex, of September 2025 and later, that the native engine ignores
// and need not warn about.
var theirKeys = []string{
	"analytics", "audio", "background_terminal_max_timeout", "browser_use", "chatgpt_base_url",
	"check_for_update_on_startup", "cli_auth_credentials_store", "commit_attribution", "desktop",
	"disable_response_storage", "experimental_instructions_file", "experimental_resume",
	"experimental_use_exec_command_tool", "experimental_use_rmcp_client", "experimental_use_unified_exec_tool",
	"features", "feedback", "file_opener", "forced_chatgpt_workspace_id", "forced_login_method", "ghost_snapshot",
	"history", "instructions", "log_dir", "marketplaces", "mcp_oauth_callback_port", "mcp_oauth_callback_url",
	"mcp_oauth_credentials_store", "mcp_optional_startup_grace_ms", "memories", "model_catalog_json",
	"model_max_output_tokens", "model_reasoning_summary_format", "notice", "oss_provider", "otel", "personality",
	"plan_mode_reasoning_effort", "plugins", "preferred_auth_method", "profile", "profiles", "projects",
	"review_model", "service_tier", "shell_environment_policy", "skills", "sqlite_home",
	"suppress_unstable_features_warning", "thread_unload_delay_secs", "tool_output_token_limit", "tui", "windows",
	"windows_wsl_setup_acknowledged", "zsh_path",
}

// theirServerKeys are such keys of an MCP server.
var theirServerKeys = []string{
	"http_headers_helper", "name", "oauth", "oauth_resource", "required", "scopes", "supports_parallel_tool_calls",
}

// decidesElsewhere returns, for some keys of today's Codex that the native engine does not
// read, what decides instead, and "" for other keys.
func decidesElsewhere(key string) string {
	switch key {
	case "approvals_reviewer", "auto_review":
		return "the user is asked"
	case "default_permissions", "permissions":
		return "sandbox_mode decides what commands may touch"
	case "hooks":
		return "no hook runs"
	}
	return ""
}
