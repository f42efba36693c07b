// Package admit has the rule about what a call may ask for, with the settings of one server: which arguments and keys
// of config no call has ([Rules.Config]), in which folders its paths lie ([Bounds]), and beyond what a person is asked
// before anything starts ([Caller.Beyond]). It asks nobody itself: package thread does.
package admit

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
)

// Rules are those of one server. They are safe for concurrent use.
type Rules struct {
	// Locked are the arguments that no call may choose.
	Locked []string
	// Bounds are the folders in which the paths of calls must lie.
	Bounds Bounds

	calls     setting.Calls
	worktrees string // the server's folder for git worktrees, "" for none
}

// New returns the rules of settings. Home is the server's, "" for one that keeps no files.
func New(calls setting.Calls, home string) *Rules {
	r := &Rules{Locked: slices.Clone(calls.LockedArguments), Bounds: calls.Folders, calls: calls}
	if slices.Contains(r.Locked, "config") {
		r.Locked = append(r.Locked, "web-search") // which config can choose, too
	}
	if home != "" {
		r.worktrees = git.Worktrees(home)
	}
	return r
}

// Unlocked refuses arguments that are locked.
func Unlocked[V any](given map[string]V, locked []string) error {
	for _, name := range locked {
		if _, ok := given[name]; ok {
			return fmt.Errorf("argument /%s is locked: the server's own configuration decides", name)
		}
	}
	return nil
}

// sameInConfig returns for each argument the keys of the argument config that choose the same. A key holds for what is
// below it.
func sameInConfig() map[string][]string {
	same := protocol.ChoiceKeys()
	same["approval-policy"], same["model"], same["profile"] = []string{"approval_policy"}, []string{"model"},
		[]string{"profile"}
	same["sandbox"] = []string{"sandbox_mode", "sandbox_workspace_write", "sandbox_permissions", "permissions",
		"default_permissions"}
	return same
}

// Conversation is Config for the choices of newConversation, of which none is checked. Folder is the working folder of
// a call that names none.
func (r *Rules) Conversation(cfg *protocol.Config, folder string) (warnings []string, err error) {
	given := map[string]bool{
		"model": cfg.Model != "", "profile": cfg.Profile != "", "cwd": cfg.Cwd != "",
		"approval-policy": cfg.ApprovalPolicy != "",
		"sandbox":         cfg.Sandbox != "", "base-instructions": cfg.BaseInstructions != nil,
		"include-plan-tool": cfg.IncludePlanTool != nil,
		"config":            len(cfg.Overrides) > 0,
	}
	maps.DeleteFunc(given, func(_ string, is bool) bool { return !is })
	if err := Unlocked(given, r.Locked); err != nil {
		return nil, err
	}
	if cfg.Cwd, err = r.Folder(cmp.Or(cfg.Cwd, folder)); err != nil {
		return nil, err
	}
	return r.Config(cfg)
}

// Config applies the rules to the keys of config that a call chooses for a conversation in cfg.Cwd. It removes keys
// that calls may not set, and returns warnings for the caller. It refuses those that choose the same as a locked
// argument, and folders outside of the bounds. An error names an argument.
//
// Where folders are bounded, trusted calls are restricted too: a key that is not known
// to the server may name any folder, or a program that writes to any.
func (r *Rules) Config(cfg *protocol.Config) (warnings []string, err error) {
	if cfg.Overrides, err = config.ReadCall(cfg.Overrides); err != nil {
		return nil, fmt.Errorf("argument /config: %w", err)
	}
	for _, locked := range r.Locked {
		for _, key := range sameInConfig()[locked] {
			if config.Chooses(cfg.Overrides, key) {
				return nil, fmt.Errorf("argument /config: %s is locked with the argument /%s: the server's own "+
					"configuration decides", key, locked)
			}
		}
	}
	bounded := r.Bounds != nil
	if r.calls.TrustedCalls && !bounded {
		return nil, nil
	}
	cfg.FromCall = true
	cfg.Overrides, warnings, err = config.CallKeys(cfg.Overrides, cfg.Cwd, bounded)
	if err != nil {
		return nil, fmt.Errorf("argument /config: %w", err)
	}
	return warnings, r.Bounds.roots(cfg)
}

// Full reports whether a call chooses full access, by its argument or by the key of config.
func Full(cfg *protocol.Config) bool {
	const full = protocol.SandboxDangerFullAccess
	return cfg.Sandbox == full || cfg.Sandbox == "" && cfg.Overrides["sandbox_mode"] == string(full)
}

const workspaceTable = "sandbox_workspace_write"

// maxRoots is how many folders a call may make writable.
const maxRoots = 32

// roots checks the folders that a call makes writable by its configuration, which
// [config.CallKeys] returned.
//
// It follows links now, so that no command can put another folder in the place of one before it is asked
// about.
func (b Bounds) roots(cfg *protocol.Config) error {
	const path = "config/" + workspaceTable
	table, _ := cfg.Overrides[workspaceTable].(map[string]any) // no call has another value
	for _, name := range []string{"exclude_slash_tmp", "exclude_tmpdir_env_var"} {
		if value, ok := table[name]; ok && b != nil && value != true {
			return fmt.Errorf("argument /%s/%s: leave it out or set it to true: the server limits the folders that a "+
				"call makes writable", path, name)
		}
	}
	given, ok := table["writable_roots"]
	if !ok {
		return nil
	}
	var list []string
	if data, err := json.Marshal(given); err != nil || json.Unmarshal(data, &list) != nil || slices.Contains(list, "") {
		return fmt.Errorf("argument /%s/writable_roots: want an array of folders", path)
	}
	if len(list) > maxRoots {
		return fmt.Errorf("argument /%s/writable_roots: %d are more than %d folders", path, len(list), maxRoots)
	}
	roots := make([]any, len(list))
	for i, root := range list {
		if !filepath.IsAbs(root) {
			root = filepath.Join(cfg.Cwd, root)
		}
		root, _, err := b.Resolve(filepath.Clean(root))
		if err != nil {
			return fmt.Errorf("argument /%s/writable_roots/%d: %w", path, i, err)
		}
		roots[i] = paths.Real(root)
	}
	table["writable_roots"] = roots
	return nil
}
