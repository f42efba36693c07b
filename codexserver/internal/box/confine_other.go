//go:build !linux || !(amd64 || arm64)

package box

import (
	"os/exec"
	"runtime"

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

func (c *Confinement) compile() error {
	c.rules = seatbelt{c.roots.Paths, c.protect, c.policy.NetworkAccess}.arguments()
	return nil
}

func (c *Confinement) apply(cmd *exec.Cmd) (string, error) {
	argv := append([]string{seatbeltProgram}, c.rules...)
	argv = append(argv, cmd.Path)
	cmd.Path, cmd.Args = seatbeltProgram, append(argv, cmd.Args[1:]...)
	return "", nil
}

// run fails: sandbox-exec confines programs, not functions of this one.
func (c *Confinement) run(func() error, bool) error {
	return unavailable("sandbox-exec confines only programs")
}

// Main is [run.Main], which starts commands unconfined.
func Main() { run.Main(nil) }

// HideProcess does nothing on this system.
func HideProcess() error { return nil }
