package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
)

// docName is the file with the user's rules for a folder. The file overrideName, where there
// is one, counts in its place.
const (
	docName      = "AGENTS.md"
	overrideName = "AGENTS.override.md"
)

// maxOwnDoc bounds the file with the user's own rules.
const maxOwnDoc = 1 << 20

// userInstructions returns the rules of the user and of the project, "" without any. They
// are those in $CODEX_HOME, a separator, and the file of each folder from the project's
// root down to cwd. A warning says which file was cut or left out, and why.
func userInstructions(cfg *config.Config) (text string, warnings []string, err error) {
	repository := git.Root(cfg.Cwd)
	root := projectRoot(cfg, repository)
	home := below(cfg.Home, root) // such as when the user's home is a repository
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	// The user's own file may be a link to any file, unless its folder is in the workspace.
	set := permitted(cfg)
	open, inside := safefile.Open, home || root != cfg.Cwd && below(cfg.Home, cfg.Cwd)
	if inside {
		open = openHere
	}
	own := ""
	for _, name := range []string{overrideName, docName} {
		path := filepath.Join(cfg.Home, name)
		doc, _, err := readDoc(open, set, path, maxOwnDoc)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil && !inside:
			return "", nil, err
		case err != nil:
			warn("%s is left out: %v", path, err)
		}
		if own = doc; own != "" {
			break
		}
	}
	var docs []string
	left := cfg.ProjectDocMaxBytes
	for _, dir := range foldersDown(root, cfg.Cwd) {
		bound := root
		if paths.Below(dir, repository) && paths.Below(repository, root) { // which others may have written
			bound = repository
		}
		if root == "" || home {
			bound = dir
		}
		open := func(path string) (*safefile.File, error) { return openWithin(bound, path) }
		// The first file that exists counts, even if it is empty.
		for _, name := range append([]string{overrideName, docName}, cfg.ProjectDocFallbacks...) {
			if left <= 0 {
				break
			}
			path := filepath.Join(dir, name)
			doc, cut, err := readDoc(open, set, path, left)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				warn("%s is left out: %v", path, err)
				continue
			}
			if cut {
				warn("%s is cut: together, the files are longer than project_doc_max_bytes (%d)", path,
					cfg.ProjectDocMaxBytes)
			}
			if doc != "" {
				docs = append(docs, doc)
				left -= int64(len(doc))
			}
			break
		}
	}
	text = strings.Join(docs, "\n\n")
	if own != "" && text != "" {
		own += "\n\n--- project-doc ---\n\n"
	}
	return own + text, warnings, nil
}

// projectRoot returns the nearest folder from cwd upwards that has one of the markers, "" if none has. A .git counts
// only if it is a repository for git.
func projectRoot(cfg *config.Config, repository string) string {
	for dir := cfg.Cwd; ; dir = filepath.Dir(dir) {
		if slices.ContainsFunc(cfg.ProjectRootMarkers, func(marker string) bool {
			if marker == ".git" {
				return dir == repository
			}
			_, err := os.Stat(filepath.Join(dir, marker))
			return err == nil
		}) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// foldersDown returns the folders from root down to cwd; only cwd when root is "".
func foldersDown(root, cwd string) []string {
	dirs := []string{cwd}
	for dir := cwd; root != "" && dir != root; {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// permitted returns what the user's profile says for a conversation, nil if it restricts nothing.
func permitted(cfg *config.Config) *permission.Set {
	if cfg.Permitted == nil { // and most have none
		return nil
	}
	return box.Permitted(cfg.Permitted, cfg.Cwd, environ(cfg))
}

// Withheld implements [engine.Withholder].
func (e *Engine) Withheld(cwd string) func(path string) error {
	cfg, err := e.configFor(context.Background(), protocol.Config{Cwd: cwd})
	if err != nil {
		return func(string) error { return err }
	}
	if set := permitted(cfg); set != nil {
		return set.Check
	}
	return nil
}

// readDoc reads at most limit bytes of a regular file.
func readDoc(
	open func(path string) (*safefile.File, error), set *permission.Set, path string, limit int64,
) (text string, cut bool, err error) {
	f, err := open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	if err := set.CheckFile(f); err != nil {
		return "", false, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", false, err
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")), f.Info().Size() > limit, nil
}

func message(role, text string) protocol.MessageItem {
	return protocol.MessageItem{Role: role, Content: []protocol.ContentItem{{Type: "input_text", Text: text}}}
}

func userMessage(text string) protocol.MessageItem { return message("user", text) }

// environmentMessage describes the folder, the policies and the shell to the model. With
// old, it describes only what has changed; ok is false when nothing has. Denied are what nobody can allow it to read.
func environmentMessage(
	now protocol.TurnContext, old *protocol.TurnContext, shell string, denied []string,
) (m protocol.MessageItem, ok bool) {
	var b strings.Builder
	line := func(changed bool, name, value string) {
		if changed {
			fmt.Fprintf(&b, "  <%s>%s</%s>\n", name, value, name)
		}
	}
	all := old == nil
	if all {
		old = &protocol.TurnContext{}
	}
	line(all || now.Cwd != old.Cwd, "cwd", now.Cwd)
	line(all || now.ApprovalPolicy != old.ApprovalPolicy, "approval_policy", string(now.ApprovalPolicy))
	policy, was := now.SandboxPolicy, old.SandboxPolicy
	line(all || policy.Mode != was.Mode, "sandbox_mode", string(policy.Mode))
	line(all || networkWord(policy) != networkWord(was), "network_access", networkWord(policy))
	if len(policy.WritableRoots) > 0 && (all || !slices.Equal(policy.WritableRoots, was.WritableRoots)) {
		b.WriteString("  <writable_roots>\n")
		for _, root := range policy.WritableRoots {
			fmt.Fprintf(&b, "    <root>%s</root>\n", root)
		}
		b.WriteString("  </writable_roots>\n")
	}
	if len(denied) > 0 {
		b.WriteString("  <denied_reads>\n")
		for _, path := range denied {
			fmt.Fprintf(&b, "    <path>%s</path>\n", path)
		}
		b.WriteString("  </denied_reads>\n")
	}
	line(all && runtime.GOOS == "windows", "operating_system", "Windows")
	line(all && shell != "", "shell", shell)
	if b.Len() == 0 {
		return m, false
	}
	return userMessage(text.Tagged("environment_context", strings.TrimSuffix(b.String(), "\n"))), true
}

func networkWord(p protocol.SandboxPolicy) string {
	if p.Mode == protocol.SandboxDangerFullAccess || p.NetworkAccess {
		return "enabled"
	}
	return "restricted"
}
