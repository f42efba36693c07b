package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// Tier is how much confines a command.
type Tier string

// The tiers.
const (
	// TierThread is Landlock and seccomp; the zero value means it.
	TierThread Tier = "thread"
	// TierNamespaces adds user and mount namespaces.
	TierNamespaces Tier = "namespaces"
)

// Options are how to confine.
type Options struct {
	Tier Tier
	// Helper is an external program with its arguments, which confines instead.
	// It is run as HELPER… POLICY -- COMMAND…, POLICY being the JSON text of
	// {"mode", "writable_roots", "network_access", "cwd"}.
	Helper []string
	// Protected are folders that stay read-only below a writable one.
	Protected []string
}

// Sandbox confines what runs in one conversation. It is safe for concurrent use.
type Sandbox struct {
	options Options
	lacks   func() error // what this system lacks for the tier, found out once

	mu sync.Mutex
	// real is where the writable folders led to when they were first seen. A
	// command could put a symbolic link in the place of one that lies in another.
	real map[string]string
}

// New makes a conversation's sandbox.
func New(o Options) *Sandbox {
	return &Sandbox{options: o, real: map[string]string{}, lacks: sync.OnceValue(o.Tier.lacks)}
}

// ErrUnavailable is wrapped by the errors that say that this system cannot
// enforce a policy.
var ErrUnavailable = errors.New("no sandbox on this system")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, args...))
}

// Confinement is a sandbox for what runs in one folder under one policy.
type Confinement struct {
	policy  protocol.SandboxPolicy
	roots   []string // resolved
	protect []string
	helper  []string
	tier    Tier
	cwd     string
	rules   rules // of this process's, when there is no helper
}

// Confine prepares a confinement for what runs in cwd with the environment env.
// Its error wraps [ErrUnavailable] when this system cannot enforce the policy.
func (s *Sandbox) Confine(policy protocol.SandboxPolicy, cwd string, env []string) (*Confinement, error) {
	switch policy.Mode {
	case protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite:
	default:
		return nil, fmt.Errorf("sandbox: %q confines nothing", policy.Mode)
	}
	c := &Confinement{policy: policy, helper: s.options.Helper, tier: s.options.Tier, cwd: cwd}
	if c.tier == "" {
		c.tier = TierThread
	}
	for _, root := range WritableRoots(policy, cwd, env) {
		real, err := s.resolve(root)
		if err != nil {
			return nil, err
		}
		if real != "" && !slices.Contains(c.roots, real) {
			c.roots = append(c.roots, real)
		}
	}
	c.protect = s.Protected(c.roots)
	if len(c.helper) > 0 {
		if _, err := exec.LookPath(c.helper[0]); err != nil {
			return nil, unavailable("the helper: %v", err)
		}
		return c, nil
	}
	if err := s.lacks(); err != nil {
		return nil, err
	}
	if err := c.compile(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return c, nil
}

// resolve gives the folder that a root leads to, "" when there is none, and
// fails when it now leads elsewhere than it did first.
func (s *Sandbox) resolve(root string) (string, error) {
	real, err := filepath.EvalSymlinks(root)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.real[root]; ok && first != real {
		return "", fmt.Errorf("sandbox: %s was replaced: it led to %s and now leads to %s", root, first, real)
	}
	s.real[root] = real
	return real, nil
}

// Environ is to be added to the environment of what runs confined.
func (c *Confinement) Environ() []string {
	if c.policy.NetworkAccess {
		return nil
	}
	return []string{"CODEX_SANDBOX_NETWORK_DISABLED=1"}
}

// Start starts a command confined. It implements [command.Starter].
func (c *Confinement) Start(cmd *exec.Cmd) error {
	if len(c.helper) > 0 {
		if err := c.useHelper(cmd); err != nil {
			return err
		}
		return cmd.Start()
	}
	return c.start(cmd)
}

// useHelper makes cmd the helper, which becomes the command.
func (c *Confinement) useHelper(cmd *exec.Cmd) error {
	path, err := exec.LookPath(c.helper[0])
	if err != nil {
		return err
	}
	policy, err := json.Marshal(map[string]any{
		"mode":           c.policy.Mode,
		"writable_roots": c.roots,
		"network_access": c.policy.NetworkAccess,
		"cwd":            c.cwd,
	}, json.Deterministic(true), json.FormatNilSliceAsNull(false))
	if err != nil {
		return err
	}
	argv := append(slices.Clone(c.helper), string(policy), "--", cmd.Path)
	cmd.Path, cmd.Args = path, append(argv, cmd.Args[1:]...)
	return nil
}

var (
	_ command.Starter = (*Confinement)(nil)
	_ command.Orderer = (*Confinement)(nil)
)
