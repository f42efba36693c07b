package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// SettingsFile is the name of our own file, beside config.toml: the real Codex
// warns about tables that it does not know.
const SettingsFile = "codex-mcp.toml"

// Settings are the keys of ours, complete with their defaults.
type Settings struct {
	Approvals Approvals `json:"approvals"`
	Limits    Limits    `json:"limits"`
}

// Approvals say how the client is asked and what becomes of the question when
// it does not answer.
type Approvals struct {
	// OnUnsupported is for clients without elicitation: "deny" (default),
	// "fail-call" or "approve-safe-only".
	OnUnsupported string `json:"on_unsupported"`
	// OnError is for an error as the answer: "deny" (default) or "abort".
	OnError string `json:"on_error"`
	// OnTimeout is for no answer in time: "deny" (default) or "abort".
	OnTimeout string `json:"on_timeout"`
	// OnCancel is for the answer "cancel": "abort" (default) or "deny".
	OnCancel string `json:"on_cancel"`
	// Timeout is how long an answer is waited for, 10 minutes unless set;
	// 0 = for ever.
	Timeout Duration `json:"timeout"`
	// Schema of the question: "empty" (default), "decision" or "auto".
	Schema string `json:"schema"`
	// LegacyFlat takes answers with a top-level decision, true unless set.
	LegacyFlat bool `json:"legacy_flat"`
	// MaxPending caps the open questions, 32 unless set.
	MaxPending int `json:"max_pending"`
}

// Limits bound one turn of the native engine. What reaches its limit fails.
type Limits struct {
	// ModelRequests is 1,000 unless set; 0 = no limit.
	ModelRequests int `json:"model_requests"`
	// Tokens of all requests together, as the provider counts them; 0, the
	// default, = no limit.
	Tokens int64 `json:"tokens"`
	// WallTime from the start of the turn to its end; 0, the default, = no limit.
	WallTime Duration `json:"wall_time"`
	// ResponseBytes of one model response, 64 MiB unless set.
	ResponseBytes int64 `json:"response_bytes"`
	// ToolCalls in one model response, 128 unless set.
	ToolCalls int `json:"tool_calls"`
}

// Duration is written as in Go, "90s" or "10m"; 0 may be a number.
type Duration time.Duration

// UnmarshalJSON implements the reading of settings.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		if string(b) != "0" {
			return fmt.Errorf(`want a duration such as "90s" or "10m"`)
		}
		text = "0"
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf(`want a duration such as "90s" or "10m"`)
	}
	*d = Duration(v)
	return nil
}

// ours are the tables of our file.
var ours = []string{"approvals", "auth", "limits", "sandbox", "session_tools"}

// Ours says whether an override's key is one of our settings, which are never
// handed to an engine as configuration of Codex.
func Ours(key string) bool {
	head, _, _ := strings.Cut(key, ".")
	return slices.Contains(ours, strings.TrimSpace(head))
}

// LoadSettings reads codex-mcp.toml in home and lays those of the overrides
// over it that are ours. A key that is not known is an error: it may be a
// misspelt limit.
func LoadSettings(home string, overrides map[string]any) (*Settings, error) {
	path := filepath.Join(home, SettingsFile)
	merged, err := readFile(path)
	if err != nil {
		return nil, err
	}
	mine := layer{}
	for k, v := range overrides {
		if Ours(k) {
			mine[k] = v
		}
	}
	flags, err := unflatten(mine)
	if err != nil {
		return nil, err
	}
	merge(merged, flags)
	s := &Settings{
		Approvals: Approvals{
			OnUnsupported: "deny",
			OnError:       "deny",
			OnTimeout:     "deny",
			OnCancel:      "abort",
			Timeout:       Duration(10 * time.Minute),
			Schema:        "empty",
			LegacyFlat:    true,
			MaxPending:    32,
		},
		Limits: Limits{ModelRequests: 1000, ResponseBytes: 64 << 20, ToolCalls: 128},
	}
	if err := decode(merged, s, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", SettingsFile, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", SettingsFile, err)
	}
	return s, nil
}

func (s *Settings) check() error {
	a := s.Approvals
	for _, word := range []struct {
		key, value string
		allowed    []string
	}{
		{"on_unsupported", a.OnUnsupported, []string{"deny", "fail-call", "approve-safe-only"}},
		{"on_error", a.OnError, []string{"deny", "abort"}},
		{"on_timeout", a.OnTimeout, []string{"deny", "abort"}},
		{"on_cancel", a.OnCancel, []string{"abort", "deny"}},
		{"schema", a.Schema, []string{"empty", "decision", "auto"}},
	} {
		if !slices.Contains(word.allowed, word.value) {
			return fmt.Errorf("approvals.%s: %q is not one of %q", word.key, word.value, word.allowed)
		}
	}
	if a.MaxPending < 1 {
		return fmt.Errorf("approvals.max_pending: want at least 1")
	}
	l := s.Limits
	if l.ModelRequests < 0 || l.Tokens < 0 {
		return fmt.Errorf("limits: want no negative limit")
	}
	if l.ResponseBytes < 1 || l.ToolCalls < 1 {
		return fmt.Errorf("limits: response_bytes and tool_calls are at least 1")
	}
	return nil
}
