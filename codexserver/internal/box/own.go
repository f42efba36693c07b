package box

import (
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Available returns why this system cannot confine programs, an error that wraps [ErrUnavailable], or nil.
func Available() error { return system() }

// Confine prepares a confinement in which a program of the server writes only in the folders, and
// has no network. The error wraps [ErrUnavailable] when this system cannot confine it.
func (p *Programs) Confine(folders ...string) (*Confinement, error) {
	if err := system(); err != nil {
		return nil, err
	}
	c := &Confinement{policy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}}
	for _, name := range folders {
		folder, err := openFolder(paths.Real(name))
		if err != nil {
			return nil, err
		}
		c.policy.Mode = protocol.SandboxWorkspaceWrite
		c.roots.Paths, c.roots.folders = append(c.roots.Paths, folder.path), append(c.roots.folders, folder)
	}
	return c, c.compile()
}
