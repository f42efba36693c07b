package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// logPaths returns the absolute paths of files of a server, without links in their folders. A path
// that is "" names none.
func logPaths(paths ...string) (all []string, err error) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // else it cannot be opened
			path = filepath.Join(dir, filepath.Base(path))
		}
		all = append(all, path)
	}
	return all, nil
}

// maxLog is the size, in bytes, at which the log of approvals or a trace is renamed and begun again.
const maxLog = 16 << 20

// logFile returns the path of the log of approvals, "" if there is none.
func (c *configuration) logFile() string {
	if c.settings.Approvals.Log != nil {
		return *c.settings.Approvals.Log
	}
	return filepath.Join(c.home, "codex-mcp", "approvals.log") // where no command ever writes
}

// openLogs opens the log of approvals and the file of --trace, unless the gateway passed them, for c.record
// and c.trace, and returns what closes them. The default log of approvals is made by its first line, so that a
// home that cannot be written keeps no server from starting: it approves nothing then.
func (c *configuration) openLogs(o *options, engine string) (end func(), err error) {
	end = func() {
		for _, l := range []io.Closer{c.record, c.trace} {
			if l != nil {
				_ = l.Close()
			}
		}
	}
	if path := c.logFile(); c.record == nil && path != "" {
		l := record.New(path, maxLog)
		if c.settings.Approvals.Log != nil {
			if err = c.checkPlace(o, engine, path); err == nil {
				err = l.Open()
			}
		}
		if err != nil {
			return end, fmt.Errorf("approvals.log: %w", err)
		}
		c.record = l
	}
	if c.trace == nil && o.trace != "" {
		if err := c.checkPlace(o, engine, o.trace); err != nil {
			return end, fmt.Errorf("--trace: %w", err)
		}
		l, err := safefile.OpenLog(o.trace, maxLog)
		if err != nil {
			return end, fmt.Errorf("--trace: %w", err)
		}
		c.trace = l
	}
	return end, nil
}

// checkPlace returns an error if commands could change the log at path, or a link on the way to it, by
// what is known at the start. Folders that calls name later are the engines' matter.
func (c *configuration) checkPlace(o *options, engine, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	cwd, err := filepath.Abs(o.folder)
	if err != nil {
		return err
	}
	cfg, err := config.Load(config.Layers{Home: c.home, Overrides: c.overrides})
	if err != nil {
		cfg = &config.Config{} // the first call reports it
	}
	private := []string{c.home}
	if home, err := os.UserHomeDir(); err == nil {
		private = append(private, home)
	}
	cfg.SandboxMode = protocol.SandboxWorkspaceWrite // which a call may choose
	roots, err := box.New(box.Options{Private: private, Named: cfg.NamedRoots}).Roots(cfg.Sandbox(), cwd, os.Environ())
	if err != nil {
		return err
	}
	folders := roots.Paths
	if engine == "codex" { // it also allows a folder for temporary files that holds a home
		folders = append(folders, box.AskedRoots(cfg.Sandbox(), "", os.Environ())...)
	}
	for _, root := range folders {
		if box.Reaches(dir, root) {
			return fmt.Errorf("commands can write in %s, and could change %s or what leads there; name a file "+
				"elsewhere", root, path)
		}
	}
	return nil
}
