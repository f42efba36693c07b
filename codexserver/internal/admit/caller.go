package admit

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Caller is who begins or resumes a conversation, and what it gets without a question. [Rules.Caller] makes that of a
// call, and [Trusted] the other one. The zero value gets nothing beyond the configuration unasked.
type Caller struct {
	client    string
	folders   func(context.Context) []string
	worktrees string
	full      setting.FullAccess
	confined  bool
	trusted   bool
}

// Caller returns the caller of a call. Client is the name that the client gave itself, "" if it gave none. Folders,
// unless nil, returns the client's, in which, and below which, it may have commands write unasked; it may ask the
// client. Those that calls are limited to, and the worktrees of the server, are the client's, too.
func (r *Rules) Caller(client string, folders func(context.Context) []string) Caller {
	all := func(ctx context.Context) (all []string) {
		if folders != nil {
			all = folders(ctx)
		}
		return append(all, r.Bounds...)
	}
	confined := slices.Contains(r.Locked, "approval-policy") || slices.Contains(r.Locked, "sandbox")
	return Caller{client: client, folders: all, worktrees: r.worktrees, full: r.calls.FullAccess, confined: confined}
}

// Trusted returns the program around the server, which may choose everything. What it resumes has no more than the
// configuration and its own choice give.
func Trusted() Caller { return Caller{trusted: true} }

// Trusted reports whether the caller is that of [Trusted].
func (c Caller) Trusted() bool { return c.trusted }

// Client returns the name that the client gave itself, or "".
func (c Caller) Client() string { return c.client }

// FullAccess says what happens to a caller that asks for more than it gets unasked.
func (c Caller) FullAccess() setting.FullAccess { return c.full }

// Resuming returns the caller for what a conversation had before that it resumes. One that may not choose the sandbox
// mode or the approval policy does not get them unasked.
func (c Caller) Resuming() Caller {
	if c.confined {
		c.full = setting.FullAccessAsk
	}
	return c
}

// Beyond returns what of an access needs a question.
func (c Caller) Beyond(ctx context.Context, a protocol.Access) protocol.Access {
	if a.IsZero() || c.trusted || c.full == setting.FullAccessAllow {
		return protocol.Access{}
	}
	if a.Mode != protocol.SandboxWorkspaceWrite {
		return a
	}
	var folders []string
	if c.folders != nil {
		folders = c.folders(ctx)
	}
	home, _ := os.UserHomeDir()
	homes := []string{home}
	if o := engine.OriginOf(ctx); o != nil {
		homes = append(homes, run.Value(o.Environ, "HOME"), run.Value(o.Environ, "USERPROFILE"))
	}
	within := writable(folders, c.worktrees, homes...)
	if within(a.Folder) {
		a.Mode = ""
	}
	a.Roots = slices.DeleteFunc(slices.Clone(a.Roots), within)
	return a
}

// writable returns a function that reports whether a real path lies in one of the folders or in a
// worktree. The homes, of the server and of its client, what contains them, and their hidden folders
// do not count: programs that a person starts obey files there.
func writable(folders []string, worktrees string, homes ...string) func(string) bool {
	if worktrees != "" {
		worktrees = paths.Real(worktrees)
	}
	homes = slices.DeleteFunc(slices.Clone(homes), func(home string) bool { return home == "" })
	for i, home := range homes {
		homes[i] = paths.Real(home)
	}
	private := func(path string) bool {
		return path == filepath.Dir(path) || slices.ContainsFunc(homes, func(home string) bool {
			if paths.Below(home, path) {
				return true
			}
			rel, ok := paths.Within(path, home)
			top, _, _ := strings.Cut(rel, string(filepath.Separator))
			return ok && hidden(top)
		})
	}
	var roots []string
	for _, folder := range folders {
		if real, err := filepath.EvalSymlinks(folder); err == nil && filepath.IsAbs(real) && !private(real) {
			roots = append(roots, real)
		}
	}
	return func(path string) bool {
		if worktrees != "" && path != worktrees && paths.Below(path, worktrees) {
			return true
		}
		return !private(path) && slices.ContainsFunc(roots, func(root string) bool { return paths.Below(path, root) })
	}
}

// hidden reports whether a folder of the home has settings and not work.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") ||
		runtime.GOOS == "windows" && strings.EqualFold(name, "AppData") ||
		runtime.GOOS == "darwin" && strings.EqualFold(name, "Library")
}
