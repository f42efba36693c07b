package box

import "os/exec"

const seatbeltProgram = "/usr/bin/sandbox-exec"

// lacks returns an error that names what this system lacks, or nil.
func lacks() error { return trySeatbelt(seatbeltProgram) }

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

func (c *Confinement) start(cmd *exec.Cmd) error {
	if _, err := c.apply(cmd); err != nil {
		return err
	}
	return cmd.Start()
}

// Do fails: sandbox-exec confines programs, not functions of this one.
func (c *Confinement) Do(func() error) error {
	return unavailable("sandbox-exec confines only programs")
}

// read runs f as it is: the profile hides no file.
func (c *Confinement) read(f func() error) error { return f() }

// Main does nothing on this system.
func Main() {}

// HideProcess does nothing on this system.
func HideProcess() error { return nil }
