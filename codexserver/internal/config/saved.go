package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/text"
)

// savedFile is the part of config.toml that clients show. A missing key is nil.
type savedFile struct {
	savedModel
	SandboxMode           *protocol.SandboxMode `json:"sandbox_mode"`
	SandboxWorkspaceWrite *WorkspaceWrite       `json:"sandbox_workspace_write"`
	Tools                 *savedTools           `json:"tools"`
	Profile               *string               `json:"profile"`
	Profiles              map[string]struct {
		savedModel
		ModelProvider  *string `json:"model_provider"`
		ChatGPTBaseURL *string `json:"chatgpt_base_url"`
	} `json:"profiles"`
}

// savedModel has the keys that may be in a profile and at the top of the file.
type savedModel struct {
	Model            *string                    `json:"model"`
	ApprovalPolicy   *protocol.ApprovalPolicy   `json:"approval_policy"`
	ReasoningEffort  *protocol.ReasoningEffort  `json:"model_reasoning_effort"`
	ReasoningSummary *protocol.ReasoningSummary `json:"model_reasoning_summary"`
	Verbosity        *string                    `json:"model_verbosity"`
}

type savedTools struct {
	WebSearch        *bool `json:"web_search"`
	WebSearchRequest *bool `json:"web_search_request"` // another name of it
	ViewImage        *bool `json:"view_image"`
}

// Saved reads config.toml in home alone, without defaults, profiles or overrides. A missing
// file is an empty one.
func Saved(home string) (*protocol.UserSavedConfig, error) {
	path := filepath.Join(home, "config.toml")
	doc, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if err := adoptSaved(doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var f savedFile
	if err := decode(doc, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f.saved(), nil
}

func (f *savedFile) check() error {
	if f.SandboxMode != nil {
		if err := word("sandbox_mode", *f.SandboxMode, wordsOf(protocol.SandboxModes())); err != nil {
			return err
		}
	}
	if err := f.savedModel.check(""); err != nil {
		return err
	}
	for name, p := range f.Profiles {
		if err := p.check("profiles." + JoinKey(name) + "."); err != nil {
			return err
		}
	}
	return nil
}

func (m savedModel) check(prefix string) error {
	if m.ApprovalPolicy != nil {
		if err := word(prefix+"approval_policy", *m.ApprovalPolicy, wordsOf(protocol.ApprovalPolicies())); err != nil {
			return err
		}
	}
	if m.ReasoningEffort != nil && *m.ReasoningEffort == "" {
		return fmt.Errorf("%smodel_reasoning_effort: is empty", prefix)
	}
	if m.ReasoningSummary != nil {
		if err := word(prefix+"model_reasoning_summary", *m.ReasoningSummary, []string{"auto", "concise", "detailed", "none"}); err != nil {
			return err
		}
	}
	if m.Verbosity != nil {
		return word(prefix+"model_verbosity", *m.Verbosity, []string{"low", "medium", "high"})
	}
	return nil
}

// adoptSaved converts values of today's Codex to those of September 2025. It drops a table
// tools.web_search, which has no equivalent.
func adoptSaved(doc layer) error {
	profiles, _ := doc["profiles"].(layer)
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if profile, ok := profiles[name].(layer); ok {
			if err := adoptApprovals(profile, &Config{}); err != nil {
				return fmt.Errorf("profiles.%s.%w", JoinKey(name), err)
			}
		}
	}
	if tools, ok := doc["tools"].(layer); ok {
		if _, ok := tools["web_search"].(layer); ok {
			delete(tools, "web_search")
		}
	}
	return adoptApprovals(doc, &Config{})
}

func word[S ~string](key string, value S, allowed []string) error {
	if slices.Contains(allowed, string(value)) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", key, string(value), text.Or(allowed))
}

func (f *savedFile) saved() *protocol.UserSavedConfig {
	s := &protocol.UserSavedConfig{
		ApprovalPolicy:        orZero(f.ApprovalPolicy),
		SandboxMode:           orZero(f.SandboxMode),
		Model:                 f.Model,
		ModelReasoningEffort:  orZero(f.ReasoningEffort),
		ModelReasoningSummary: orZero(f.ReasoningSummary),
		ModelVerbosity:        f.Verbosity,
		Profile:               f.Profile,
		Profiles:              make(map[string]protocol.SavedProfile, len(f.Profiles)),
	}
	if w := f.SandboxWorkspaceWrite; w != nil {
		s.SandboxSettings = &protocol.SandboxSettings{
			WritableRoots:       append([]string{}, w.WritableRoots...),
			NetworkAccess:       &w.NetworkAccess,
			ExcludeTmpdirEnvVar: &w.ExcludeTmpdirEnvVar,
			ExcludeSlashTmp:     &w.ExcludeSlashTmp,
		}
	}
	if t := f.Tools; t != nil {
		s.Tools = &protocol.SavedTools{WebSearch: t.WebSearch, ViewImage: t.ViewImage}
		if t.WebSearch == nil {
			s.Tools.WebSearch = t.WebSearchRequest
		}
	}
	for name, p := range f.Profiles {
		s.Profiles[name] = protocol.SavedProfile{
			Model:                 p.Model,
			ModelProvider:         p.ModelProvider,
			ApprovalPolicy:        p.ApprovalPolicy,
			ModelReasoningEffort:  p.ReasoningEffort,
			ModelReasoningSummary: p.ReasoningSummary,
			ModelVerbosity:        p.Verbosity,
			ChatGPTBaseURL:        p.ChatGPTBaseURL,
		}
	}
	return s
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
