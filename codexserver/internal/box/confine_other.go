//go:build !linux || !(amd64 || arm64)

package box

import (
	"net"
	"os/exec"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

const seatbeltProgram = "/usr/bin/sandbox-exec"

// lacks returns an error that names what this system lacks, or nil.
func lacks() error {
	if runtime.GOOS == "darwin" {
		return trySeatbelt(seatbeltProgram)
	}
	return unavailable("%s/%s has no implementation", runtime.GOOS, runtime.GOARCH)
}

type rules []string // the arguments of sandbox-exec

func lacksHosts() error { return unavailable("the network by the host needs Linux") }

// Hosts is a confinement with a network by the host, of which this system has none.
type Hosts struct {
	*Confinement
	Serve func(net.Conn)
}

// Hosts returns nil.
func (c *Confinement) Hosts() *Hosts { return nil }

// Close does nothing.
func (h *Hosts) Close() {}

func (c *Confinement) compile() error {
	c.rules = seatbelt{c.roots.Paths, c.protect, c.policy.NetworkAccess, c.set}.arguments()
	return nil
}

func (r rules) apply(cmd *exec.Cmd) (string, error) {
	cmd.Path, cmd.Args = seatbeltProgram, slices.Concat([]string{seatbeltProgram}, r, []string{cmd.Path}, cmd.Args[1:])
	return "", nil
}

// onThread fails: sandbox-exec confines programs, not functions of this one.
func (rules) onThread(func() error) error { return unavailable("sandbox-exec confines only programs") }

// Main is [run.Main], which starts commands unconfined.
func Main() { run.Main(nil) }

// HideProcess does nothing on this system.
func HideProcess() error { return nil }

// RoomsAvailable returns why commands cannot have rooms: other systems have none.
func RoomsAvailable() error { return unavailable("namespaces need Linux") }
