package appserver

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// startParams returns the configuration of a conversation as parameters of today's Codex.
// Settings that it no longer takes are translated if that keeps their meaning. Others are
// an error, which says what to write instead.
//
// Over are the keys that the app-server was started with, which win over a profile's.
func startParams(cfg protocol.Config, v version, codexHome string, over map[string]stdjson.RawMessage) (threadParams, error) {
	p := threadParams{ThreadParams: apptypes.ThreadParams{
		Model: cfg.Model, Cwd: cfg.Cwd, Sandbox: string(cfg.Sandbox), BaseInstructions: cfg.BaseInstructions,
		ApprovalPolicy: string(cfg.ApprovalPolicy), DeveloperInstructions: cfg.DeveloperInstructions,
	}}
	if cfg.Cwd != "" {
		if info, err := os.Stat(cfg.Cwd); err != nil || !info.IsDir() {
			return p, configErrorf("cwd %q is not a folder", cfg.Cwd)
		}
	}
	keys := map[string]stdjson.RawMessage{}
	if err := flatten(keys, "", cfg.Overrides); err != nil {
		return p, configErrorf("config: %w", err)
	}
	name := cfg.Profile
	if raw, ok := keys["profile"]; ok {
		delete(keys, "profile")
		if name == "" && json.Unmarshal(raw, &name) != nil {
			return p, configErrorf("config: profile is not a string")
		}
	}
	if name != "" {
		profile, err := readProfile(codexHome, name)
		if err != nil {
			return p, configErrorf("profile %q: %w", name, err)
		}
		for key := range over {
			maps.DeleteFunc(profile, func(k string, _ stdjson.RawMessage) bool { return k == key || strings.HasPrefix(k, key+".") })
		}
		maps.Copy(profile, keys) // the caller's keys win
		keys = profile
	}
	if cfg.CompactPrompt != nil { // wins over the key in the caller's config
		raw, err := json.Marshal(*cfg.CompactPrompt, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return p, configErrorf("compact-prompt: %w", err)
		}
		keys["compact_prompt"] = stdjson.RawMessage(raw)
	}
	return p, p.take(keys, v)
}

// removed are keys that today's Codex ignores.
var removed = []string{"include_plan_tool", "include_apply_patch_tool"}

// take moves configuration keys to the parameters that today's Codex has for them.
func (p *threadParams) take(config map[string]stdjson.RawMessage, v version) error {
	for _, key := range removed {
		delete(config, key)
	}
	// Today's Codex takes the policy untrusted as a parameter, but not as a key.
	if raw, ok := config["approval_policy"]; ok {
		var word string
		if json.Unmarshal(raw, &word) == nil {
			delete(config, "approval_policy")
			if p.ApprovalPolicy == "" {
				p.ApprovalPolicy = word
			}
		}
	}
	p.ApprovalPolicy = string(policyWord(protocol.ApprovalPolicy(p.ApprovalPolicy)))
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if strings.HasSuffix(key, ".wire_api") && string(config[key]) == `"chat"` {
			return configErrorf("config: %s: Codex %s has no wire API %q; write %q for a provider that has it, or use the native engine (--engine native)", key, v, "chat", "responses")
		}
	}
	if len(config) > 0 {
		p.Config = config
	}
	return nil
}

// policyWord returns an approval policy as Codex names it, which has on-request in place of
// on-failure.
func policyWord(policy protocol.ApprovalPolicy) protocol.ApprovalPolicy {
	if policy == protocol.ApprovalOnFailure {
		return protocol.ApprovalOnRequest
	}
	return policy
}

func sandboxOf(s protocol.SandboxPolicy) *apptypes.SandboxPolicy {
	network := stdjson.RawMessage("false")
	if s.NetworkAccess {
		network = stdjson.RawMessage("true")
	}
	switch s.Mode {
	case protocol.SandboxDangerFullAccess:
		return &apptypes.SandboxPolicy{Type: apptypes.SandboxPolicyDangerFullAccess}
	case protocol.SandboxWorkspaceWrite:
		return &apptypes.SandboxPolicy{
			Type: apptypes.SandboxPolicyWorkspaceWrite, NetworkAccess: network, WritableRoots: s.WritableRoots,
			ExcludeTmpdirEnvVar: s.ExcludeTmpdirEnvVar, ExcludeSlashTmp: s.ExcludeSlashTmp,
		}
	case protocol.SandboxReadOnly:
		return &apptypes.SandboxPolicy{Type: apptypes.SandboxPolicyReadOnly, NetworkAccess: stdjson.RawMessage("false")}
	}
	return nil
}

func inputItems(items []protocol.InputItem) ([]apptypes.Input, error) {
	out := make([]apptypes.Input, 0, len(items))
	for i, it := range items {
		var w apptypes.Input
		switch it.Type {
		case protocol.InputText:
			w.Type, w.Text = apptypes.UserInputText, &it.Text
		case protocol.InputImage:
			w.Type, w.URL = apptypes.UserInputImage, &it.ImageURL
		case protocol.InputLocalImage:
			w.Type, w.Path = apptypes.UserInputLocalImage, &it.Path
		default:
			return nil, fmt.Errorf("input item %d has the unknown type %q", i, it.Type)
		}
		out = append(out, w)
	}
	return out, nil
}

// readProfile returns the keys of a profile of Codex, dotted.
func readProfile(codexHome, name string) (map[string]stdjson.RawMessage, error) {
	table, err := config.Profile(codexHome, name)
	if err != nil {
		return nil, err
	}
	nested := make(map[string]stdjson.RawMessage, len(table))
	for key, value := range table {
		raw, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		nested[key] = raw
	}
	flat := map[string]stdjson.RawMessage{}
	return flat, flatten(flat, "", nested)
}

// flatten writes nested tables as dotted keys, so that one set of keys can override
// another. It keeps a table as it is if a name in it has a dot or a quote.
func flatten(dst map[string]stdjson.RawMessage, prefix string, src map[string]stdjson.RawMessage) error {
	for key, raw := range src {
		path := prefix + key
		var table map[string]stdjson.RawMessage
		if len(raw) > 0 && raw[0] == '{' {
			if err := json.Unmarshal(raw, &table); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if len(table) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(table)), func(k string) bool { return strings.ContainsAny(k, `."`) }) {
			dst[path] = raw
			continue
		}
		if err := flatten(dst, path+".", table); err != nil {
			return err
		}
	}
	return nil
}

func configErrorf(format string, args ...any) error {
	return &engine.ConfigError{Err: fmt.Errorf(format, args...)}
}
