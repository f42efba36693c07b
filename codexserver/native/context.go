package native

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/gitinfo"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// docName is the file with the user's rules for a folder.
const docName = "AGENTS.md"

// userInstructions are the rules of the user and of the project, "" without
// any: $CODEX_HOME/AGENTS.md, a separator, then the file of each folder from
// the git root down to cwd.
func userInstructions(cfg *config.Config) (text, warning string, err error) {
	own, _, err := readDoc(filepath.Join(cfg.Home, docName), 1<<20)
	if err != nil {
		return "", "", err
	}
	project, warning, err := projectDocs(cfg)
	if err != nil {
		return "", "", err
	}
	switch {
	case own == "":
		return project, warning, nil
	case project == "":
		return own, warning, nil
	}
	return own + "\n\n--- project-doc ---\n\n" + project, warning, nil
}

func projectDocs(cfg *config.Config) (text, warning string, err error) {
	left := cfg.ProjectDocMaxBytes
	var docs []string
	for _, dir := range foldersDown(gitinfo.Root(cfg.Cwd), cfg.Cwd) {
		for _, name := range append([]string{docName}, cfg.ProjectDocFallbacks...) {
			if left <= 0 {
				break
			}
			doc, cut, err := readDoc(filepath.Join(dir, name), left)
			if err != nil {
				return "", "", err
			}
			if cut {
				warning = fmt.Sprintf("%s is cut: together the files are longer than project_doc_max_bytes (%d)",
					filepath.Join(dir, name), cfg.ProjectDocMaxBytes)
			}
			if doc != "" {
				docs = append(docs, doc)
				left -= int64(len(doc))
				break
			}
		}
	}
	return strings.Join(docs, "\n\n"), warning, nil
}

// foldersDown are the folders from root, or cwd without one, down to cwd.
func foldersDown(root, cwd string) []string {
	if root == "" {
		return []string{cwd}
	}
	dirs := []string{cwd}
	for dir := cwd; dir != root; {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// readDoc reads at most limit bytes of a regular file. One that is not there is empty.
func readDoc(path string, limit int64) (text string, cut bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", false, err
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")), info.Size() > limit, nil
}

func instructionsMessage(text string) protocol.MessageItem {
	return userMessage("<user_instructions>\n\n" + text + "\n\n</user_instructions>")
}

func userMessage(text string) protocol.MessageItem {
	return protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: text}}}
}

// environmentMessage tells the model where it is and what it may do. With old,
// it tells only what has changed since; ok is false when nothing has.
func environmentMessage(now protocol.TurnContext, old *protocol.TurnContext, shell string) (m protocol.MessageItem, ok bool) {
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
	line(all && shell != "", "shell", shell)
	if b.Len() == 0 {
		return m, false
	}
	return userMessage("<environment_context>\n" + b.String() + "</environment_context>"), true
}

func networkWord(p protocol.SandboxPolicy) string {
	if p.Mode == protocol.SandboxDangerFullAccess || p.NetworkAccess {
		return "enabled"
	}
	return "restricted"
}
