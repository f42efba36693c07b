package tools

import (
	stdjson "encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// restrict removes keys that calls may not set from a call's configuration. It returns warnings for the caller, or an
// error that names an argument.
//
// Where folders are bounded, trusted calls are restricted too: a key that is not known
// to the server may name any folder, or a program that writes to any.
func (t *Table) restrict(cfg *protocol.Config) (warnings []string, err error) {
	bounded := t.options.bounds() != nil
	if t.options.TrustedCalls && !bounded {
		return nil, nil
	}
	cfg.FromCall = true
	cfg.Overrides, warnings, err = config.CallKeys(cfg.Overrides, cfg.Cwd, bounded)
	if err != nil {
		return nil, fmt.Errorf("argument /config: %w", err)
	}
	return warnings, t.options.bounds().config(cfg)
}

const workspaceTable = "sandbox_workspace_write"

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
	roots, err := b.all(path+"/writable_roots", absolute(cfg.Cwd, roots))
	if err != nil {
		return err
	}
	for i, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			roots[i] = real
		}
	}
	if table["writable_roots"], err = json.Marshal(roots, json.FormatNilSliceAsNull(false)); err != nil {
		return err
	}
	cfg.Overrides[workspaceTable], err = json.Marshal(table, json.Deterministic(true))
	return err
}
