package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// defaults are the overrides that the app-server does not take on its command line. They
// hold for each conversation that does not set them itself.
type defaults struct {
	profile string
	policy  string
	keys    map[string]stdjson.RawMessage // all overrides, flat; they win over a profile
	// disabled are the names of MCP servers. Codex does not start with a key of an unknown
	// server, so the key is sent with each conversation.
	disabled []string
}

// commandLine returns the arguments of the app-server, and the overrides that cannot be
// among them.
func commandLine(overrides map[string]any) ([]string, defaults, error) {
	codexs := maps.Clone(overrides)
	maps.DeleteFunc(codexs, func(key string, _ any) bool { return config.Ours(key) })
	keys, err := dotted(codexs)
	d := defaults{keys: keys}
	if err != nil {
		return nil, d, fmt.Errorf("overrides: %w", err)
	}
	var rest threadParams
	passed := maps.Clone(d.keys)
	if raw, ok := passed["profile"]; ok {
		delete(passed, "profile")
		if json.Unmarshal(raw, &d.profile) != nil {
			return nil, d, errors.New("override profile: not a string")
		}
	}
	rest.take(passed)
	d.disabled = takeDisabled(passed)
	d.policy = rest.ApprovalPolicy
	args := []string{"app-server"}
	for _, key := range slices.Sorted(maps.Keys(passed)) {
		args = append(args, "-c", key+"="+tomlOf(jsontext.Value(passed[key])))
	}
	return args, d, nil
}

// tomlOf writes a JSON value as an inline TOML value.
func tomlOf(v jsontext.Value) string {
	switch v.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(v, &members) != nil {
			return "{}"
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(members)) {
			name, _ := jsontext.AppendQuote(nil, k) // k was decoded, so it is valid
			parts = append(parts, string(name)+" = "+tomlOf(members[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case '[':
		var elements []jsontext.Value
		if json.Unmarshal(v, &elements) != nil {
			return "[]"
		}
		parts := make([]string, len(elements))
		for i, el := range elements {
			parts[i] = tomlOf(el)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return string(v) // JSON and TOML write strings, numbers and booleans alike
}

// params returns the parameters that start a thread, or that resume the thread of an id.
// The defaults do not apply to a resumed thread, which keeps its own settings.
func (e *Engine) params(ctx context.Context, cfg protocol.Config, c *child, id string) (threadParams, error) {
	isNew, folder := id == "", cfg.Cwd
	var s apptypes.Thread
	if !isNew {
		var err error
		if s, err = c.read(ctx, id); err != nil {
			c.log.Debug("codex: the working folder of a thread is unknown", "thread", id, "error", err) // thread/resume reports the error
		}
		folder = cmp.Or(folder, s.Cwd)
	}
	layers, err := c.configuration(ctx, folder)
	if err != nil {
		return threadParams{}, err
	}
	file := layers.keys
	var call map[string]stdjson.RawMessage // the call's shell_environment_policy
	if cfg.FromCall {
		if cfg.Overrides, call, err = splitCall(cfg.Overrides, file); err != nil {
			return threadParams{}, err
		}
	}
	if cfg.Profile == "" && isNew {
		if _, own := cfg.Overrides["profile"]; !own {
			cfg.Profile = e.defaults.profile
		}
	}
	p, err := startParams(cfg, c.home, e.defaults.keys)
	if err != nil {
		return p, err
	}
	if p.ApprovalPolicy == "" && isNew {
		p.ApprovalPolicy = string(policyWord(protocol.ApprovalPolicy(c.policy)))
	}
	if err := p.choose(&cfg, file); err != nil {
		return p, err
	}
	if p.base, err = e.configured(c, &layers, folder); err != nil {
		return p, err
	}
	if p.now, err = p.grants(&layers, folder); err != nil {
		return p, err
	}
	if !isNew {
		p.restore(&s, &layers)
	}
	if err := p.openRoots(cfg.FromCall, c.home); err != nil {
		return p, err
	}
	p.strip()
	if e.options.AskUser {
		p.ApprovalsReviewer = byUser
	}
	if err := e.setServers(c, file, folder, &p); err != nil {
		return p, err
	}
	if err := p.restrict(engine.OriginOf(ctx), file, call); err != nil {
		return p, err
	}
	c.learn(file, p.Config)
	if c.version.Less(keepsSnapshot) {
		p.Config["features.shell_snapshot"] = stdjson.RawMessage("false")
	}
	if !cfg.ReadOnly {
		return p, nil
	}
	return p, p.keepToReading(file)
}

// configured returns what the configuration gives a conversation in a folder whose call chooses
// nothing. A sandbox that cannot be judged counts as the narrowest.
func (e *Engine) configured(c *child, file *configuration, folder string) (g box.Grant, err error) {
	p, err := startParams(protocol.Config{Profile: e.defaults.profile}, c.home, e.defaults.keys)
	if err != nil {
		return g, err
	}
	g, err = p.grants(file, folder)
	if err != nil {
		p.Sandbox = apptypes.SandboxModeReadOnly
		g, err = p.grants(file, folder)
	}
	g.Policy = p.policyIn(c, file, folder)
	return g, err
}

func (e *Engine) home() (string, error) {
	if e.options.CodexHome != "" {
		return filepath.Abs(e.options.CodexHome)
	}
	return config.Home(os.Getenv)
}

// startParams returns the configuration of a conversation as parameters of today's Codex.
// Settings that it no longer takes are translated if that keeps their meaning. Others are
// an error, which says what to write instead.
//
// Over are the keys that the app-server was started with, which win over a profile's.
func startParams(cfg protocol.Config, codexHome string, over map[string]stdjson.RawMessage) (threadParams, error) {
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
		tables, err := config.Profile(codexHome, name)
		if err != nil {
			return p, configErrorf("profile %q: %w", name, err)
		}
		profile, err := dotted(tables)
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
	p.take(keys)
	return p, nil
}

// removed are keys that today's Codex ignores.
var removed = []string{"include_plan_tool", "include_apply_patch_tool"}

// take moves configuration keys to the parameters that today's Codex has for them.
func (p *threadParams) take(config map[string]stdjson.RawMessage) {
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
	if len(config) > 0 {
		p.Config = config
	}
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

// dotted returns the keys of nested tables, dotted.
func dotted(tables map[string]any) (map[string]stdjson.RawMessage, error) {
	nested := make(map[string]stdjson.RawMessage, len(tables))
	for key, value := range tables {
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

// choose adds the choices of a call that today's Codex takes as configuration keys. File
// is Codex's configuration for the working folder.
func (p *threadParams) choose(cfg *protocol.Config, file map[string]stdjson.RawMessage) error {
	keys := map[string]any{}
	if cfg.Effort != "" {
		keys["model_reasoning_effort"] = cfg.Effort
	}
	if cfg.WebSearch != nil {
		mode := p.setting(file, "web_search")
		switch word := value[string](mode); {
		case !*cfg.WebSearch:
			keys["web_search"] = "disabled"
		case word == "disabled":
			return configErrorf(`argument /web-search: the configuration has web_search = "disabled"`)
		case word == "":
			keys["web_search"] = "live"
		}
	}
	return p.set(keys)
}

const workspaceTable = "sandbox_workspace_write"

// setting returns the value that a key will have in the conversation. The path is a key of
// the top level, or a table and a key in it.
func (p *threadParams) setting(file map[string]stdjson.RawMessage, path ...string) stdjson.RawMessage {
	key := path[0]
	if len(path) > 1 {
		key += "." + path[1]
	}
	if raw, ok := p.Config[key]; ok {
		return raw
	}
	if len(path) == 1 {
		return file[path[0]]
	}
	if raw, ok := table(p.Config[path[0]])[path[1]]; ok { // a table that was not flattened
		return raw
	}
	return table(file[path[0]])[path[1]]
}

// openRoots checks the writable folders that a call names, and the working folder.
//
// Codex resolves the name of a folder again for each command. A command must not be able
// to replace a writable folder by a link to another one. So a folder of the call is left
// out if it lies in a writable one, where it is writable anyway, and refused if the working
// folder or one for temporary files lies in it.
func (p *threadParams) openRoots(fromCall bool, home string) error {
	s, cwd := &p.now.Sandbox, p.now.Cwd
	sealed := filepath.Join(home, "codex-mcp") // rules, keys and sockets of this server
	if paths.Below(box.Real(cwd), box.Real(sealed)) {
		return configErrorf("argument /cwd: %s is or lies in %s, which is this server's, and Codex lets commands write in it", cwd, sealed)
	}
	const key = "writable_roots"
	if s.Mode != protocol.SandboxWorkspaceWrite || !fromCall || !isSet(p.setting(nil, workspaceTable, key)) {
		return nil
	}
	options := box.Options{Protected: []string{home}, Sealed: []string{sealed}, Private: []string{home}, Named: p.base.Named}
	if own, err := os.UserHomeDir(); err == nil {
		options.Private = append(options.Private, own)
	}
	asked := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: s.WritableRoots, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	roots, err := box.New(options).Roots(asked, cwd, nil)
	if err != nil {
		return configErrorf("argument /config/%s/%s: %w", workspaceTable, key, err)
	}
	if len(roots.Notes) > 0 {
		return configErrorf("argument /config/%s/%s: %s", workspaceTable, key, roots.Notes[0])
	}
	s.WritableRoots = nil
	others := box.Writable(*s, cwd, os.Environ())
	for _, path := range roots.Paths {
		if slices.ContainsFunc(others, func(other string) bool { return paths.Below(path, other) }) {
			continue
		}
		if i := slices.IndexFunc(others, func(other string) bool { return paths.Below(other, path) }); i >= 0 {
			return configErrorf("argument /config/%s/%s: %s has %s in it, which is writable too and which a command could then replace", workspaceTable, key, path, others[i])
		}
		if !slices.ContainsFunc(roots.Paths, func(other string) bool { return other != path && paths.Below(path, other) }) {
			s.WritableRoots = append(s.WritableRoots, path)
		}
	}
	return nil
}

// unlinked returns an error if a file of home leads to where commands may write: Codex's
// sandbox protects no such file, and the next server obeys it.
func unlinked(s *protocol.SandboxPolicy, cwd, home string) error {
	if s.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	for _, linked := range config.Linked(home) {
		for _, folder := range box.Writable(*s, cwd, os.Environ()) {
			if paths.Below(linked, folder) || paths.Below(box.Real(linked), folder) {
				return configErrorf("a link in %s leads to %s, which commands could write; let it lead out of %s, or use the sandbox %s", home, linked, folder, protocol.SandboxReadOnly)
			}
		}
	}
	return nil
}

// policyOf returns a policy of Codex: a word, or the JSON of finer rules.
func policyOf(raw stdjson.RawMessage) protocol.ApprovalPolicy {
	var word protocol.ApprovalPolicy
	if stdjson.Unmarshal(raw, &word) != nil {
		return protocol.ApprovalPolicy(raw)
	}
	return word
}

// wordOf returns a policy that is a word, "" for finer rules.
func wordOf(policy protocol.ApprovalPolicy) protocol.ApprovalPolicy {
	if slices.Contains(protocol.ApprovalPolicies(), policy) {
		return policy
	}
	return ""
}

// policyParam returns a policy as a turn takes it, nil for the thread's own.
func policyParam(policy protocol.ApprovalPolicy) stdjson.RawMessage {
	if policy == "" {
		return nil
	}
	if strings.HasPrefix(string(policy), "{") {
		return stdjson.RawMessage(policy)
	}
	raw, _ := stdjson.Marshal(policy) // cannot fail
	return raw
}

// value reads a JSON value. It returns zero if the value is missing or of another type.
func value[T any](raw stdjson.RawMessage) (v T) {
	var p *T
	if len(raw) > 0 && json.Unmarshal(raw, &p) == nil && p != nil {
		v = *p
	}
	return v
}

func table(raw stdjson.RawMessage) map[string]stdjson.RawMessage {
	return value[map[string]stdjson.RawMessage](raw)
}
