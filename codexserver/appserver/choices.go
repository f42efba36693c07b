package appserver

import (
	stdjson "encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

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
