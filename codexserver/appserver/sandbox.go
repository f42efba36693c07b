package appserver

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

// Codex trusts the folder of a thread that starts with more than a read-only sandbox, for ever, and
// starts what the folder's own .codex/config.toml names. So every thread is started and resumed
// read-only, and each turn carries the sandbox that the conversation has.

// configuration is Codex's for a folder.
type configuration struct {
	keys map[string]stdjson.RawMessage
	// layers are the files and flags that keys is made of, the strongest first.
	layers []map[string]stdjson.RawMessage
}

// layered returns the configuration with its layers that count.
func layered(r *apptypes.ConfigReply) configuration {
	file := configuration{keys: r.Config}
	for _, l := range r.Layers {
		if l.DisabledReason == "" {
			file.layers = append(file.layers, table(l.Config))
		}
	}
	if len(file.layers) == 0 {
		file.layers = []map[string]stdjson.RawMessage{r.Config}
	}
	return file
}

const (
	modeKey    = "sandbox_mode"
	profileKey = "default_permissions"
)

// profileModes are the sandbox modes of Codex's own profiles of permissions.
var profileModes = map[string]string{
	":read-only":          apptypes.SandboxModeReadOnly,
	":workspace":          apptypes.SandboxModeWorkspaceWrite,
	":danger-full-access": apptypes.SandboxModeDangerFullAccess,
}

// mode returns the sandbox mode as Codex chooses it: by the parameter, else by the strongest layer
// that has one or names a profile, else by the person's decision about the folder. Plain is true
// for a profile: it leaves out the table sandbox_workspace_write.
func (p *threadParams) mode(file *configuration, cwd string) (mode string, plain bool, err error) {
	if p.Sandbox != "" {
		return p.Sandbox, false, nil
	}
	for _, keys := range append([]map[string]stdjson.RawMessage{p.Config}, file.layers...) {
		if raw := keys[profileKey]; isSet(raw) {
			if mode = profileModes[value[string](raw)]; mode == "" {
				return "", false, configErrorf("%s: the profile of permissions %.200s cannot be given to a turn of Codex; pass the argument sandbox, or write %s in its place", profileKey, raw, modeKey)
			}
			return mode, true, nil
		}
		if raw := keys[modeKey]; isSet(raw) {
			if mode = value[string](raw); box.Width(protocol.SandboxMode(mode)) < 0 {
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

func isSet(raw stdjson.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// limits returns the sandbox that the parameters and Codex's configuration give.
func (p *threadParams) limits(file *configuration, cwd string) (protocol.SandboxPolicy, error) {
	mode, plain, err := p.mode(file, cwd)
	if err == nil && mode == apptypes.SandboxModeWorkspaceWrite && !plain {
		return p.workspace(file, cwd)
	}
	return protocol.SandboxPolicy{Mode: protocol.SandboxMode(mode)}, err
}

// workspace returns the sandbox workspace-write with the settings of its table.
func (p *threadParams) workspace(file *configuration, cwd string) (protocol.SandboxPolicy, error) {
	s := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
	for key, to := range map[string]any{
		"writable_roots": &s.WritableRoots, "network_access": &s.NetworkAccess,
		"exclude_slash_tmp": &s.ExcludeSlashTmp, "exclude_tmpdir_env_var": &s.ExcludeTmpdirEnvVar,
	} {
		raw := p.setting(file.keys, workspaceTable, key)
		if !isSet(raw) {
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

// chooses reports whether the keys of the thread choose a sandbox.
func (p *threadParams) chooses() bool {
	return p.Sandbox != "" || slices.ContainsFunc(slices.Collect(maps.Keys(p.Config)), isSandboxKey)
}

func isSandboxKey(key string) bool {
	return key == modeKey || key == profileKey || key == workspaceTable || strings.HasPrefix(key, workspaceTable+".")
}

// strip removes what the sandbox of each turn says in place of the thread's configuration.
func (p *threadParams) strip() {
	maps.DeleteFunc(p.Config, func(key string, _ stdjson.RawMessage) bool { return isSandboxKey(key) })
	p.Sandbox = apptypes.SandboxModeReadOnly
}

// trusts returns what a person has decided in Codex about a folder: the levels of trust of the
// folder and its repository.
func trusts(keys map[string]stdjson.RawMessage, cwd string) (levels []string) {
	projects := table(keys["projects"])
	if len(projects) == 0 || cwd == "" {
		return nil
	}
	folders := []string{cwd, box.Real(cwd)}
	if root := repository(cwd); root != "" {
		folders = append(folders, root, box.Real(root))
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if level := value[string](table(projects[folder])["trust_level"]); level != "" {
			levels = append(levels, level)
		}
	}
	return levels
}

// repository returns the folder by which Codex knows the repository of a folder: its root, and for
// a worktree the root of the main one. It returns "" without a repository.
func repository(folder string) string {
	for {
		entry := filepath.Join(folder, ".git")
		if info, err := os.Stat(entry); err == nil {
			if info.IsDir() {
				return folder
			}
			return mainOf(entry)
		}
		up := filepath.Dir(folder)
		if up == folder {
			return ""
		}
		folder = up
	}
}

// maxPointer bounds a file that names a folder, in bytes.
const maxPointer = 8 << 10

// mainOf returns the root of the main worktree of the one with a file .git. It returns "" unless
// the main one knows the worktree: anybody can write such a file.
func mainOf(file string) string {
	b, err := safefile.Read(file, maxPointer)
	git, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if err != nil || !ok || !filepath.IsAbs(git) {
		return ""
	}
	trees := filepath.Dir(git)
	back, err := safefile.Read(filepath.Join(git, "gitdir"), maxPointer)
	if err != nil || filepath.Base(trees) != "worktrees" || filepath.Base(filepath.Dir(trees)) != ".git" || box.Real(strings.TrimSpace(string(back))) != box.Real(file) {
		return ""
	}
	return filepath.Dir(filepath.Dir(trees))
}

// grants returns what the parameters and Codex's configuration give a conversation in a folder. The
// policy is "" where only Codex knows it.
func (p *threadParams) grants(file *configuration, cwd string) (g box.Grant, err error) {
	g.Cwd, g.Policy = cwd, protocol.ApprovalPolicy(p.ApprovalPolicy)
	if g.Sandbox, err = p.limits(file, cwd); err != nil {
		return g, err
	}
	if value[string](p.setting(file.keys, "web_search")) != "disabled" || value[bool](p.setting(file.keys, "features", "standalone_web_search")) {
		g.Search = p.says(file.keys, "web_search", "tools.web_search", "features.web_search_request", "features.web_search_cached", "features.standalone_web_search")
	}
	g.Provider = cmp.Or(value[string](p.setting(file.keys, "model_provider")), builtIn)
	g.Address, g.Endpoint = p.provides(file.keys, g.Provider)
	opened := g.Sandbox
	if opened.Mode != protocol.SandboxWorkspaceWrite {
		if opened, err = p.workspace(file, cwd); err != nil {
			return g, err
		}
	}
	g.Named = box.Writable(opened, "", os.Environ())
	return g, nil
}

// policyIn returns the approval policy that Codex's configuration gives a conversation.
func (p *threadParams) policyIn(c *child, file *configuration, cwd string) protocol.ApprovalPolicy {
	if policy := cmp.Or(p.ApprovalPolicy, c.policy); policy != "" {
		return policyWord(protocol.ApprovalPolicy(policy))
	}
	if raw := p.setting(file.keys, "approval_policy"); isSet(raw) {
		return policyWord(policyOf(raw))
	}
	if slices.Contains(trusts(file.keys, cwd), "untrusted") {
		return protocol.ApprovalUntrusted
	}
	return protocol.ApprovalOnRequest
}

// provides returns the address of a model provider, and all that the configuration says of it.
func (p *threadParams) provides(file map[string]stdjson.RawMessage, id string) (address, all string) {
	const providers, own = "model_providers", "openai_base_url"
	raw, ok := p.Config[providers+"."+id+".base_url"]
	if !ok {
		raw = table(table(file[providers])[id])["base_url"]
	}
	if id == builtIn && isSet(p.setting(file, own)) {
		raw = p.setting(file, own)
	}
	return value[string](raw), p.says(file, providers+"."+id, own, "chatgpt_base_url")
}

// says returns what the configuration and the keys of the thread say of keys of the top level or of a table,
// and of what lies below them, to compare it.
func (p *threadParams) says(file map[string]stdjson.RawMessage, keys ...string) string {
	var all strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&all, "%s = %s\n", key, p.setting(file, strings.SplitN(key, ".", 2)...))
		for _, below := range slices.Sorted(maps.Keys(p.Config)) {
			if strings.HasPrefix(below, key+".") {
				fmt.Fprintf(&all, "%s = %s\n", below, p.Config[below])
			}
		}
	}
	return all.String()
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
func (p *threadParams) restore(was *apptypes.Thread, file *configuration) {
	p.chosen = p.chooses() || p.ApprovalPolicy != ""
	if !p.chooses() {
		p.now.Sandbox = p.base.Sandbox
	}
	if p.ApprovalPolicy == "" {
		p.now.Policy = p.base.Policy
	}
	p.ApprovalsReviewer = cmp.Or(value[string](p.setting(file.keys, "approvals_reviewer")), byUser)
	if was.ModelProvider != "" {
		p.now.Provider = was.ModelProvider
		p.now.Address, p.now.Endpoint = p.provides(file.keys, was.ModelProvider)
	}
}

// keep gives a resumed thread what its last turn had, as far as the configuration allows or, if keep
// returns true, whole.
func (p *threadParams) keep(had *box.Grant, keep func(protocol.Access) bool) {
	if p.chosen {
		return
	}
	before := p.now
	before.Cwd, before.Policy, before.Sandbox = had.Cwd, had.Policy, had.Sandbox
	if a := beyond(&before, &p.base); !a.IsZero() && (keep == nil || !keep(a)) {
		before.Narrow(&p.base)
	}
	p.now = before
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
