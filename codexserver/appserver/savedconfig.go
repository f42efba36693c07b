package appserver

import (
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// savedConfig returns the part of the configuration that clients of September 2025 know.
// It leaves out values of other types than they expect.
func savedConfig(config map[string]stdjson.RawMessage) *protocol.UserSavedConfig {
	s := &protocol.UserSavedConfig{
		Model:          optional[string](config["model"]),
		ModelVerbosity: optional[string](config["model_verbosity"]),
		Profile:        optional[string](config["profile"]),
		Profiles:       map[string]protocol.SavedProfile{},
	}
	for key, to := range map[string]any{
		"approval_policy": &s.ApprovalPolicy, "sandbox_mode": &s.SandboxMode,
		"model_reasoning_effort": &s.ModelReasoningEffort, "model_reasoning_summary": &s.ModelReasoningSummary,
	} {
		if raw := config[key]; isString(raw) {
			_ = json.Unmarshal(raw, to) // cannot fail for a string
		}
	}
	if t := table(config[workspaceTable]); t != nil {
		no := func(b *bool) *bool {
			if b == nil {
				return new(bool)
			}
			return b
		}
		s.SandboxSettings = &protocol.SandboxSettings{
			WritableRoots: []string{}, NetworkAccess: no(optional[bool](t["network_access"])),
			ExcludeTmpdirEnvVar: no(optional[bool](t["exclude_tmpdir_env_var"])),
			ExcludeSlashTmp:     no(optional[bool](t["exclude_slash_tmp"])),
		}
		if roots := optional[[]string](t["writable_roots"]); roots != nil {
			s.SandboxSettings.WritableRoots = *roots
		}
	}
	if t := table(config["tools"]); t != nil {
		s.Tools = &protocol.SavedTools{WebSearch: optional[bool](t["web_search"]), ViewImage: optional[bool](t["view_image"])}
	}
	for name, raw := range table(config["profiles"]) {
		p := table(raw)
		s.Profiles[name] = protocol.SavedProfile{
			Model:                 optional[string](p["model"]),
			ModelProvider:         optional[string](p["model_provider"]),
			ApprovalPolicy:        optional[protocol.ApprovalPolicy](p["approval_policy"]),
			ModelReasoningEffort:  optional[protocol.ReasoningEffort](p["model_reasoning_effort"]),
			ModelReasoningSummary: optional[protocol.ReasoningSummary](p["model_reasoning_summary"]),
			ModelVerbosity:        optional[string](p["model_verbosity"]),
			ChatGPTBaseURL:        optional[string](p["chatgpt_base_url"]),
		}
	}
	return s
}

// optional reads a JSON value. It returns nil if the value is missing, null or of another
// type.
func optional[T any](raw stdjson.RawMessage) *T {
	var v *T
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

func table(raw stdjson.RawMessage) map[string]stdjson.RawMessage {
	if t := optional[map[string]stdjson.RawMessage](raw); t != nil {
		return *t
	}
	return nil
}

func isString(raw stdjson.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }
