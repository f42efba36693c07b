package thread

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Caller is who begins or resumes a thread by a call, and what it gets without a question.
type Caller struct {
	// Client is the name that the client gave itself, "" if it gave none.
	Client string
	// Folders returns the folders in which, and below which, the caller may have commands write
	// unasked. It may ask the client.
	Folders func(context.Context) []string
	// Worktrees is the server's folder for git worktrees, "" for none. Commands may write in each of
	// them unasked.
	Worktrees string
	// FullAccess says what happens to a caller that asks for more.
	FullAccess setting.FullAccess
	// Locked means that the caller may not choose the sandbox mode or the approval policy, so that a
	// thread that it resumes does not keep them either.
	Locked bool
}

// beyond returns what of an access needs a question.
func (c *Caller) beyond(ctx context.Context, a protocol.Access) protocol.Access {
	if a.IsZero() || c == nil || c.FullAccess == setting.FullAccessAllow {
		return protocol.Access{}
	}
	if a.Mode != protocol.SandboxWorkspaceWrite {
		return a
	}
	var folders []string
	if c.Folders != nil {
		folders = c.Folders(ctx)
	}
	homes := []string{home()}
	if o := engine.OriginOf(ctx); o != nil {
		homes = append(homes, run.Value(o.Environ, "HOME"), run.Value(o.Environ, "USERPROFILE"))
	}
	within := writable(folders, c.Worktrees, homes...)
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

// grant is what a person approved for a thread.
type grant struct{ principal, thread string }

// keeps returns a function for [protocol.Config.Keep]: a resumed thread keeps what needs no question,
// and what a person approved for it on this server.
func (s *Share) keeps(ctx context.Context, c *Caller, id string) func(protocol.Access) bool {
	return func(a protocol.Access) bool {
		if c == nil {
			return false
		}
		now := *c
		if now.Locked {
			now.FullAccess = setting.FullAccessAsk
		}
		more, _ := s.needs(ctx, &now, id, a)
		return more.IsZero()
	}
}

// needs returns what of an access of a thread no person has approved, zero if nothing, and the approval for it.
func (s *Share) needs(ctx context.Context, c *Caller, id string, a protocol.Access) (protocol.Access, grant) {
	more, g := c.beyond(ctx, a), grant{s.principal, CanonicalID(id)}
	if had, ok := s.table.grants.Load(g); ok && had.(protocol.Access).Equal(more) {
		more = protocol.Access{}
	}
	return more, g
}

// extends sets what the thread asks for before its first turn. It fails if the settings give it to
// nobody.
func (s *Share) extends(ctx context.Context, t *Thread, c *Caller) error {
	if c == nil {
		return nil
	}
	has := t.Info().Access
	if has.Mode == protocol.SandboxWorkspaceWrite {
		t.folder = has.Folder
	}
	more, g := s.needs(ctx, c, t.ID(), has)
	if more.IsZero() {
		return nil
	}
	r := protocol.AccessRequest{Access: more, Client: c.Client}
	if c.FullAccess == setting.FullAccessDeny {
		return refusedAccess(r, `calls.full_access = "deny" refuses it`)
	}
	t.asks, t.granted = r, func() { s.table.grants.Store(g, more) }
	return nil
}

// refusedAccess is the error of a call that does not get what it asks for.
func refusedAccess(r protocol.AccessRequest, why string) error {
	const remedy = `leave it out of the call, or let a person set calls.full_access = "allow" in codex-mcp.toml`
	return &engine.RefusedError{Err: fmt.Errorf("nothing was started: the call asks for %s, which is more than the configuration of the server gives, and %s; %s", approval.AccessWords(r), why, remedy)}
}

// admit asks for what the thread may not have without an approval. It returns nil if a person has
// approved it, now or earlier.
func (t *Thread) admit(ctx context.Context) error {
	if t.folder != "" {
		if real, err := filepath.EvalSymlinks(t.folder); err != nil || real != t.folder {
			return t.refuse("nothing was started: another folder is in the place of " + elicit.ShowCommand([]string{t.folder}) + ", in which the conversation may write")
		}
	}
	if t.granted == nil {
		return nil
	}
	d := t.host.decide(ctx, t.asks, approval.AccessQuestion(t.asks, t.host.thread.Engine))
	if d.Decision.Approves() {
		t.granted()
		t.granted = nil
		t.host.mu.Lock()
		turn := t.host.now.Turn
		t.host.mu.Unlock()
		if turn != nil {
			turn.Remark(givenBy(d) + " approved " + approval.AccessWords(t.asks) + " for this conversation.")
		}
		return nil
	}
	if ctx.Err() != nil {
		t.host.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	}
	why := d.ForModel()
	if d.Reason == elicit.ReasonDeclined && d.Feedback == "" {
		why = "the approval was declined"
	}
	return t.refuse(refusedAccess(t.asks, why).Error())
}

// refuse ends a turn that does not begin.
func (t *Thread) refuse(words string) error {
	t.host.Emit(protocol.Error{Message: words})
	return &engine.TurnError{Message: words}
}

// givenBy says who made a decision, at the beginning of a sentence.
func givenBy(d approval.Decision) string {
	who := "The " + string(d.By)
	if d.By == approval.ByClient && d.Client != "" {
		who += " " + elicit.ShowName(d.Client)
	}
	return who
}
