package shared

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// listenerFile is the file descriptor of the socket of a server, see [Folder.Connect].
const listenerFile = 3

// Listener returns the socket on which this process must listen, its name, and its folder, which
// is that of home. From now on the folder names this process as the server.
func Listener(home string) (_ *net.UnixListener, _ *Folder, name string, err error) {
	file := os.NewFile(listenerFile, "socket")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, nil, "", fmt.Errorf("the socket of the shared server: %w", err)
	}
	unix, ok := l.(*net.UnixListener)
	if !ok {
		return nil, nil, "", errors.Join(errors.New("the shared server got a socket of another kind"), l.Close())
	}
	name = strings.TrimSuffix(filepath.Base(unix.Addr().String()), ".sock")
	f, err := Open(home)
	if err == nil {
		err = errors.Join(f.claim(name), listen(unix))
	}
	if err != nil {
		return nil, nil, "", errors.Join(err, l.Close())
	}
	return unix, f, name, nil
}

// claim makes the folder name this process as the server of a name.
func (f *Folder) claim(name string) error {
	own, err := identity(os.Getpid())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.identity(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(own)
	return errors.Join(err, file.Close())
}

// Server serves the clients of one user.
type Server struct {
	// Folder has the socket of the name Name. Version is the server's version.
	Folder        *Folder
	Name, Version string
	// Serve serves a client on conn, which it closes, until the client has gone and its
	// work has ended, or ctx ends. It calls left when the client has gone.
	Serve func(ctx context.Context, conn io.ReadWriteCloser, from Origin, left func())
	// Working returns how many clients have a turn that runs.
	Working func() int
	// About describes the server, and Traits are those of its [Status].
	About  string
	Traits map[string]string
	// Idle is how long the server runs without a client and without work.
	Idle time.Duration
	// Logger logs refused connections. It must be set.
	Logger *slog.Logger

	began time.Time
	stop  func()

	socket os.FileInfo // of the socket on which it listens

	load load
}

// load is whom a [Server] serves.
type load struct {
	mu      sync.Mutex
	clients []*Client // connected
	served  int       // calls of Serve
	closing bool
	// stoppers have stopped the server and wait for its end.
	stoppers []io.Closer
	changed  chan struct{} // has an element if served may have become 0
}

// Run serves on a socket until ctx ends, a client stops the server, or the server has been
// idle for long enough. It returns after the last client's work has ended. Clients that have
// stopped the server wait until [Server.Close].
func (s *Server) Run(ctx context.Context, l *net.UnixListener) error {
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	s.began, s.load.changed = time.Now(), make(chan struct{}, 1)
	s.socket, _ = os.Lstat(s.Folder.socket(s.Name)) // nil if it has gone already
	var running sync.WaitGroup
	running.Go(func() {
		accept(ctx, l, s.Logger, func(c *net.UnixConn) { running.Go(func() { s.handle(ctx, c) }) })
	})
	s.wait(ctx)
	s.retire(context.WithoutCancel(ctx))
	err := l.Close()
	s.stop()
	running.Wait()
	return err
}

// accept calls handle for each connection until the listener is closed.
func accept(ctx context.Context, l *net.UnixListener, log *slog.Logger, handle func(*net.UnixConn)) {
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Warn("accept", "error", err) // too many open files, perhaps
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		handle(c)
	}
}

// Close tells the clients that have stopped the server that it has ended. It is called after Run,
// when what served them, such as the engine, is closed too.
func (s *Server) Close() {
	for _, c := range s.load.stoppers {
		_ = c.Close()
	}
}

// sweepAfter is how long a server waits before it removes what others have left, so that it does not slow its
// first client.
const sweepAfter = 2 * time.Second

// wait returns when the server has to end.
func (s *Server) wait(ctx context.Context) {
	idle := time.NewTimer(max(s.Idle, startLimit)) // the first client is on its way
	defer idle.Stop()
	sweep := time.NewTimer(sweepAfter)
	defer sweep.Stop()
	look := time.NewTicker(max(s.Idle, time.Millisecond))
	defer look.Stop()
	for {
		s.load.mu.Lock()
		unused, over := s.load.served == 0, s.load.served == 0 && s.load.closing
		s.load.mu.Unlock()
		if over {
			return
		}
		if !unused {
			idle.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			s.retireIf(ctx, func() bool { return s.load.served == 0 })
			idle.Reset(s.Idle)
		case <-look.C:
			if s.lost() {
				s.Logger.Warn("the server ends: its folder has gone, so no client can find it")
				return
			}
		case <-s.load.changed:
			idle.Reset(s.Idle)
		case <-sweep.C:
			if err := s.Folder.Sweep(ctx); err != nil {
				s.Logger.Warn("files of servers that have ended", "error", err)
			}
		}
	}
}

// lost reports whether no client is connected and none can come, because the socket is no longer
// where clients look for it, such as after the home was removed. What still works then waits for
// nobody.
func (s *Server) lost() bool {
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	if len(s.load.clients) > 0 || s.load.closing {
		return false
	}
	now, err := os.Lstat(filepath.Join(s.Folder.path, s.Name+".sock"))
	return s.socket == nil || errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, s.socket)
}

// enter adds a client, and fails if the server takes none.
func (s *Server) enter(c *Client) bool {
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	if s.load.closing {
		return false
	}
	s.load.clients = append(s.load.clients, c)
	s.load.served++
	s.change()
	return true
}

// change wakes wait. The caller holds s.load.mu.
func (s *Server) change() {
	select {
	case s.load.changed <- struct{}{}:
	default:
	}
}

// retire makes the server take no new client. It removes the socket, so that the next
// client starts another server.
func (s *Server) retire(ctx context.Context) { s.retireIf(ctx, func() bool { return true }) }

// retireIf retires the server if holds, which is called with s.load.mu held.
func (s *Server) retireIf(ctx context.Context, holds func() bool) bool {
	// Without the lock, a process that is starting a server could lose its socket.
	ctx, cancel := context.WithTimeout(ctx, answerLimit/2)
	defer cancel()
	unlock, err := s.Folder.lock(ctx, s.Name)
	if err != nil {
		s.Logger.Warn("the socket stays", "error", err)
		return false
	}
	defer unlock()
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	if s.load.closing {
		return true
	}
	if !holds() {
		return false
	}
	if err := os.Remove(s.Folder.socket(s.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Logger.Warn("the socket", "error", err)
	}
	s.load.closing = true
	s.change()
	return true
}

func (s *Server) status() *Status {
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	clients := make([]Client, len(s.load.clients))
	for i, c := range s.load.clients {
		clients[i] = *c
	}
	return &Status{
		PID: os.Getpid(), Version: s.Version, Began: s.began, Clients: clients, Working: s.Working(), Retired: s.load.closing, About: s.About, Traits: s.Traits,
	}
}

// handle serves one connection.
func (s *Server) handle(ctx context.Context, raw *net.UnixConn) {
	c := &Conn{UnixConn: raw, in: bufio.NewReader(raw)}
	over := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	h, err := greet(c, s.Version)
	if err != nil {
		over()
		if ctx.Err() == nil && !errors.Is(err, io.EOF) { // the client has left after the greeting
			s.Logger.Warn("a connection is refused", "error", err)
		}
		_ = raw.Close()
		return
	}
	switch h.Want {
	case wantServe:
		s.serve(ctx, c, h, over)
		return
	case wantStatus:
		_ = writeFrame(raw, &reply{Status: s.status()})
	case wantStop:
		s.Logger.Warn("a client stops the server")
		_ = writeFrame(raw, &reply{Status: s.status()})
		over()
		s.load.mu.Lock()
		s.load.stoppers = append(s.load.stoppers, raw)
		s.load.mu.Unlock()
		s.stop()
		return
	default:
		_ = writeFrame(raw, &reply{Refused: "unknown frame"})
	}
	over()
	_ = raw.Close()
}

// greet checks who connects, and reads its hello. The version is the server's.
func greet(c *Conn, version string) (*hello, error) {
	if err := c.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, err
	}
	g := &greeting{Server: serverName, Frame: frameVersion, Version: version, PID: os.Getpid()}
	refused := admit(c.UnixConn)
	if refused != nil {
		g.Refused = refused.Error()
	}
	if err := errors.Join(refused, writeFrame(c.UnixConn, g)); err != nil {
		return nil, err
	}
	var h hello
	return &h, readFrame(c.in, &h)
}

// serve serves a client.
func (s *Server) serve(ctx context.Context, c *Conn, h *hello, over func() bool) {
	_, pid, _ := peer(c.UnixConn) // admitted before
	client := &Client{PID: pid, Folder: h.Folder, Since: time.Now()}
	// A server of another version makes way as soon as it has no work.
	if h.Version != s.Version && s.retireIf(ctx, func() bool { return s.Working() == 0 }) || !s.enter(client) {
		over()
		_ = writeFrame(c.UnixConn, &reply{Ended: true})
		_ = c.Close()
		return
	}
	left := sync.OnceFunc(func() {
		s.load.mu.Lock()
		defer s.load.mu.Unlock()
		s.load.clients = slices.DeleteFunc(s.load.clients, func(one *Client) bool { return one == client })
	})
	defer func() {
		left()
		s.load.mu.Lock()
		defer s.load.mu.Unlock()
		s.load.served--
		s.change()
	}()
	err := writeFrame(c.UnixConn, &reply{})
	if err == nil && over() {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil || ctx.Err() != nil {
		_ = c.Close()
		return
	}
	s.Serve(ctx, c, h.Origin, left)
}
