package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

// ErrAbsent reports that no server listens on a socket.
var ErrAbsent = errors.New("no shared server runs")

// startLimit is how long a server may take to start. It may have to start and ask Codex first.
const startLimit = time.Minute

// dial connects to the server of a name, reads its greeting and proves that it is the server:
// nothing has been sent until then. The error is [ErrAbsent] if there is none.
func (f *Folder) dial(ctx context.Context, name string) (*Conn, error) {
	raw, err := (&net.Dialer{Timeout: f.Patience}).DialContext(ctx, "unix", f.socket(name))
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent // its server has ended
	}
	if err != nil {
		return nil, err
	}
	c := newConn(raw.(*net.UnixConn))
	var greeting frame
	if err = c.SetDeadline(time.Now().Add(f.Patience)); err == nil {
		greeting, err = c.receive()
	}
	if err == nil || greeting.Refused != "" {
		if proof := f.prove(c, name); proof != nil {
			err = proof // whatever it says
		}
	}
	if err == nil && (greeting.Server != serverName || greeting.Frame != frameVersion) {
		err = errors.New("the server on the socket speaks another protocol")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared server: %w", err), c.Close())
	}
	return c, nil
}

// ask asks the server of a name for something. The caller closes the connection. The error is
// [ErrAbsent] if none runs, or it ends at this moment.
func (f *Folder) ask(ctx context.Context, name string, hello *frame) (*Conn, frame, error) {
	c, err := f.dial(ctx, name)
	var reply frame
	if err == nil {
		if err = c.send(hello); err == nil {
			reply, err = c.receive()
		}
		if err = errors.Join(err, c.SetDeadline(time.Time{})); err != nil {
			err = errors.Join(fmt.Errorf("shared server: %w", err), c.Close())
		}
	}
	if ended(err) {
		err = ErrAbsent
	}
	return c, reply, err
}

// ended reports whether an error is that of a connection to a server that ends at this moment.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Ask asks the process of a name for [Look], [Stop] or [Link], and returns what it does. After [Stop]
// it waits for the end of the process.
func (f *Folder) Ask(ctx context.Context, name, want string) (*Status, error) {
	c, reply, err := f.ask(ctx, name, &frame{Want: want})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if reply.Status == nil {
		return nil, errors.New("shared server: no status")
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, _ = c.Read(make([]byte, 1))
	reply.Status.Name = name
	return reply.Status, nil
}

// Connect connects a client to the server of a name. If none runs, it starts one with command, which
// must call [Started].
func (f *Folder) Connect(
	ctx context.Context, name string, from engine.Origin, command func() *exec.Cmd,
) (*Conn, error) {
	for range 4 { // a server may end while the client connects
		c, _, err := f.ask(ctx, name, &frame{Want: serve, From: from})
		if !errors.Is(err, ErrAbsent) {
			return c, err
		}
		limited, cancel := context.WithTimeout(ctx, startLimit)
		err = f.alone(limited, func() error {
			c, err := f.dial(ctx, name) // to that which another process has just started
			if errors.Is(err, ErrAbsent) {
				return f.launch(limited, name, command())
			}
			if err == nil {
				err = c.Close()
			}
			if ended(err) {
				err = nil
			}
			return err
		})
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the shared server ends again and again")
}

// launch starts the server of a name, and waits until it listens or ctx ends.
func (f *Folder) launch(ctx context.Context, name string, cmd *exec.Cmd) error {
	out, err := os.OpenFile(f.at(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	listens, its, err := os.Pipe()
	if err != nil {
		return err
	}
	defer listens.Close()
	defer its.Close()
	cmd.ExtraFiles = []*os.File{its}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, out, out
	cmd.SysProcAttr = ownSession()
	if err = cmd.Start(); err != nil {
		return err
	}
	its.Close()
	defer context.AfterFunc(ctx, func() { listens.Close() })()
	if n, err := listens.Read(make([]byte, 1)); n == 0 {
		return fmt.Errorf("the shared server did not start (%w): %s", err, f.Log(name))
	}
	return cmd.Process.Release()
}
