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
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

const (
	// byUser is the reviewer of approvals that asks.
	byUser = "user"
	// builtIn is the model provider of an empty configuration.
	builtIn = "openai"
)

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
	all, err := keysOf(codexs)
	d := defaults{keys: all}
	if err != nil {
		return nil, d, fmt.Errorf("overrides: %w", err)
	}
	s := settings{own: maps.Clone(all)}
	if raw := s.own.text("profile"); raw != nil && json.Unmarshal(raw, &d.profile) != nil {
		return nil, d, errors.New("override profile: not a string")
	}
	delete(s.own, "profile")
	s.translate()
	d.policy = s.ApprovalPolicy
	for name, server := range s.own.table(serversTable) {
		if below, ok := server.(keys); ok && string(below.text("enabled")) == "false" {
			d.disabled = d.disabled.with(at(false, serversTable, name, "enabled"))
		}
	}
	args := []string{"app-server"}
	passed := s.own.without(d.disabled).dotted()
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
	if file.keys, err = parse(r.Config); err != nil {
		return file, fmt.Errorf("codex's configuration: %w", err)
	}
	for _, l := range r.Layers {
		v, err := tables(l.Config)
		if err != nil {
			return file, fmt.Errorf("codex's configuration: %w", err)
		}
		if layer, ok := v.(keys); ok && l.DisabledReason == "" {
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
	var call keys // the call's shell_environment_policy
	if cfg.FromCall {
		call = own.table(config.ShellEnvironmentKey)
		delete(own, config.ShellEnvironmentKey)
		own = own.without(strangers(own.table(serversTable), file.table(serversTable)))
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
	if e.options.AskUser {
		s.ApprovalsReviewer = byUser
	}
	e.setServers(c, file.keys, folder, s)
	if err := s.restrict(c, engine.OriginOf(ctx), file.keys, call); err != nil {
		return nil, err
	}
	if c.version.Less(keepsSnapshot) {
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
	if cfg.Cwd != "" {
		if info, err := os.Stat(cfg.Cwd); err != nil || !info.IsDir() {
			return nil, configErrorf("cwd %q is not a folder", cfg.Cwd)
		}
	}
	name := cfg.Profile
	if v, ok := own["profile"]; ok {
		raw, _ := v.(stdjson.RawMessage)
		delete(own, "profile")
		if name == "" && json.Unmarshal(raw, &name) != nil {
			return nil, configErrorf("config: profile is not a string")
		}
	}
	if name != "" {
		table, err := config.Profile(codexHome, name)
		if err != nil {
			return nil, configErrorf("profile %q: %w", name, err)
		}
		profile, err := keysOf(table)
		if err != nil {
			return nil, configErrorf("profile %q: %w", name, err)
		}
		own = profile.without(e.defaults.keys).with(own) // the app-server was started with the defaults
	}
	if cfg.CompactPrompt != nil { // wins over the key in the caller's config
		own = own.with(at(*cfg.CompactPrompt, "compact_prompt"))
	}
	s.own = own
	s.translate()
	return s, nil
}

// removed are keys that today's Codex ignores.
var removed = []string{"include_plan_tool", "include_apply_patch_tool"}

// translate moves configuration keys to the parameters that today's Codex has for them.
func (s *settings) translate() {
	for _, key := range removed {
		delete(s.own, key)
	}
	// Today's Codex takes the policy untrusted as a parameter, but not as a key.
	var word string
	if raw, ok := s.own[policyKey].(stdjson.RawMessage); ok && json.Unmarshal(raw, &word) == nil {
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
	if stdjson.Unmarshal(raw, &word) != nil {
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
	raw, _ := stdjson.Marshal(policy) // cannot fail
	return raw
}

// sandboxOf returns a sandbox as a turn takes it.
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

// profileModes are the sandbox modes of Codex's own profiles of permissions.
var profileModes = map[string]string{
	":read-only":          apptypes.SandboxModeReadOnly,
	":workspace":          apptypes.SandboxModeWorkspaceWrite,
	":danger-full-access": apptypes.SandboxModeDangerFullAccess,
}

// mode returns the sandbox mode as Codex chooses it: by the parameter, else by the strongest layer
// that has one or names a profile, else by the person's decision about the folder. Plain is true
// for a profile: it leaves out the table sandbox_workspace_write.
func (s *settings) mode(file *configuration, cwd string) (mode string, plain bool, err error) {
	if s.Sandbox != "" {
		return s.Sandbox, false, nil
	}
	for _, layer := range append([]keys{s.own}, file.layers...) {
		if raw := layer.text(profileKey); raw != nil {
			if mode = profileModes[get[string](layer, profileKey)]; mode == "" {
				return "", false, configErrorf("%s: the profile of permissions %.200s cannot be given to a turn of Codex; pass the argument sandbox, or write %s in its place", profileKey, raw, modeKey)
			}
			return mode, true, nil
		}
		if raw := layer.text(modeKey); raw != nil {
			if mode = get[string](layer, modeKey); box.Width(protocol.SandboxMode(mode)) < 0 {
				return "", false, configErrorf("%s: %.200s is none of %s", modeKey, raw, text.Or(protocol.SandboxModes()))
			}
			return mode, false, nil
		}
	}
	if len(trusts(file.keys, cwd)) > 0 {
		return apptypes.SandboxModeWorkspaceWrite, false, nil
	}
	return apptypes.SandboxModeReadOnly, false, nil
}

// workspace returns the sandbox workspace-write with the settings of its table.
func workspace(all keys, cwd string) (protocol.SandboxPolicy, error) {
	s := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
	for key, to := range map[string]any{
		"writable_roots": &s.WritableRoots, "network_access": &s.NetworkAccess,
		"exclude_slash_tmp": &s.ExcludeSlashTmp, "exclude_tmpdir_env_var": &s.ExcludeTmpdirEnvVar,
	} {
		raw := all.text(workspaceTable, key)
		if raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return s, configErrorf("%s.%s: %w", workspaceTable, key, err)
		}
	}
	for i, root := range s.WritableRoots {
		s.WritableRoots[i] = absolute(root, cwd)
	}
	return s, nil
}

// absolute returns the path that Codex makes of one in the keys of a thread, "" is the folder itself.
func absolute(root, cwd string) string {
	if rest, ok := strings.CutPrefix(root, "~/"); ok || root == "~" {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(root) {
		return root
	}
	return filepath.Join(cwd, root)
}

// trusts returns what a person has decided in Codex about a folder: the levels of trust of the
// folder and its repository.
func trusts(file keys, cwd string) (levels []string) {
	projects := file.table("projects")
	if len(projects) == 0 || cwd == "" {
		return nil
	}
	folders := []string{cwd, box.Real(cwd)}
	if root := repository(cwd); root != "" {
		folders = append(folders, root, box.Real(root))
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if level := get[string](projects, folder, "trust_level"); level != "" {
			levels = append(levels, level)
		}
	}
	return levels
}

// repository returns the folder by which Codex knows the repository of a folder: its root, and for
// a worktree the root of the main one. It returns "" without a repository, and for a worktree that the main
// one does not know: anybody can write such a file.
func repository(folder string) string {
	entry := filepath.Join(folder, ".git")
	info, err := os.Stat(entry)
	switch up := filepath.Dir(folder); {
	case err != nil && up == folder:
		return ""
	case err != nil:
		return repository(up)
	case info.IsDir():
		return folder
	}
	git, err := box.Pointer(entry, "gitdir: ")
	if err != nil {
		return ""
	}
	trees := filepath.Dir(git)
	back, err := box.Pointer(filepath.Join(git, "gitdir"), "")
	if err != nil || filepath.Base(trees) != "worktrees" || filepath.Base(filepath.Dir(trees)) != ".git" || box.Real(back) != box.Real(entry) {
		return ""
	}
	return filepath.Dir(filepath.Dir(trees))
}

// grants returns what the settings and Codex's configuration give a conversation in a folder. The
// policy is "" where only Codex knows it.
func (s *settings) grants(file *configuration, cwd string) (g box.Grant, err error) {
	all := file.with(s.own)
	g.Cwd, g.Policy = cwd, protocol.ApprovalPolicy(s.ApprovalPolicy)
	mode, plain, err := s.mode(file, cwd)
	if err != nil {
		return g, err
	}
	opened, err := workspace(all, cwd)
	switch g.Sandbox.Mode = protocol.SandboxMode(mode); {
	case g.Sandbox.Mode == protocol.SandboxWorkspaceWrite && plain:
		opened, err = g.Sandbox, nil
	case g.Sandbox.Mode == protocol.SandboxWorkspaceWrite:
		g.Sandbox = opened
	}
	if err != nil {
		return g, err
	}
	g.Named = box.Writable(opened, "", os.Environ())
	if get[string](all, "web_search") != "disabled" || get[bool](all, "features", "standalone_web_search") {
		g.Search = says(all, "web_search", "tools.web_search", "features.web_search_request", "features.web_search_cached", "features.standalone_web_search")
	}
	g.Provider = cmp.Or(get[string](all, providerKey), builtIn)
	g.Address, g.Endpoint = provides(all, g.Provider)
	return g, nil
}

// provides returns the address of a model provider, and all that the configuration says of it.
func provides(all keys, id string) (address, endpoint string) {
	const own = "openai_base_url"
	address = get[string](all, providersTable, id, "base_url")
	if id == builtIn && all.text(own) != nil {
		address = get[string](all, own)
	}
	return address, fmt.Sprintf("%s\n", all.text(providersTable, id)) + says(all, own, "chatgpt_base_url")
}

// says returns what the configuration says of keys, to compare it.
func says(all keys, dotted ...string) string {
	var said strings.Builder
	for _, key := range dotted {
		fmt.Fprintf(&said, "%s = %s\n", key, all.text(strings.Split(key, ".")...))
	}
	return said.String()
}

// beyond returns what a conversation may do beyond base, the configuration. In full access Codex lets
// the model search live, and commands reach the network.
func beyond(g, base *box.Grant) protocol.Access {
	a := g.Beyond(base, os.Environ())
	if a.Mode == protocol.SandboxDangerFullAccess {
		a.Network, a.WebSearch = !base.Sandbox.NetworkAccess, g.Search != ""
	}
	return a
}

// restore gives a resumed thread what the configuration does. What its call does not choose, Codex
// would take from the thread's last turn, and its model provider cannot be another one than before.
func (s *settings) restore(was *apptypes.Thread, file keys) {
	chooses := s.Sandbox != "" || slices.ContainsFunc(sandboxKeys, func(key string) bool { return s.own[key] != nil })
	s.chosen = chooses || s.ApprovalPolicy != ""
	if !chooses {
		s.now.Sandbox = s.base.Sandbox
	}
	if s.ApprovalPolicy == "" {
		s.now.Policy = s.base.Policy
	}
	all := file.with(s.own)
	s.ApprovalsReviewer = cmp.Or(get[string](all, "approvals_reviewer"), byUser)
	if was.ModelProvider != "" {
		s.now.Provider = was.ModelProvider
		s.now.Address, s.now.Endpoint = provides(all, was.ModelProvider)
	}
}

// keep gives a resumed thread what its last turn had, as far as the configuration allows or, if keep
// returns true, whole.
func (s *settings) keep(had *box.Grant, keep func(protocol.Access) bool) {
	if s.chosen {
		return
	}
	before := s.now
	before.Cwd, before.Policy, before.Sandbox = had.Cwd, had.Policy, had.Sandbox
	if a := beyond(&before, &s.base); !a.IsZero() && (keep == nil || !keep(a)) {
		before.Narrow(&s.base)
	}
	s.now = before
}

// keepToReading lets a thread only run commands that read, as far as Codex has settings
// for that.
func (s *settings) keepToReading(file keys) {
	s.own = s.own.with(at("disabled", "web_search")).with(at(false, "features", "apps")).with(at(false, "features", "plugins"))
	for name := range file.with(s.own).table(serversTable) {
		s.own = s.own.with(at(false, serversTable, name, "enabled"))
	}
	s.ApprovalPolicy, s.readOnly = string(protocol.ApprovalNever), true
	s.now.Sandbox, s.now.Policy = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, protocol.ApprovalNever
	s.base = s.now
}

// openRoots checks the writable folders that a call names, and the working folder.
//
// Codex resolves the name of a folder again for each command. A command must not be able
// to replace a writable folder by a link to another one. So a folder of the call is left
// out if it lies in a writable one, where it is writable anyway, and refused if the working
// folder or one for temporary files lies in it.
func (s *settings) openRoots(fromCall bool, home string) error {
	p, cwd := &s.now.Sandbox, s.now.Cwd
	sealed := filepath.Join(home, "codex-mcp") // rules, keys and sockets of this server
	if paths.Below(box.Real(cwd), box.Real(sealed)) {
		return configErrorf("argument /cwd: %s is or lies in %s, which is this server's, and Codex lets commands write in it", cwd, sealed)
	}
	const key = "writable_roots"
	if p.Mode != protocol.SandboxWorkspaceWrite || !fromCall || s.own.text(workspaceTable, key) == nil {
		return nil
	}
	options := box.Options{Protected: []string{home}, Sealed: []string{sealed}, Private: []string{home}, Named: s.base.Named}
	if own, err := os.UserHomeDir(); err == nil {
		options.Private = append(options.Private, own)
	}
	asked := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: p.WritableRoots, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	roots, err := box.New(options).Roots(asked, cwd, nil)
	if err == nil && len(roots.Notes) > 0 {
		err = errors.New(roots.Notes[0])
	}
	if err != nil {
		return configErrorf("argument /config/%s/%s: %w", workspaceTable, key, err)
	}
	p.WritableRoots = nil
	others := box.Writable(*p, cwd, os.Environ())
	for _, path := range roots.Paths {
		if slices.ContainsFunc(others, func(other string) bool { return paths.Below(path, other) }) {
			continue
		}
		if i := slices.IndexFunc(others, func(other string) bool { return paths.Below(other, path) }); i >= 0 {
			return configErrorf("argument /config/%s/%s: %s has %s in it, which is writable too and which a command could then replace", workspaceTable, key, path, others[i])
		}
		if !slices.ContainsFunc(roots.Paths, func(other string) bool { return other != path && paths.Below(path, other) }) {
			p.WritableRoots = append(p.WritableRoots, path)
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

// reaches records the folders that commands in cwd can write under a policy, before one runs.
// After an error none may run: it could write a guarded file.
func (e *Engine) reaches(cwd string, s *protocol.SandboxPolicy) error {
	e.programs.Given(cwd)
	if s.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	e.programs.Add(cwd)
	e.programs.Add(s.WritableRoots...)
	for _, file := range e.options.Guarded {
		for _, folder := range box.Writable(*s, cwd, os.Environ()) {
			if box.Reaches(filepath.Dir(file), folder) {
				return &engine.RefusedError{Err: fmt.Errorf("commands could write in %s, which holds %s, a file of this server; choose another folder, or the sandbox %s", folder, file, protocol.SandboxReadOnly)}
			}
		}
	}
	return nil
}

// strangers returns the keys that do nothing but to disable or enable MCP servers that are not configured. Codex
// would refuse the conversation.
func strangers(asked, configured keys) (found keys) {
	for name, server := range asked {
		below, _ := server.(keys)
		if _, says := below["enabled"]; says && len(below) == 1 && configured[name] == nil {
			found = found.with(keys{serversTable: keys{name: below}})
		}
	}
	return found
}

// setServers disables MCP servers in a conversation: those that would start this program
// again, and those that the command line disables. Codex refuses an entry without a
// command, so a disabled server that is not configured gets one, which never runs. File is
// Codex's configuration for the folder.
func (e *Engine) setServers(c *child, file keys, cwd string, s *settings) {
	s.own = e.defaults.disabled.with(s.own)
	servers := file.with(s.own).table(serversTable)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers.table(name)
		command := get[string](server, "command")
		if command == "" && get[string](server, "url") == "" && string(s.own.text(serversTable, name, "enabled")) == "false" {
			s.own = s.own.with(at("disabled", serversTable, name, "command"))
		}
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

// maxConfig bounds a configuration file that is searched, in bytes.
const maxConfig = 4 << 20

// environment returns the environment of the app-server: that of this process, with
// Codex's folder. It leaves out keys of other programs, such as the client that started
// the server, unless the user's configuration of Codex names them, as far as it can be read.
func (e *Engine) environment() []string {
	env := os.Environ()
	if home := e.options.CodexHome; home != "" {
		env = append(env, "CODEX_HOME="+home)
	}
	said := strings.Join(e.args, "\n")
	home, err := config.Home(os.Getenv)
	if own := e.options.CodexHome; own != "" {
		home, err = filepath.Abs(own)
	}
	var files []os.DirEntry
	if err == nil {
		files, _ = os.ReadDir(home)
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".toml" || !file.Type().IsRegular() {
			continue
		}
		if b, err := safefile.Read(filepath.Join(home, file.Name()), maxConfig); err == nil {
			said += "\n" + string(b)
		}
	}
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return run.MatchName(run.ClientSecrets(), name) && !strings.Contains(said, name)
	})
}

// restrict hides variables from the conversation's commands: those that the configuration
// and the call exclude, and the keys of providers and MCP servers. File is the
// configuration without s. Commands of a client of another origin get what remains of its
// environment, and nothing of Codex's.
func (s *settings) restrict(c *child, from *engine.Origin, file, call keys) error {
	var base config.ShellEnvironment
	if raw := file.with(s.own).text(config.ShellEnvironmentKey); raw != nil {
		if err := json.Unmarshal(raw, &base); err != nil {
			return configErrorf("codex's configuration: %w", err)
		}
	}
	table := keys{config.ShellEnvironmentKey: call}
	narrowed, err := config.NarrowEnvironment(base, get[map[string]any](table, config.ShellEnvironmentKey))
	if err != nil {
		return configErrorf("config: %w", err)
	}
	exclude, ok := narrowed["exclude"].([]string)
	if !ok {
		exclude = base.Exclude
	}
	given := c.learn(file, s.own)
	names := slices.Concat(run.Secrets(), exclude, given)
	slices.Sort(names)
	narrowed["exclude"] = slices.Compact(names)
	if from != nil {
		if narrowed, err = foreignEnvironment(base, narrowed, from.Environ); err != nil {
			return err
		}
	}
	for key, v := range narrowed {
		s.own = s.own.with(at(v, config.ShellEnvironmentKey, key))
	}
	return nil
}

// foreignEnvironment returns a policy with which commands get, of no environment but
// environ, what the policy base and the keys narrowed leave.
func foreignEnvironment(base config.ShellEnvironment, narrowed map[string]any, environ []string) (map[string]any, error) {
	raw, err := json.Marshal(narrowed)
	if err == nil {
		err = json.Unmarshal(raw, &base)
	}
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, entry := range (run.EnvPolicy{
		Inherit: run.Inherit(base.Inherit), IgnoreDefaultExcludes: base.IgnoreDefaultExcludes,
		Exclude: base.Exclude, Set: base.Set, IncludeOnly: base.IncludeOnly,
	}).Environ(environ) {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	return map[string]any{
		"inherit": "none", "ignore_default_excludes": true, "exclude": []string{}, "include_only": []string{},
		"set": set, "experimental_use_profile": base.UseProfile,
	}, nil
}

// namesVariable has the keys of providers and MCP servers by which they get secrets, and whether a value there,
// or below, names an environment variable with one. Else it is one: a header, a query or a token.
var namesVariable = map[string]bool{
	"env_key": true, "bearer_token_env_var": true, "env_http_headers": true,
	"http_headers": false, "query_params": false, "experimental_bearer_token": false,
}

// credentials calls found with each value that is a secret or names the environment variable with one.
func credentials(k keys, found func(word string, variable bool)) {
	for name, v := range k {
		below, _ := v.(keys)
		if variable, ok := namesVariable[name]; ok {
			if word := get[string](k, name); word != "" {
				found(word, variable)
			}
			for key := range below {
				if word := get[string](below, key); word != "" {
					found(word, variable)
				}
			}
		}
		credentials(below, found)
	}
}

// learn notes the secrets that providers and MCP servers get by a configuration and the further keys of a
// conversation, so that no error has them. It returns the names of the variables that have one.
func (c *child) learn(file, further keys) (names []string) {
	var values []string
	for _, k := range []keys{file, further} {
		for _, table := range []string{providersTable, serversTable} {
			credentials(k.table(table), func(word string, variable bool) {
				if variable {
					names = append(names, word)
				} else {
					values = append(values, word)
				}
			})
		}
	}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); slices.Contains(names, name) || run.MatchName(run.Secrets(), name) {
			values = append(values, value)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range text.NewSecrets(values...) {
		if !slices.Contains(c.secrets, secret) {
			c.secrets = append(slices.Clip(c.secrets), secret)
		}
	}
	return names
}

// redact replaces the keys that the app-server knows, and what looks like a key, in an error.
func (c *child) redact(s string) string {
	c.mu.Lock()
	secrets := c.secrets
	c.mu.Unlock()
	return secrets.Hide(redact(s))
}
