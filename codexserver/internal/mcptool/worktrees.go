package mcptool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// worktrees are the git worktrees of threads. Nil means that the server has none.
type worktrees struct {
	store repo.Store
	most  int // worktrees there may be; 0 means no limit

	recovery sync.Once
	trouble  error // of the recovery
}

// storeIn returns the store below a folder.
func storeIn(home string, programs *sandbox.Programs) repo.Store {
	store := repo.StoreIn(home)
	store.Programs = programs
	return store
}

// open returns the store. The first call recovers from processes that were killed.
func (ws *worktrees) open() repo.Store {
	ws.recovery.Do(func() { ws.trouble = ws.store.Recover() })
	return ws.store
}

// unfinished says which conversations' changes may be only partly in the repository that
// contains dir, or in that of the conversation with an id.
func (ws *worktrees) unfinished(dir, id string) (words []string) {
	if ws == nil {
		return nil
	}
	unfinished := ws.store.Unfinished()
	if len(unfinished) == 0 {
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, one := range unfinished {
		if paths.Below(dir, one.Root) || id != "" && one.ThreadID == id {
			words = append(words, one.Error())
		}
	}
	return words
}

// errNoWorktrees reports that this server has no folder for worktrees.
var errNoWorktrees = errors.New("this server keeps no files, so it has no worktrees")

// create makes a worktree of the repository that contains cwd. The words describe it to the
// caller.
func (ws *worktrees) create(ctx context.Context, cwd string, uncommitted bool) (w *repo.Worktree, words string, err error) {
	if ws == nil {
		return nil, "", errNoWorktrees
	}
	if err := ws.room(); err != nil {
		return nil, "", err
	}
	w, skipped, err := ws.open().Create(ctx, repo.CreateOptions{Cwd: cwd, Uncommitted: uncommitted})
	if err != nil {
		return nil, "", err
	}
	lines := []string{fmt.Sprintf("The conversation works in a git worktree of its own, %s. Its changes are not in %s until codex-worktree applies them.", w.Cwd(), w.Root())}
	lines = append(lines, skips("Not taken along", skipped)...)
	if ws.trouble != nil {
		lines = append(lines, ws.trouble.Error())
	}
	return w, strings.Join(lines, "\n"), nil
}

// place makes a conversation work in a worktree.
func place(cfg *protocol.Config, w *repo.Worktree) {
	cfg.Cwd, cfg.Worktree = w.Cwd(), &protocol.Worktree{Path: w.Path(), ReadOnly: w.ReadOnly()}
}

// revived returns the configuration for resuming a thread.
func (t *Table) revived(id string) func() protocol.Config {
	return func() protocol.Config {
		return t.worktrees.config(id)
	}
}

// revive returns the thread with an id. With bounds it refuses a thread that works neither
// in the bounds nor in a worktree of a repository there. The rollout may come from a user
// who could name other folders.
func (t *Table) revive(ctx context.Context, c *call, id string, job *Job) (*thread.Thread, error) {
	return t.reviveAs(ctx, c, id, job, t.revived(id))
}

// reviveAs is revive with a function that returns the configuration for resuming the thread.
func (t *Table) reviveAs(ctx context.Context, c *call, id string, job *Job, config func() protocol.Config) (*thread.Thread, error) {
	th, err := c.Threads.Revive(ctx, id, job.attendance, config)
	if err != nil {
		return nil, err
	}
	return th, t.admit(ctx, c, id, th)
}

// fork returns a new thread with the history of the one with an id, under the same bounds.
func (t *Table) fork(ctx context.Context, c *call, id string, job *Job) (*thread.Thread, error) {
	cfg := t.revived(id)()
	if cfg.Worktree != nil {
		return nil, errors.New("argument /fork: the conversation has a worktree, which a copy of it cannot share")
	}
	th, err := c.Threads.Fork(ctx, id, job.attendance, func() protocol.Config { return cfg })
	if err != nil {
		return nil, err
	}
	return th, t.admit(ctx, c, th.ID(), th)
}

// errGone refuses a turn of a conversation whose worktree was discarded.
var errGone = errors.New("argument /threadId: its worktree is gone, so it has no folder to work in; begin a new conversation with codex")

// admit ends the thread and returns an error if the thread works neither in the bounds nor in a
// worktree of a repository there, or if its worktree is gone.
func (t *Table) admit(ctx context.Context, c *call, id string, th *thread.Thread) error {
	dir := th.Info().Cwd
	had := t.worktrees.has(dir)
	if !had && t.options.bounds() == nil {
		return nil
	}
	if tree := t.worktrees.config(id).Worktree; tree != nil && paths.Below(dir, tree.Path) {
		return nil
	}
	var err error
	if had {
		err = errGone
	} else if _, _, err = t.options.bounds().resolve(dir); err != nil {
		err = fmt.Errorf("argument /threadId: its folder: %w", err)
	}
	if err != nil {
		return errors.Join(err, c.Threads.End(context.WithoutCancel(ctx), id))
	}
	return nil
}

// has reports whether a folder lies where only worktrees do.
func (ws *worktrees) has(dir string) bool {
	if ws == nil || !ws.any() {
		return false
	}
	trees := ws.store.Trees
	if real, err := filepath.EvalSymlinks(trees); err == nil {
		trees = real
	}
	return paths.Below(dir, trees)
}

// config returns the configuration for resuming a thread that may have a worktree.
func (ws *worktrees) config(id string) (cfg protocol.Config) {
	if ws == nil {
		return cfg
	}
	if !ws.any() {
		return cfg
	}
	// If the worktree is not found, the thread's folder is one that no command may write to.
	if w, err := ws.open().Find(id); err == nil {
		w.Used()
		place(&cfg, w)
	}
	return cfg
}

// any reports whether there may be worktrees.
func (ws *worktrees) any() bool {
	_, err := os.Lstat(ws.store.Records)
	return err == nil
}

// bind records the thread of a worktree. If that fails it ends the thread, which could not
// find the worktree again.
func bind(ctx context.Context, c *call, w *repo.Worktree, t *thread.Thread) error {
	err := w.Bind(ctx, thread.CanonicalID(t.ID()))
	if err != nil {
		err = errors.Join(err, c.Threads.End(context.WithoutCancel(ctx), t.ID()))
	}
	return err
}

// drop removes a worktree in which no work was done, unless it is nil.
func drop(ctx context.Context, w *repo.Worktree) error {
	if w == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	err := w.Discard(ctx, "")
	var loss *repo.LossError // of the copied uncommitted work
	if errors.As(err, &loss) {
		err = w.Discard(ctx, loss.Token)
	}
	return err
}

// maxLines is how many lines a list in a result has at most.
const maxLines = 100

// rows returns a heading and a line for each element, or nothing if there are none.
func rows[E any](heading string, all []E, more int, line func(E) string) (lines []string) {
	if len(all) == 0 {
		return nil
	}
	lines = append(lines, heading+":")
	for _, one := range all[:min(len(all), maxLines)] {
		lines = append(lines, "- "+line(one))
	}
	if more += max(len(all)-maxLines, 0); more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return lines
}

func skips(heading string, skipped []repo.Skip) []string {
	return rows(heading, skipped, 0, func(s repo.Skip) string { return shown(s.Path) + ": " + elicit.OneLine(s.Reason, maxBrief) })
}

// shown returns a path as one quoted word without hidden characters, at most maxBrief
// runes.
func shown(path string) string { return Cut(elicit.ShowCommand([]string{path}), maxBrief) }
