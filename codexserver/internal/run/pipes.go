package run

import (
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const chunkSize = 8 << 10

// pipes are the reading ends of a command's streams and, until the command has started,
// their writing ends.
type pipes struct {
	out     *capture
	readers [2]*os.File
	writers [2]*os.File
	busy    sync.WaitGroup
	done    chan struct{} // closed when both streams are at their end
}

func openPipes(cmd *exec.Cmd, out *capture) (*pipes, error) {
	p := &pipes{out: out, done: make(chan struct{})}
	for i := range p.readers {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeChildEnds()
			p.abandon()
			return nil, fmt.Errorf("pipe: %w", err)
		}
		p.readers[i], p.writers[i] = r, w
	}
	cmd.Stdout, cmd.Stderr = p.writers[0], p.writers[1]
	return p, nil
}

func (p *pipes) closeChildEnds() {
	for _, w := range p.writers {
		if w != nil {
			w.Close()
		}
	}
}

// read starts the goroutines that read both streams.
func (p *pipes) read() {
	for i, stream := range []protocol.OutputStream{protocol.Stdout, protocol.Stderr} {
		p.busy.Go(func() {
			defer p.readers[i].Close()
			buf := make([]byte, chunkSize)
			for {
				n, err := p.readers[i].Read(buf)
				if n > 0 {
					p.out.write(stream, buf[:n])
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() {
		p.busy.Wait()
		close(p.done)
	}()
}

// end ends a process and then the reading of its output.
func (p *pipes) end(proc *Process) error {
	err := proc.End()
	if !within(p.done, drainGrace) {
		p.abandon()
	}
	return err
}

// drop drops all further output. It keeps reading, so that writers are not blocked.
func (p *pipes) drop() { p.out.close() }

// abandon drops all further output and closes the reading ends, which ends the readers.
func (p *pipes) abandon() {
	p.out.close()
	for _, r := range p.readers {
		if r != nil {
			r.Close()
		}
	}
}
