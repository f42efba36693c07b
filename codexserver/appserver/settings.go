package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/pelletier/go-toml/v2"
)

// The names of keys that are read here.
const (
	modeKey        = "sandbox_mode"
	profileKey     = "default_permissions"
	workspaceTable = "sandbox_workspace_write"
	policyKey      = "approval_policy"
	serversTable   = "mcp_servers"
	providersTable = "model_providers"
	providerKey    = "model_provider"
)

// builtIn is the model provider of an empty configuration.
const builtIn = "openai"

// defaults are the overrides that the app-server does not take on its command line. They
// hold for each conversation that does not set them itself.
type defaults struct {
	profile string
	policy  string
	keys    keys // all overrides; they win over a profile
	// disabled are MCP servers. Codex does not start with a key of an unknown server, so the keys are sent with
	// each conversation.
	disabled keys
}

// commandLine returns the arguments of the app-server, and the overrides that cannot be
// among them.
func commandLine(overrides map[string]any) ([]string, defaults, error) {
	codexs := maps.Clone(overrides)
	maps.DeleteFunc(codexs, func(key string, _ any) bool { return config.Ours(key) })
	d := defaults{keys: keysOf(codexs)}
	s := settings{own: maps.Clone(d.keys)}
	if s.own.read(&d.profile, "profile") != nil {
		return nil, d, errors.New("override profile: not a string")
	}
	delete(s.own, "profile")
	s.translate()
	d.policy = s.ApprovalPolicy
	for name, server := range s.own.table(serversTable) {
		if string(tableOf(server).text("enabled")) == "false" {
			d.disabled = d.disabled.with(at(false, serversTable, name, "enabled"))
		}
	}
	args := []string{"app-server"}
	passed := s.own.without(d.disabled).dotted()
	for _, key := range slices.Sorted(maps.Keys(passed)) {
		value, err := tomlOf(passed[key])
		if err != nil {
			return nil, d, fmt.Errorf("override %s: %w", key, err)
		}
		args = append(args, "-c", key+"="+value)
	}
	return args, d, nil
}

// tomlOf writes a value as an inline TOML value.
func tomlOf(v any) (string, error) {
	var b strings.Builder
	out := toml.NewEncoder(&b)
	out.SetTablesInline(true)
	err := out.Encode(map[string]any{"": v})
	_, text, _ := strings.Cut(b.String(), " = ")
	return strings.TrimSpace(text), err
}

// configuration is Codex's for a folder.
type configuration struct {
	keys
	// layers are the files and flags that keys is made of, as far as they count, the strongest first.
	layers []keys
}

// configuration returns Codex's configuration for a folder, or the user's own if cwd is "".
func (c *child) configuration(ctx context.Context, cwd string) (file configuration, err error) {
	var r apptypes.ConfigReply
	if err := c.control(ctx, apptypes.CallConfigRead, apptypes.ConfigParams{Cwd: cwd, IncludeLayers: true}, &r); err != nil {
		return file, err
	}
	file.keys = r.Config
	for _, l := range r.Layers {
		if layer := tableOf(l.Config); layer != nil && l.DisabledReason == "" {
			file.layers = append(file.layers, layer)
		}
	}
	if len(file.layers) == 0 {
		file.layers = []keys{file.keys}
	}
	return file, nil
}

// settings are those of a conversation.
type settings struct {
	apptypes.ThreadParams // without the configuration and the sandbox, see params

	own      keys      // the configuration of the conversation, over that of the folder
	readOnly bool      // fail unless Codex reports that the thread is read-only
	chosen   bool      // the call of a resumed thread chooses the sandbox or the policy
	now      box.Grant // what each turn gets
	base     box.Grant // without the call
}

// params returns the parameters that start a thread, or that resume the one of an id.
//
// Codex trusts the folder of a thread that starts with more than a read-only sandbox, for ever, and
// starts what the folder's own .codex/config.toml names. So every thread is started and resumed
// read-only, and each turn carries the sandbox that the conversation has.
func (s *settings) params(id string) *apptypes.ThreadParams {
	p, own := s.ThreadParams, maps.Clone(s.own)
	for _, key := range sandboxKeys {
		delete(own, key)
	}
	p.ThreadID, p.Sandbox, p.Config = id, apptypes.SandboxModeReadOnly, own.dotted()
	return &p
}

// sandboxKeys are those that the sandbox of each turn takes the place of.
var sandboxKeys = []string{modeKey, profileKey, workspaceTable}

// settings returns the settings of a new conversation, or of that of an id. The defaults do not apply to a
// resumed one, which keeps its own.
func (e *Engine) settings(ctx context.Context, cfg protocol.Config, c *child, id string) (*settings, error) {
	isNew, folder := id == "", cfg.Cwd
	var was apptypes.Thread
	if !isNew {
		var err error
		if was, err = c.read(ctx, id); err != nil {
			c.log.Debug("codex: the working folder of a thread is unknown", "thread", id, "error", err) // thread/resume reports the error
		}
		folder = cmp.Or(folder, was.Cwd)
	}
	file, err := c.configuration(ctx, folder)
	if err != nil {
		return nil, err
	}
	own, err := parse(cfg.Overrides)
	if err != nil {
		return nil, configErrorf("config: %w", err)
	}
	var call map[string]any // the call's shell_environment_policy
	if cfg.FromCall {
		call = get[map[string]any](own, config.ShellEnvironmentKey)
		delete(own, config.ShellEnvironmentKey)
	}
	if _, names := own["profile"]; cfg.Profile == "" && isNew && !names {
		cfg.Profile = e.defaults.profile
	}
	s, err := e.translated(cfg, own, c.home)
	if err != nil {
		return nil, err
	}
	if s.ApprovalPolicy == "" && isNew {
		s.ApprovalPolicy = string(policyWord(protocol.ApprovalPolicy(c.policy)))
	}
	if err := s.choose(&cfg, file.keys); err != nil {
		return nil, err
	}
	if s.base, err = e.configured(c, &file, folder); err != nil {
		return nil, err
	}
	if s.now, err = s.grants(&file, folder); err != nil {
		return nil, err
	}
	if !isNew {
		s.restore(&was, file.keys)
	}
	if err := s.openRoots(cfg.FromCall, c.home); err != nil {
		return nil, err
	}
	e.setServers(c, file.keys, folder, s)
	if err := s.restrict(c, engine.OriginOf(ctx), file.keys, call); err != nil {
		return nil, err
	}
	if c.version.Less(continuesTurns) {
		s.own = s.own.with(at(false, "features", "shell_snapshot"))
	}
	if cfg.ReadOnly {
		s.keepToReading(file.keys)
	}
	return s, nil
}

// configured returns what the configuration gives a conversation in a folder whose call chooses
// nothing. A sandbox that cannot be judged counts as the narrowest.
func (e *Engine) configured(c *child, file *configuration, folder string) (g box.Grant, err error) {
	s, err := e.translated(protocol.Config{Profile: e.defaults.profile}, nil, c.home)
	if err != nil {
		return g, err
	}
	if g, err = s.grants(file, folder); err != nil {
		s.Sandbox = apptypes.SandboxModeReadOnly
		g, err = s.grants(file, folder)
	}
	switch policy := cmp.Or(s.ApprovalPolicy, c.policy); {
	case policy != "":
		g.Policy = policyWord(protocol.ApprovalPolicy(policy))
	case file.with(s.own).text(policyKey) != nil:
		g.Policy = policyWord(policyOf(file.with(s.own).text(policyKey)))
	case slices.Contains(trusts(file.keys, folder), "untrusted"):
		g.Policy = protocol.ApprovalUntrusted
	default:
		g.Policy = protocol.ApprovalOnRequest
	}
	return g, err
}

// translated returns a configuration, whose overrides are own, as settings of today's Codex. Settings that it
// no longer takes are translated if that keeps their meaning. Others are an error, which says what to write
// instead.
func (e *Engine) translated(cfg protocol.Config, own keys, codexHome string) (*settings, error) {
	s := &settings{ThreadParams: apptypes.ThreadParams{
		Model: cfg.Model, Cwd: cfg.Cwd, Sandbox: string(cfg.Sandbox), BaseInstructions: cfg.BaseInstructions,
		ApprovalPolicy: string(cfg.ApprovalPolicy), DeveloperInstructions: cfg.DeveloperInstructions,
	}}
	name := cfg.Profile
	if name == "" && own.read(&name, "profile") != nil {
		return nil, configErrorf("config: profile is not a string")
	}
	delete(own, "profile")
	if name != "" {
		table, err := config.Profile(codexHome, name)
		if err != nil {
			return nil, configErrorf("profile %q: %w", name, err)
		}
		own = keysOf(table).without(e.defaults.keys).with(own) // the app-server was started with the defaults
	}
	if cfg.CompactPrompt != nil { // wins over the key in the caller's config
		own = own.with(at(*cfg.CompactPrompt, "compact_prompt"))
	}
	s.own = own
	s.translate()
	return s, nil
}

// translate moves configuration keys to the parameters that today's Codex has for them.
func (s *settings) translate() {
	// Today's Codex takes the policy untrusted as a parameter, but not as a key.
	var word string
	if s.own.read(&word, policyKey) == nil {
		delete(s.own, policyKey)
		s.ApprovalPolicy = cmp.Or(s.ApprovalPolicy, word)
	}
	s.ApprovalPolicy = string(policyWord(protocol.ApprovalPolicy(s.ApprovalPolicy)))
}

func configErrorf(format string, args ...any) error {
	return &engine.ConfigError{Err: fmt.Errorf(format, args...)}
}

// choose adds the choices of a call that today's Codex takes as configuration keys. File
// is Codex's configuration for the working folder.
func (s *settings) choose(cfg *protocol.Config, file keys) error {
	if cfg.Effort != "" {
		s.own = s.own.with(at(cfg.Effort, "model_reasoning_effort"))
	}
	if cfg.WebSearch == nil {
		return nil
	}
	switch word := get[string](file.with(s.own), "web_search"); {
	case !*cfg.WebSearch:
		s.own = s.own.with(at("disabled", "web_search"))
	case word == "disabled":
		return configErrorf(`argument /web-search: the configuration has web_search = "disabled"`)
	case word == "":
		s.own = s.own.with(at("live", "web_search"))
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

// policyOf returns a policy of Codex: a word, or the JSON of finer rules.
func policyOf(raw stdjson.RawMessage) protocol.ApprovalPolicy {
	var word protocol.ApprovalPolicy
	if json.Unmarshal(raw, &word) != nil {
		return protocol.ApprovalPolicy(raw)
	}
	return word
}

// policyParam returns a policy as a turn takes it, nil for the thread's own.
func policyParam(policy protocol.ApprovalPolicy) stdjson.RawMessage {
	if policy == "" {
		return nil
	}
	if strings.HasPrefix(string(policy), "{") {
		return stdjson.RawMessage(policy)
	}
	raw, _ := json.Marshal(policy) // cannot fail
	return raw
}

// sandboxOf returns a sandbox as a turn takes it.
func sandboxOf(s protocol.SandboxPolicy) *apptypes.SandboxPolicy {
	network := stdjson.RawMessage(strconv.FormatBool(s.NetworkAccess))
	switch s.Mode {
	case protocol.SandboxDangerFullAccess:
		return &apptypes.SandboxPolicy{Type: apptypes.SandboxPolicyDangerFullAccess}
	case protocol.SandboxWorkspaceWrite:
		return &apptypes.SandboxPolicy{
			Type: apptypes.SandboxPolicyWorkspaceWrite, NetworkAccess: network, WritableRoots: s.WritableRoots,
			ExcludeTmpdirEnvVar: s.ExcludeTmpdirEnvVar, ExcludeSlashTmp: s.ExcludeSlashTmp,
		}
	}
	return &apptypes.SandboxPolicy{Type: apptypes.SandboxPolicyReadOnly, NetworkAccess: stdjson.RawMessage("false")}
}

// setServers disables MCP servers in a conversation: those that would start this program
// again, and those that the command line disables. Codex would refuse to disable or enable one that is not
// configured. File is Codex's configuration for the folder.
func (e *Engine) setServers(c *child, file keys, cwd string, s *settings) {
	s.own = e.defaults.disabled.with(s.own)
	for name, server := range s.own.table(serversTable) {
		if below := tableOf(server); len(below) == 1 && below["enabled"] != nil && file.table(serversTable, name) == nil {
			s.own = s.own.without(at(server, serversTable, name))
		}
	}
	servers := file.with(s.own).table(serversTable)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers.table(name)
		command := get[string](server, "command")
		args, env := get[[]string](server, "args"), get[map[string]string](server, "env")
		if command == "" || !e.self.StartedBy(append([]string{command}, args...), absolute(get[string](server, "cwd"), cwd), env) {
			continue
		}
		s.own = s.own.with(at(false, serversTable, name, "enabled"))
		if _, said := e.left.LoadOrStore(name, true); !said {
			c.log.Warn(fmt.Sprintf("codex: mcp_servers.%s is left out: it is this server, which would start itself without end", name))
		}
	}
}
