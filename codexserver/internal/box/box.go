package box

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
)

// Options say how to confine. The zero value confines with what the system has.
type Options struct {
	// Helper is an external program, with its arguments, that confines commands instead
	// of this package. It is run as HELPER… POLICY -- COMMAND…, where POLICY is a JSON
	// object with the members mode, writable_roots, network_access and cwd.
	Helper []string
	// Find finds the helper. Default: [exec.LookPath].
	Find func(program string) (path string, err error)
	// Protected are folders that stay read-only below a writable one.
	Protected []string
	// Trees is a folder in a protected one. What is in it may become writable. "" is none.
	Trees string
	// Sealed are folders of this server. They and what is in them never become writable, whatever
	// names them, and stay read-only below a writable folder.
	Sealed []string
	// Private are folders that do not become writable as a whole, nor their parents, such as the user's home.
	Private []string
	// Named are folders that the user's own configuration names: they may become writable although other rules refuse.
	Named []string
	// Hosts lets [Confinement.Hosts] have commands in workspace-write reach a network that the server serves them.
	Hosts bool
	// Layers are over caches, in workspace-write and with namespaces. The zero value makes none.
	Layers Layers
	// Profile is what the user's configuration allows besides the sandbox mode. Nil restricts nothing.
	Profile *permission.Profile
	// Programs are shared by the sandboxes of an engine, and hold their writable folders; nil makes new ones.
	Programs *Programs
}

// Sandbox confines what runs in one conversation. It is safe for concurrent use.
type Sandbox struct {
	options Options
	layers  layers
	mains   sync.Map // see [Sandbox.Permitted]
}

// Available returns why this system cannot confine programs, an error that wraps [ErrUnavailable], or nil.
func Available() error { return lacking() }

var lacking = sync.OnceValue(lacks)

// New makes a conversation's sandbox.
func New(o Options) *Sandbox {
	if o.Programs == nil {
		o.Programs = &Programs{}
	}
	if o.Find == nil {
		o.Find = exec.LookPath
	}
	return &Sandbox{options: o}
}

// ErrUnavailable is wrapped by errors that report that this system cannot enforce a policy.
var ErrUnavailable = errors.New("no sandbox on this system")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, args...))
}

// Confinement is a sandbox for commands in one folder under one policy.
type Confinement struct {
	policy  protocol.SandboxPolicy
	roots   Roots
	set     *permission.Set // of the profile, nil if it restricts nothing
	protect []string
	cwd     string
	helper  *Options // if it has one
	hosts   bool     // see [Confinement.Hosts]
	layers  *Sandbox // that has some for it, or nil
	rules   rules    // unset when there is a helper
}

// Confine prepares a confinement for commands in cwd with the environment env. The error wraps [ErrUnavailable] when
// this system cannot enforce the policy. After any other error, such as [ErrReplaced], nothing may run.
func (s *Sandbox) Confine(policy protocol.SandboxPolicy, cwd string, env []string) (*Confinement, error) {
	switch policy.Mode {
	case protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite:
	default:
		return nil, fmt.Errorf("sandbox: %q confines nothing", policy.Mode)
	}
	set := s.Permitted(cwd, env)
	roots, err := s.roots(set, policy, cwd, env)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := s.options.keeps(s.options.Profile, set); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	c := &Confinement{policy: policy, roots: roots, protect: s.Protected(roots.Paths), cwd: cwd,
		set: set}
	if len(s.options.Helper) == 0 {
		c.hosts = s.options.Hosts && policy.Mode == protocol.SandboxWorkspaceWrite && !policy.NetworkAccess &&
			HostsAvailable() == nil
		if s.options.Layers.Folder != "" && policy.Mode == protocol.SandboxWorkspaceWrite {
			c.layers = s
		}
		return c.compiled()
	}
	c.helper = &s.options
	if _, err := c.helper.Find(c.helper.Helper[0]); err != nil {
		return nil, unavailable("the helper: %v", err)
	}
	return c, nil
}

// Confine is [Sandbox.Confine] for a program of the server that writes only in the folders and has no network.
func (p *Programs) Confine(folders ...string) (*Confinement, error) {
	c, err := p.confinement(folders...)
	if err != nil {
		return nil, err
	}
	return c.compiled()
}

func (p *Programs) confinement(folders ...string) (*Confinement, error) {
	c := &Confinement{policy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}}
	for _, name := range folders {
		folder, err := openFolder(paths.Real(name))
		if err != nil {
			return nil, err
		}
		c.policy.Mode = protocol.SandboxWorkspaceWrite
		c.roots.Paths, c.roots.folders = append(c.roots.Paths, folder.path), append(c.roots.folders, folder)
	}
	return c, nil
}

func (c *Confinement) compiled() (*Confinement, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if err := c.compile(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return c, nil
}

func (c *Confinement) Notes() []string { return c.roots.Notes }

// Environ returns the variables to add to the environment of a confined command.
func (c *Confinement) Environ() []string {
	if c.policy.NetworkAccess {
		return nil
	}
	return []string{"CODEX_SANDBOX_NETWORK_DISABLED=1"}
}

// Do runs f confined. That covers f's own system calls, and not goroutines that it starts.
func (c *Confinement) Do(f func() error) error {
	if c.helper != nil {
		return unavailable("a helper confines only programs")
	}
	return c.rules.onThread(f)
}

// Read runs f, which only reads files, confined as far as a command could not read them. The error wraps
// [ErrUnavailable] if f did not run, because a helper may hide files, or there is no sandbox.
func (c *Confinement) Read(f func() error) error {
	if c.helper == nil && runtime.GOOS == "darwin" { // whose profile hides no file
		return f()
	}
	return c.Do(f)
}

// Start starts a command confined. It is a child of this process.
func (c *Confinement) Start(cmd *exec.Cmd) error {
	if c.helper == nil && runtime.GOOS == "linux" {
		return c.rules.onThread(cmd.Start)
	}
	if _, err := c.Apply(cmd); err != nil {
		return err
	}
	return cmd.Start()
}

// Apply implements [run.Confinement].
func (c *Confinement) Apply(cmd *exec.Cmd) (words string, err error) {
	if c.helper != nil {
		return "", c.useHelper(cmd)
	}
	return c.rules.apply(cmd)
}

// ReadOnly reports whether what runs confined can change no file. A helper may allow more than the policy says, and
// over the network a service, such as that of a container engine, may do it.
func (c *Confinement) ReadOnly() bool {
	return c.policy.Mode == protocol.SandboxReadOnly && !c.policy.NetworkAccess && c.helper == nil
}

func (c *Confinement) useHelper(cmd *exec.Cmd) error {
	path, err := c.helper.Find(c.helper.Helper[0])
	if err != nil {
		return err
	}
	policy, err := json.Marshal(map[string]any{
		"mode":           c.policy.Mode,
		"writable_roots": c.roots.Paths,
		"network_access": c.policy.NetworkAccess,
		"cwd":            c.cwd,
	}, json.Deterministic(true), json.FormatNilSliceAsNull(false))
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args = path, slices.Concat(c.helper.Helper, []string{string(policy), "--", cmd.Path}, cmd.Args[1:])
	return nil
}
