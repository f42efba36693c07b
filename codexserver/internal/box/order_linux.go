//go:build amd64 || arm64

package box

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"golang.org/x/sys/unix"
)

// order is Order without a helper. It sends the filter and, as a file,
// the Landlock ruleset.
func (c *Confinement) order(cmd *exec.Cmd) (run.Order, error) {
	return run.Order{Cmd: cmd, Confinement: c.commandFilter().encode(), Files: []*os.File{c.rules.ruleset}}, nil
}

// startOrdered starts a command in a launcher's process.
func startOrdered(cmd *exec.Cmd, confinement []byte, files []*os.File) error {
	if len(confinement) == 0 && len(files) == 0 {
		return cmd.Start()
	}
	filter, err := decodeBPF(confinement)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return errors.New("sandbox: the order does not have one ruleset")
	}
	c := &Confinement{rules: rules{ruleset: files[0]}}
	return c.onThread(filter, func() error {
		if err := installFilter(limitLock()); err != nil {
			return err
		}
		return cmd.Start()
	})
}

const instructionSize = 8

// encode returns the program's instructions in the kernel's format.
func (p bpf) encode() []byte {
	b := make([]byte, 0, len(p)*instructionSize)
	for _, i := range p {
		b = binary.NativeEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}

func decodeBPF(b []byte) (bpf, error) {
	if len(b) == 0 || len(b)%instructionSize != 0 {
		return nil, errors.New("sandbox: the order has no filter")
	}
	p := make(bpf, 0, len(b)/instructionSize)
	for ; len(b) > 0; b = b[instructionSize:] {
		p = append(p, unix.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.NativeEndian.Uint32(b[4:])})
	}
	return p, nil
}
