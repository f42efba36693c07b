package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
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
	policy  protocol.ApprovalPolicy
	keys    keys // all overrides; they win over a profile
	// disabled are MCP servers. Codex does not start with a key of an unknown server, so the keys are sent with
	// each conversation.
	disabled keys
}

// commandLine returns the arguments of the app-server, and the overrides that cannot be
// among them.
func commandLine(overrides map[string]any) ([]string, defaults, error) {
	tree, err := config.Unflatten(overrides)
	if err != nil {
		return nil, defaults{}, fmt.Errorf("override %w", err)
	}
	maps.DeleteFunc(tree, func(key string, _ any) bool { return config.Ours(key) })
	d := defaults{keys: tree}
	own := maps.Clone(d.keys)
	if own.take(&d.profile, "profile") != nil {
		return nil, d, errors.New("override profile: not a string")
	}
	_ = own.take(&d.policy, policyKey) // else it has finer rules
	d.policy = policyWord(d.policy)
	for name, server := range own.table(serversTable) {
		if string(tableOf(server).text("enabled")) == "false" {
			d.disabled = d.disabled.with(at(false, serversTable, name, "enabled"))
		}
	}
	args := []string{"app-server"}
	passed := own.without(d.disabled).dotted()
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
	if err := c.control(ctx, apptypes.CallConfigRead, apptypes.ConfigParams{Cwd: cwd, IncludeLayers: true},
		&r); err != nil {
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

	own      keys          // the configuration of the conversation, over that of the folder
	readOnly bool          // fail unless Codex reports that the thread is read-only
	keeps    bool          // what the call chooses is kept
	rooted   bool          // the configuration has writable folders
	now      decide.Grant  // what each turn gets
	base     decide.Grant  // without the call
	shell    run.EnvPolicy // of the environment of commands
	client   []string      // the environment of the client, if it runs elsewhere, else nil
	confines bool          // Codex can confine commands on this system
	writes   []string      // where names of folders that commands can write led at the start, without links

	choices protocol.Choices   // of the calls
	kept    *threadfile.Thread // has the policies that stay kept; nil if those of now are
	formed  *threadfile.Formed // what it had before the last turn in Codex's file, if that was for a form
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
	if p := &s.now.Sandbox; s.rooted && p.Mode == protocol.SandboxWorkspaceWrite && len(p.WritableRoots) == 0 {
		// To a sandbox without folders Codex would add those of its configuration.
		own = own.with(at([]string{}, workspaceTable, "writable_roots"))
	}
	p.ThreadID, p.Sandbox, p.Config = id, string(protocol.SandboxReadOnly), own.dotted()
	return &p
}

// sandboxKeys are those that the sandbox of each turn takes the place of.
var sandboxKeys = []string{modeKey, profileKey, workspaceTable}

// settings returns the settings of a new conversation, or of one that is resumed. The defaults do not apply to that, which
// keeps its own.
func (e *Engine) settings(ctx context.Context, cfg protocol.Config, c *child, was *earlier) (*settings, error) {
	isNew, folder := was == nil, cfg.Cwd
	var search *bool // that earlier calls chose
	if !isNew {
		search, folder = was.kept.Wish(&cfg), cmp.Or(folder, was.Cwd)
	}
	file, err := c.configuration(ctx, folder)
	if err != nil {
		return nil, err
	}
	tree, err := config.Unflatten(cfg.Overrides)
	if err != nil {
		return nil, configErrorf("config: %w", err)
	}
	own := keys(tree)
	if _, names := own["profile"]; cfg.Profile == "" && isNew && !names {
		cfg.Profile = e.defaults.profile
	}
	s, err := e.translated(cfg, own, c.home)
	if err != nil {
		return nil, err
	}
	if s.ApprovalPolicy == "" && isNew {
		s.ApprovalPolicy = string(c.policy)
	}
	s.choices = cfg.Noted(get[string](file.with(s.own), "developer_instructions"))
	if cfg.Note != "" {
		s.DeveloperInstructions = s.choices.DeveloperInstructions
	}
	if search != nil {
		s.choices.WebSearch = search
	}
	switch on, word := s.choices.WebSearch, get[string](file.with(s.own), "web_search"); {
	case on == nil:
	case !*on:
		s.own = s.own.with(at("disabled", "web_search"))
	case word == "disabled" && search == nil: // one that is only wished stays off
		return nil, configErrorf(`argument /web-search: the configuration has web_search = "disabled"`)
	case word == "":
		s.own = s.own.with(at("live", "web_search"))
	}
	if s.base, err = e.configured(c, &file, folder); err != nil {
		return nil, err
	}
	if s.now, err = s.grants(&file, folder); err != nil {
		return nil, err
	}
	if err := s.openRoots(cfg.FromCall, c.home); err != nil {
		return nil, err
	}
	s.keeps, s.rooted = isNew, file.text(workspaceTable, "writable_roots") != nil
	if !isNew {
		s.restore(was, file.keys, search != nil, cfg.Keep)
	}
	if e.options.Codex.Reviewer == setting.ReviewerPerson {
		s.ApprovalsReviewer = apptypes.ApprovalsReviewerUser
	}
	e.setServers(c, file.keys, folder, s)
	if err := s.restrict(c, engine.OriginOf(ctx), file.keys); err != nil {
		return nil, err
	}
	s.confines = e.system != "windows" ||
		slices.Contains(windowsSandboxes, get[string](file.with(s.own), "windows", "sandbox"))
	if err := c.keepGoalsOff(ctx, &file, s); err != nil {
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

// windowsSandboxes are the values with which Codex has a sandbox on Windows. Without one it runs commands there unconfined.
var windowsSandboxes = []string{"elevated", "unelevated"}

// configured returns what the configuration gives a conversation in a folder whose call chooses
// nothing. A sandbox that cannot be judged counts as the narrowest.
func (e *Engine) configured(c *child, file *configuration, folder string) (g decide.Grant, err error) {
	s, err := e.translated(protocol.Config{Profile: e.defaults.profile}, nil, c.home)
	if err != nil {
		return g, err
	}
	if g, err = s.grants(file, folder); err != nil {
		s.Sandbox = string(protocol.SandboxReadOnly)
		g, err = s.grants(file, folder)
	}
	switch g.Policy = cmp.Or(g.Policy, c.policy); {
	case g.Policy != "":
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
		DeveloperInstructions: cfg.DeveloperInstructions,
	}}
	var name string
	if own.take(&name, "profile") != nil {
		return nil, configErrorf("config: profile is not a string")
	}
	if name = cmp.Or(cfg.Profile, name); name != "" {
		table, err := config.Profile(codexHome, name)
		if err != nil {
			return nil, &engine.ConfigError{Err: err}
		}
		own = keys(table).without(e.defaults.keys).with(own) // the app-server was started with the defaults
	}
	chosen := cfg.Choices.Keys()             // they win over the keys in the caller's config
	delete(chosen, "developer_instructions") // a parameter
	delete(chosen, "include_plan_tool")      // today's Codex has none
	own = own.with(chosen)
	word := cfg.ApprovalPolicy
	_ = own.take(&word, policyKey) // which today's Codex takes as a parameter, but the policy untrusted not as a key
	s.own, s.ApprovalPolicy = own, string(policyWord(cmp.Or(cfg.ApprovalPolicy, word)))
	return s, nil
}

func configErrorf(format string, args ...any) error {
	return &engine.ConfigError{Err: fmt.Errorf(format, args...)}
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

// moved says which folder that commands can write has a name that leads elsewhere than when the conversation began, or "".
func (s *settings) moved() string {
	for i, now := range box.Writable(s.now.Sandbox, s.now.Cwd, os.Environ()) {
		if i < len(s.writes) && now != s.writes[i] {
			return "a link is in the place of the folder " + s.writes[i] + ", in which commands may write"
		}
	}
	return ""
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
		if below := tableOf(server); len(below) == 1 && below["enabled"] != nil &&
			file.table(serversTable, name) == nil {
			s.own = s.own.without(at(server, serversTable, name))
		}
	}
	servers := file.with(s.own).table(serversTable)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers.table(name)
		command := get[string](server, "command")
		args, env := get[[]string](server, "args"), get[map[string]string](server, "env")
		if command == "" || !e.self.StartedBy(append([]string{command}, args...),
			absolute(get[string](server, "cwd"), cwd), env) {
			continue
		}
		s.own = s.own.with(at(false, serversTable, name, "enabled"))
		if _, said := e.left.LoadOrStore(name, true); !said {
			c.log.Warn(fmt.Sprintf("codex: mcp_servers.%s is left out: it is this server, which would start itself "+
				"without end", name))
		}
	}
}
