package appserver

import (
	stdjson "encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
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
	s, cwd := &p.now.sandbox, p.now.cwd
	sealed := filepath.Join(home, "codex-mcp") // rules, keys and sockets of this server
	if paths.Below(real(cwd), real(sealed)) {
		return configErrorf("argument /cwd: %s is or lies in %s, which is this server's, and Codex lets commands write in it", cwd, sealed)
	}
	const key = "writable_roots"
	if s.Type != apptypes.SandboxPolicyWorkspaceWrite || !fromCall || !isSet(p.setting(nil, workspaceTable, key)) {
		return nil
	}
	options := sandbox.Options{Protected: []string{home}, Sealed: []string{sealed}, Private: []string{home}, Named: p.base.named}
	if own, err := os.UserHomeDir(); err == nil {
		options.Private = append(options.Private, own)
	}
	asked := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: s.WritableRoots, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	roots, err := sandbox.New(options).Roots(asked, cwd, nil)
	if err != nil {
		return configErrorf("argument /config/%s/%s: %w", workspaceTable, key, err)
	}
	if len(roots.Notes) > 0 {
		return configErrorf("argument /config/%s/%s: %s", workspaceTable, key, roots.Notes[0])
	}
	s.WritableRoots = nil
	others := writable(s, cwd)
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

// writable returns the folders, without links, in which commands may write in the sandbox
// workspace-write.
func writable(s *apptypes.SandboxPolicy, cwd string) []string {
	folders := []string{real(cwd)}
	for _, folder := range s.WritableRoots {
		folders = append(folders, real(folder))
	}
	return append(folders, temporary(s)...)
}

// temporary returns the folders for temporary files, without links, in which commands may write in
// the sandbox workspace-write.
func temporary(s *apptypes.SandboxPolicy) (folders []string) {
	if !s.ExcludeSlashTmp {
		folders = append(folders, real("/tmp"))
	}
	if dir := os.Getenv("TMPDIR"); dir != "" && !s.ExcludeTmpdirEnvVar {
		folders = append(folders, real(dir))
	}
	return folders
}

// unlinked returns an error if a file of home leads to where commands may write: Codex's
// sandbox protects no such file, and the next server obeys it.
func unlinked(s *apptypes.SandboxPolicy, cwd, home string) error {
	if s.Type != apptypes.SandboxPolicyWorkspaceWrite {
		return nil
	}
	for _, linked := range config.Linked(home) {
		for _, folder := range writable(s, cwd) {
			if paths.Below(linked, folder) || paths.Below(real(linked), folder) {
				return configErrorf("a link in %s leads to %s, which commands could write; let it lead out of %s, or use the sandbox %s", home, linked, folder, apptypes.SandboxModeReadOnly)
			}
		}
	}
	return nil
}

// real returns a path without symbolic links, or path itself if it does not exist.
func real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
