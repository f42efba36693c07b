package appserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

// profileModes are the sandbox modes of Codex's own profiles of permissions.
var profileModes = map[string]protocol.SandboxMode{
	":read-only": protocol.SandboxReadOnly, ":workspace": protocol.SandboxWorkspaceWrite,
	":danger-full-access": protocol.SandboxDangerFullAccess,
}

// mode returns the sandbox mode as Codex chooses it: by the parameter, else by the strongest layer
// that has one or names a profile, else by the person's decision about the folder. Plain is true
// for a profile: it leaves out the table sandbox_workspace_write.
func (s *settings) mode(file *configuration, cwd string) (mode protocol.SandboxMode, plain bool, err error) {
	if s.Sandbox != "" {
		return protocol.SandboxMode(s.Sandbox), false, nil
	}
	for _, layer := range append([]keys{s.own}, file.layers...) {
		if raw := layer.text(profileKey); raw != nil {
			if mode = profileModes[get[string](layer, profileKey)]; mode == "" {
				return "", false, configErrorf("%s: the profile of permissions %.200s cannot be given to a turn of "+
					"Codex; pass the argument sandbox, or write %s in its place", profileKey, raw, modeKey)
			}
			return mode, true, nil
		}
		if raw := layer.text(modeKey); raw != nil {
			if mode = get[protocol.SandboxMode](layer, modeKey); decide.Width(mode) < 0 {
				return "", false, configErrorf("%s: %.200s is none of %s", modeKey, raw,
					text.Or(protocol.SandboxModes()))
			}
			return mode, false, nil
		}
	}
	if len(trusts(file.keys, cwd)) > 0 {
		return protocol.SandboxWorkspaceWrite, false, nil
	}
	return protocol.SandboxReadOnly, false, nil
}

// workspace returns the sandbox workspace-write with the settings of its table.
func workspace(all keys, cwd string) (s protocol.SandboxPolicy, err error) {
	err = all.read(&s, workspaceTable)
	if fault, is := errors.AsType[*json.SemanticError](err); is {
		return s, configErrorf("%s%s: %w", workspaceTable, strings.ReplaceAll(string(fault.JSONPointer), "/", "."), err)
	}
	s.Mode = protocol.SandboxWorkspaceWrite
	for i, root := range s.WritableRoots {
		s.WritableRoots[i] = absolute(root, cwd)
	}
	return s, err
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
	folders := []string{cwd, paths.Real(cwd)}
	if root := repository(cwd); root != "" {
		folders = append(folders, root, paths.Real(root))
	}
	for _, folder := range folders {
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
	if err != nil || filepath.Base(trees) != "worktrees" || filepath.Base(filepath.Dir(trees)) != ".git" ||
		paths.Real(back) != paths.Real(entry) {
		return ""
	}
	return filepath.Dir(filepath.Dir(trees))
}

// grants returns what the settings and Codex's configuration give a conversation in a folder. The
// policy is "" where only Codex knows it.
func (s *settings) grants(file *configuration, cwd string) (g decide.Grant, err error) {
	all := file.with(s.own)
	g.Cwd, g.Policy = cwd, protocol.ApprovalPolicy(s.ApprovalPolicy)
	mode, plain, err := s.mode(file, cwd)
	if err != nil {
		return g, err
	}
	opened, err := workspace(all, cwd)
	switch g.Sandbox.Mode = mode; {
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
		g.Search = says(all, "web_search", "tools.web_search", "features.web_search_request",
			"features.web_search_cached", "features.standalone_web_search")
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
func says(all keys, dotted ...string) (said string) {
	for _, key := range dotted {
		said += fmt.Sprintf("%s = %s\n", key, all.text(strings.Split(key, ".")...))
	}
	return said
}

// beyond returns what a conversation may do beyond base, the configuration. In full access Codex lets
// the model search live, and commands reach the network.
func beyond(g, base *decide.Grant) protocol.Access {
	a := g.Beyond(base, box.Writable(g.Sandbox, g.Cwd, os.Environ()))
	if a.Mode == protocol.SandboxDangerFullAccess {
		a.Network, a.WebSearch = !base.Sandbox.NetworkAccess, g.Search != ""
	}
	return a
}

// earlier is what is known of a conversation that is resumed.
type earlier struct {
	apptypes.Thread                    // as far as Codex says
	had             *decide.Grant      // by its last turn; nil if that is not known
	kept            *threadfile.Thread // what its calls chose, see choices; may be nil
}

// restore gives a resumed thread what its last turn had, as far as the configuration allows or, if keep returns true, whole,
// and nothing that its calls chose not to have. What the call that resumes it chooses stays. For the rest Codex would
// take what the last turn had, and the model provider cannot be another one than before. Wished is true if earlier calls
// chose the web search.
func (s *settings) restore(was *earlier, file keys, wished bool, keep func(protocol.Access) bool) {
	boxes, policy := s.Sandbox != "" ||
		slices.ContainsFunc(sandboxKeys, func(key string) bool { return s.own[key] != nil }), s.ApprovalPolicy != ""
	s.keeps = boxes || policy
	if !boxes {
		s.now.Sandbox = s.base.Sandbox
	}
	if !policy {
		s.now.Policy = s.base.Policy
	}
	all := file.with(s.own)
	s.ApprovalsReviewer = cmp.Or(get[string](all, "approvals_reviewer"), apptypes.ApprovalsReviewerUser)
	if was.ModelProvider != "" {
		s.now.Provider = was.ModelProvider
		s.now.Address, s.now.Endpoint = provides(all, was.ModelProvider)
	}
	more := func() protocol.Access { // than the configuration gives, and nobody has approved
		a := beyond(&s.now, &s.base)
		if keep != nil && keep(a) {
			return protocol.Access{}
		}
		return a
	}
	last := was.had != nil && !s.keeps
	if last {
		s.now.Cwd, s.now.Policy, s.now.Sandbox = was.had.Cwd, was.had.Policy, was.had.Sandbox
	}
	if wished && more().WebSearch {
		s.own, s.now.Search = s.own.without(at("live", "web_search")), s.base.Search
	}
	if last && !more().IsZero() {
		s.now.Narrow(&s.base)
	}
	was.kept.Limit(&s.now, policy, boxes)
	var before protocol.Choices
	if was.kept != nil {
		before = was.kept.Choices
	}
	if !s.keeps {
		s.kept, s.keeps = was.kept, s.choices != before
	}
}

// keepToReading lets a thread only run commands that read, as far as Codex has settings
// for that.
func (s *settings) keepToReading(file keys) {
	s.own = s.own.with(at("disabled", "web_search")).with(at(false, "features", "apps")).with(at(false, "features",
		"plugins"))
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
	if paths.Below(paths.Real(cwd), paths.Real(sealed)) {
		return configErrorf("argument /cwd: %s is or lies in %s, which is this server's, and Codex lets commands "+
			"write in it", cwd, sealed)
	}
	const key = "writable_roots"
	if p.Mode != protocol.SandboxWorkspaceWrite || !fromCall || s.own.text(workspaceTable, key) == nil {
		return nil
	}
	options := box.Options{Protected: []string{home}, Sealed: []string{sealed}, Private: []string{home},
		Named: s.base.Named}
	if own, err := os.UserHomeDir(); err == nil {
		options.Private = append(options.Private, own)
	}
	asked := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: p.WritableRoots,
		ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
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
		inOther := slices.ContainsFunc(others, func(other string) bool { return paths.Below(path, other) })
		if inOther || slices.ContainsFunc(roots.Paths,
			func(other string) bool { return other != path && paths.Below(path, other) }) {
			continue
		}
		if i := slices.IndexFunc(others, func(other string) bool { return paths.Below(other, path) }); i >= 0 {
			return configErrorf("argument /config/%s/%s: %s has %s in it, which is writable too and which a command "+
				"could then replace", workspaceTable, key, path, others[i])
		}
		p.WritableRoots = append(p.WritableRoots, path)
	}
	return nil
}

// reaches records the folders that commands in cwd can write under a policy, before one runs. After an error none may run: it
// could write a guarded file, or one to which a link in home leads. Codex's sandbox protects no such file, and the
// next server obeys it.
func (e *Engine) reaches(cwd string, s *protocol.SandboxPolicy, home string) error {
	e.programs.Given(cwd)
	if s.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	e.programs.Add(append([]string{cwd}, s.WritableRoots...)...)
	for _, folder := range box.Writable(*s, cwd, os.Environ()) {
		for _, linked := range config.Linked(home) {
			if paths.Below(linked, folder) || paths.Below(paths.Real(linked), folder) {
				return configErrorf("a link in %s leads to %s, which commands could write; let it lead out of %s, or "+
					"use the sandbox %s", home, linked, folder, protocol.SandboxReadOnly)
			}
		}
		for _, file := range e.options.Guarded {
			if box.Reaches(filepath.Dir(file), folder) {
				return &engine.RefusedError{Err: fmt.Errorf("commands could write in %s, which holds %s, a file of "+
					"this server; choose another folder, or the sandbox %s", folder, file, protocol.SandboxReadOnly)}
			}
		}
	}
	return nil
}
