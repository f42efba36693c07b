package shared

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ErrAbsent reports that no server listens on a socket.
var ErrAbsent = errors.New("no shared server runs")

const (
	// answerLimit is how long a server may take to answer.
	answerLimit = 10 * time.Second
	// startLimit is how long a server may take to start. It may have to start and ask
	// Codex first.
	startLimit = time.Minute
)

// Conn is a connection to a server.
type Conn struct {
	*net.UnixConn
	in      *bufio.Reader
	version string
	pid     int

	patience time.Duration
}

// Read implements [io.Reader].
func (c *Conn) Read(b []byte) (int, error) { return c.in.Read(b) }

// PID returns the server's process id.
func (c *Conn) PID() int { return c.pid }

// Version returns the server's version.
func (c *Conn) Version() string { return c.version }

// errUnproven reports that who listens on a socket is not the server that the folder names.
var errUnproven = errors.New("the process that listens on the socket is not the one that its folder names")

// dial connects to the server of a name, reads its greeting and proves that it is the server:
// nothing has been sent until then. The error is [ErrAbsent] if there is none.
func (f *Folder) dial(ctx context.Context, name string, limit time.Duration) (*Conn, error) {
	c, err := f.dialOnce(ctx, name, limit)
	if errors.Is(err, errUnproven) {
		// The socket was the starting process's when the connection was made. The server has made it
		// its own before it greeted.
		c, err = f.dialOnce(ctx, name, limit)
	}
	return c, err
}

func (f *Folder) dialOnce(ctx context.Context, name string, limit time.Duration) (*Conn, error) {
	path := f.socket(name)
	if len(path) > maxSocket {
		return nil, fmt.Errorf("the path of the socket is too long: %s", path)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrAbsent
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket || !mine(info):
		return nil, fmt.Errorf("%s is not a socket of this user", filepath.Join(f.path, filepath.Base(path)))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, ErrAbsent // its server has ended
	case err != nil:
		return nil, err
	}
	c := &Conn{UnixConn: raw.(*net.UnixConn), patience: f.patience}
	c.in = bufio.NewReader(c.UnixConn)
	var g greeting
	if err = c.exchange(limit, nil, &g); err == nil {
		err = f.prove(c, name)
	}
	if err == nil && (g.Server != serverName || g.Frame != frameVersion) {
		err = errors.New("the server on the socket speaks another protocol")
	}
	if err == nil && g.Refused != "" {
		err = errors.New("it refuses: " + g.Refused)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared server: %w", err), c.Close())
	}
	c.version = g.Version
	return c, nil
}

// prove returns an error unless the server of a name is at the other end of a connection. A
// command in a sandbox may listen where it can write. It cannot write the file that names the
// server, and it cannot leave its sandbox, from which this process did not come.
func (f *Folder) prove(c *Conn, name string) error {
	user, pid, err := peer(c.UnixConn)
	if err != nil {
		return err
	}
	if user != os.Getuid() {
		return errors.New("another user listens on the socket")
	}
	is, err := identity(pid)
	if err != nil {
		return errUnproven // such as that of the starting process, which has ended
	}
	named, err := readSmall(f.identity(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if named != is {
		return errUnproven
	}
	its, err := confinement(pid)
	if err != nil {
		return err
	}
	own, err := confinement(os.Getpid())
	if err != nil {
		return err
	}
	if its != own {
		return fmt.Errorf("process %d, which listens on the socket, is in another sandbox than this process", pid)
	}
	c.pid = pid
	return nil
}

// maxIdentity is more bytes than the file that names a server has.
const maxIdentity = 1 << 10

// readSmall reads a file of this package.
func readSmall(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIdentity))
	return string(text), err
}

// exchange sends a frame, unless it is nil, and reads one.
func (c *Conn) exchange(limit time.Duration, send, receive any) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if send != nil {
		if err := writeFrame(c.UnixConn, send); err != nil {
			return err
		}
	}
	if err := readFrame(c.in, receive); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// ask sends a hello and returns the reply. It closes the connection after an error.
func (c *Conn) ask(h *hello) (*reply, error) {
	var r reply
	err := c.exchange(c.patience, h, &r)
	if err == nil && r.Refused != "" {
		err = errors.New("the shared server refuses: " + r.Refused)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &r, nil
}

// Status asks the server of a name what it does.
func (f *Folder) Status(ctx context.Context, name string) (*Status, error) {
	return f.control(ctx, name, wantStatus)
}

// Stop ends the server of a name with everything that it runs, and waits for its end.
func (f *Folder) Stop(ctx context.Context, name string) (*Status, error) {
	return f.control(ctx, name, wantStop)
}

// request asks the server of a name for something. The connection must be closed.
func (f *Folder) request(ctx context.Context, name, want string) (*Conn, *reply, error) {
	c, err := f.dial(ctx, name, f.patience)
	if again(err) {
		return nil, nil, ErrAbsent // it was killed at this moment
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := c.ask(&hello{Want: want})
	return c, r, err
}

func (f *Folder) control(ctx context.Context, name, want string) (*Status, error) {
	c, r, err := f.request(ctx, name, want)
	if err != nil {
		return nil, err
	}
	if r.Status == nil {
		return nil, errors.Join(errors.New("shared server: no status"), c.Close())
	}
	if want == wantStop {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		_, _ = c.Read(make([]byte, 1)) // until it has ended
	}
	r.Status.Name = name
	return r.Status, c.Close()
}

// Connect connects to the server of a name for a client of a version. If none runs, it
// starts one with command. The server gets the listening socket as its file descriptor 3
// and must call [Listener]. A server of another version serves the client if it has work
// left, and otherwise makes way for a new one.
func (f *Folder) Connect(ctx context.Context, name, version string, from Origin, command func() *exec.Cmd) (*Conn, error) {
	for range 4 { // a server may end while the client connects
		c, err := f.dial(ctx, name, f.patience)
		if errors.Is(err, ErrAbsent) {
			c, err = f.start(ctx, name, command)
		}
		if err != nil {
			if again(err) {
				continue
			}
			return nil, err
		}
		r, err := c.ask(&hello{Want: wantServe, Version: version, Origin: from})
		switch {
		case err == nil && !r.Ended:
			return c, nil
		case err == nil:
			if err := c.Close(); err != nil {
				return nil, err
			}
		case !again(err):
			return nil, err
		}
	}
	return nil, errors.New("the shared server ends again and again")
}

// again reports whether the error is that of a server that ended at that moment.
func again(err error) bool {
	if errors.Is(err, errStarted) {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// errStarted reports that a server that was just started has ended.
var errStarted = errors.New("the shared server did not start")

// start starts the server, unless another process just has, and connects to it.
func (f *Folder) start(ctx context.Context, name string, command func() *exec.Cmd) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	unlock, err := f.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c, err := f.dial(ctx, name, f.patience); !errors.Is(err, ErrAbsent) {
		return c, err
	}
	path := f.socket(name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a server that was killed
		return nil, err
	}
	if err := f.launch(name, command()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	c, err := f.dial(ctx, name, startLimit)
	if err != nil {
		return nil, fmt.Errorf("%w (%w): %s", errStarted, err, f.Log(name))
	}
	return c, nil
}

// launch starts the server of a name, which listens on the socket.
func (f *Folder) launch(name string, cmd *exec.Cmd) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.socket(name), Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	socket, err := l.File()
	if err != nil {
		return err
	}
	defer socket.Close()
	out, err := os.OpenFile(f.at(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, out, out
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
