package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Permitted returns what a profile says for a conversation in cwd whose commands have the environment env, nil if it
// restricts nothing.
func Permitted(p *permission.Profile, cwd string, env []string) *permission.Set {
	if p == nil {
		return nil
	}
	return permitted(p, cwd, env, mainTree(cwd))
}

func permitted(p *permission.Profile, cwd string, env []string, main string) *permission.Set {
	return p.Resolve(permission.Places{Cwd: cwd, TmpDir: run.Value(env, "TMPDIR"), Main: main})
}

// Permitted is [Permitted] for the profile of the sandbox. Where a folder has its main working tree stays what it was at first,
// since a command may change what says it.
func (s *Sandbox) Permitted(cwd string, env []string) *permission.Set {
	if s.options.Profile == nil {
		return nil
	}
	main, known := s.mains.Load(cwd)
	if !known {
		main, _ = s.mains.LoadOrStore(cwd, mainTree(cwd))
	}
	return permitted(s.options.Profile, cwd, env, main.(string))
}

// mainTree returns the folder that stands in the main working tree for one in a linked one, as git has it, else "".
func mainTree(cwd string) string {
	for top := cwd; ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		switch {
		case err == nil && !info.Mode().IsRegular(), err != nil && top == filepath.Dir(top):
			return ""
		case err != nil:
			continue
		}
		linked, err := Pointer(filepath.Join(top, ".git"), "gitdir:")
		if err != nil {
			return ""
		}
		common, err := Pointer(filepath.Join(linked, "commondir"), "")
		rel, within := paths.Within(cwd, top)
		if err != nil || !within || filepath.Base(common) != ".git" {
			return ""
		}
		return filepath.Join(filepath.Dir(common), rel)
	}
}

// Keeps returns why this system cannot keep a profile, or nil. A sandbox that cannot keep it lets nothing run.
func (o *Options) Keeps(p *permission.Profile) error {
	return o.keeps(p, p.Resolve(permission.Places{Cwd: string(filepath.Separator) + "x"}))
}

func (o *Options) keeps(p *permission.Profile, set *permission.Set) error {
	if set == nil {
		return nil
	}
	err := Available()
	switch {
	case len(o.Helper) > 0:
		err = errors.New("sandbox.helper does not know it; remove that")
	case err != nil:
	case runtime.GOOS == "darwin" && set.Closed():
		err = fmt.Errorf("%s must be readable on this system", permission.Root)
	case runtime.GOOS == "darwin" && strings.Contains(strings.Join(set.Patterns(), ""), `"`):
		err = errors.New("a pattern with a quote has no form here")
	case runtime.GOOS == "linux" && set.NeedsMounts():
		err = RoomsAvailable()
	}
	if err == nil && p.Domains != nil {
		err = HostsAvailable()
	}
	if err != nil {
		return fmt.Errorf("%s cannot be kept on this system: %v", p.Name, err) // no ErrUnavailable: nothing may run
	}
	return nil
}

// asked returns the names of the folders that should be writable: those of the profile if it says all about files.
func (s *Sandbox) asked(set *permission.Set, policy protocol.SandboxPolicy, cwd string, env []string) (names []string) {
	if !set.Whole() {
		return AskedRoots(policy, cwd, env)
	}
	if policy.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	for _, e := range set.Entries {
		if e.Access == permission.Write {
			names = append(names, e.Named)
		}
	}
	return names
}

// Beyond confines a command that may leave the sandbox, but not read what the profile denies. It is nil if that denies nothing.
func (s *Sandbox) Beyond(cwd string, env []string) (*Confinement, error) {
	set := s.Permitted(cwd, env).Denied()
	if set == nil {
		return nil, nil
	}
	if err := s.options.keeps(s.options.Profile, set); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	c, err := s.options.Programs.confinement(string(filepath.Separator))
	if err != nil {
		return nil, err
	}
	c.policy.NetworkAccess, c.set, c.cwd = true, set, cwd
	return c.compiled()
}
