package tools

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
)

// bounds are the folders in which the paths of calls must lie. Nil allows all paths.
type bounds []string

// boundsError reports a path outside the bounds.
type boundsError struct{ path string }

func (e *boundsError) Error() string {
	return e.path + " does not lie in one of the folders that the server's configuration allows you"
}

// resolve returns the real path of path, free of symbolic links, and the folder of the
// bounds that contains it. Without bounds it returns path unchanged. The error for a path
// outside the bounds does not reveal whether it exists.
func (b bounds) resolve(path string) (real, folder string, err error) {
	if b == nil {
		return path, "", nil
	}
	real, err = filepath.EvalSymlinks(path)
	if err != nil && !slices.ContainsFunc(b, func(folder string) bool { return paths.Below(path, folder) }) {
		return "", "", &boundsError{path}
	}
	if err != nil {
		return "", "", err
	}
	for _, folder := range b {
		if folder, err = filepath.EvalSymlinks(folder); err == nil && paths.Below(real, folder) {
			return real, folder, nil
		}
	}
	return "", "", &boundsError{path}
}

// repository refuses a folder whose git repository has its top outside the bounds.
func (b bounds) repository(dir string) error {
	if b == nil {
		return nil
	}
	if root := git.Root(dir); root != "" {
		if _, _, err := b.resolve(root); err != nil {
			return fmt.Errorf("its git repository: %w", err)
		}
	}
	return nil
}

// revive returns the thread with an id. With bounds it ends and refuses a thread that works neither
// in the bounds nor in a worktree of a repository there. The rollout may come from a user
// who could name other folders. The thread is resumed with cfg.
func (t *Table) revive(ctx context.Context, c *Call, id string, a thread.Attend, cfg protocol.Config) (*thread.Thread, error) {
	th, err := c.Threads.Revive(ctx, id, a, func() protocol.Config { return cfg })
	if err != nil || t.bounds == nil {
		return th, err
	}
	dir := th.Info().Cwd
	real, err := filepath.EvalSymlinks(dir)
	trees, none := filepath.EvalSymlinks(git.Worktrees(t.options.Home))
	if err == nil && none == nil && paths.Below(real, trees) {
		dir = git.CommonDir(real)
	}
	if _, _, err := t.bounds.resolve(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("argument /threadId: its folder: %w", err), c.Threads.End(context.WithoutCancel(ctx), id))
	}
	return th, nil
}

// addWorktree makes a git worktree of the repository that contains cwd, for a new conversation. The
// error names an argument.
func (t *Table) addWorktree(ctx context.Context, cwd string) (*git.Worktree, error) {
	if t.options.Home == "" {
		return nil, errors.New("argument /worktree: this server keeps no files, so it has no worktrees")
	}
	if err := config.CheckFolder(cwd); err != nil {
		return nil, err
	}
	err := t.bounds.repository(cwd)
	if common := git.CommonDir(cwd); err == nil && common != "" {
		_, _, err = t.bounds.resolve(common)
	}
	if err != nil {
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	w, err := t.options.Report.Scratch.AddWorktree(ctx, cwd, git.Worktrees(t.options.Home))
	if err != nil {
		return nil, fmt.Errorf("argument /worktree: %w", err)
	}
	return w, nil
}

// sameInConfig are an argument and the keys of the argument config that choose the same. A key holds for what is below it.
var sameInConfig = [][]string{
	{"approval-policy", "approval_policy"},
	{"model", "model"},
	{"profile", "profile"},
	{"sandbox", "sandbox_mode", "sandbox_workspace_write", "sandbox_permissions", "permissions", "default_permissions"},
	{"web-search", "web_search", "tools.web_search", "tools.web_search_request", "features.web_search_request"},
}

// unlockedConfig reads the texts of the argument config, and refuses keys that choose the same as a locked argument.
func unlockedConfig(overrides map[string]stdjson.RawMessage, locked []string) error {
	call, err := config.ReadCall(overrides)
	if err != nil {
		return fmt.Errorf("argument /config: %w", err)
	}
	for _, same := range sameInConfig {
		for _, key := range same[1:] {
			if slices.Contains(locked, same[0]) && config.Chooses(call, key) {
				return fmt.Errorf("argument /config: %s is locked with the argument /%s: the server's own configuration decides", key, same[0])
			}
		}
	}
	return nil
}

// Conversation applies to the choices of newConversation what holds for a call of codex: its locked
// arguments, the folders that it may name, and the keys of its config. Folder is the working folder of a
// call that names none. It returns warnings about keys that it has left out, or an error that names an
// argument.
func (t *Table) Conversation(cfg *protocol.Config, folder string) (warnings []string, err error) {
	given := map[string]bool{
		"model": cfg.Model != "", "profile": cfg.Profile != "", "cwd": cfg.Cwd != "", "approval-policy": cfg.ApprovalPolicy != "",
		"sandbox": cfg.Sandbox != "", "base-instructions": cfg.BaseInstructions != nil, "include-plan-tool": cfg.IncludePlanTool != nil,
		"config": len(cfg.Overrides) > 0,
	}
	maps.DeleteFunc(given, func(_ string, is bool) bool { return !is })
	if err := cmp.Or(unlocked(given, t.locked), unlockedConfig(cfg.Overrides, t.locked)); err != nil {
		return nil, err
	}
	if cfg.Cwd, _, err = t.bounds.resolve(cmp.Or(cfg.Cwd, folder)); err != nil {
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	return t.restrict(cfg)
}

// restrict removes keys that calls may not set from a call's configuration. It returns warnings for the caller, or an
// error that names an argument.
//
// Where folders are bounded, trusted calls are restricted too: a key that is not known
// to the server may name any folder, or a program that writes to any.
func (t *Table) restrict(cfg *protocol.Config) (warnings []string, err error) {
	bounded := t.bounds != nil
	if t.options.TrustedCalls && !bounded {
		return nil, nil
	}
	cfg.FromCall = true
	cfg.Overrides, warnings, err = config.CallKeys(cfg.Overrides, cfg.Cwd, bounded)
	if err != nil {
		return nil, fmt.Errorf("argument /config: %w", err)
	}
	return warnings, t.bounds.config(cfg)
}

const workspaceTable = "sandbox_workspace_write"

// maxRoots is how many folders a call may make writable.
const maxRoots = 32

// config checks the folders that a call makes writable by its configuration, which
// [config.CallKeys] returned.
//
// It follows links now, so that no command can put another folder in the place of one before it is asked
// about.
func (b bounds) config(cfg *protocol.Config) error {
	raw, ok := cfg.Overrides[workspaceTable]
	if !ok {
		return nil
	}
	const path = "config/" + workspaceTable
	var table map[string]stdjson.RawMessage
	if err := json.Unmarshal(raw, &table); err != nil {
		return fmt.Errorf("argument /%s: want an object", path)
	}
	for _, name := range []string{"exclude_slash_tmp", "exclude_tmpdir_env_var"} {
		if value, ok := table[name]; ok && b != nil && string(value) != "true" {
			return fmt.Errorf("argument /%s/%s: leave it out or set it to true: the server limits the folders that a call makes writable", path, name)
		}
	}
	raw, ok = table["writable_roots"]
	if !ok {
		return nil
	}
	var roots []string
	if err := json.Unmarshal(raw, &roots); err != nil || slices.Contains(roots, "") {
		return fmt.Errorf("argument /%s/writable_roots: want an array of folders", path)
	}
	if len(roots) > maxRoots {
		return fmt.Errorf("argument /%s/writable_roots: %d are more than %d folders", path, len(roots), maxRoots)
	}
	for i, root := range roots {
		if !filepath.IsAbs(root) {
			root = filepath.Join(cfg.Cwd, root)
		}
		root, _, err := b.resolve(filepath.Clean(root))
		if err != nil {
			return fmt.Errorf("argument /%s/writable_roots/%d: %w", path, i, err)
		}
		roots[i] = paths.Real(root)
	}
	var err error
	if table["writable_roots"], err = json.Marshal(roots, json.FormatNilSliceAsNull(false)); err != nil {
		return err
	}
	cfg.Overrides[workspaceTable], err = json.Marshal(table, json.Deterministic(true))
	return err
}
