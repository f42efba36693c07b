package shared

import (
	"context"
	"crypto/rand"
	"errors"
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

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

// unshared begins the names of processes that serve no clients on their socket.
const unshared = "page-"

// Shared reports whether the process of a name is a server that clients share.
func Shared(name string) bool { return !strings.HasPrefix(name, unshared) }

// Started tells the process that started this one by [Folder.Connect] that it listens.
func Started() {
	done := os.NewFile(3, "started")
	_, _ = done.Write([]byte{1})
	_ = done.Close()
}

// Server answers the other processes of the user.
type Server struct {
	// Folder has the socket of the name Name. "" is a new name of a process that serves no clients.
	Folder *Folder
	Name   string
	// Status describes the process. The server adds what it knows itself: the process, since when it
	// runs, and its clients.
	Status func() Status
	// Link returns a new link to the approvals page. Nil if there is none.
	Link func() string
	// Serve serves a client on conn, which it closes, until the client has gone and its
	// work has ended, or ctx ends. It calls left when the client has gone. Nil if the process serves no
	// clients.
	Serve func(ctx context.Context, conn io.ReadWriteCloser, from engine.Origin, left func())
	// Idle is how long the server runs without a client and without work, if it serves any.
	Idle time.Duration
	// Logger logs refused connections. It must be set.
	Logger *slog.Logger

	began    time.Time
	stop     func()
	listener *net.UnixListener
	socket   os.FileInfo // of the listener

	mu       sync.Mutex
	clients  []Client  // connected
	served   int       // calls of Serve
	until    time.Time // when it may end if nothing is served; zero once it serves no new client
	stoppers []*Conn   // have stopped the server; the end of this process closes them
}

// Listen makes the socket, on which processes wait for Run. From now on the folder names this process,
// and orphans of its commands are its children.
func (s *Server) Listen() (err error) {
	if s.Name == "" {
		s.Name = unshared + rand.Text()
	}
	s.began = time.Now()
	s.until = s.began.Add(max(s.Idle, startLimit)) // the first client is on its way
	path := s.Folder.socket(s.Name)
	if err = errors.Join(adopt(), s.Folder.claim(s.Name), remove(path)); err != nil { // of a server that was killed
		return err
	}
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err == nil {
		s.listener.SetUnlinkOnClose(false)
		s.socket, err = os.Lstat(path)
	}
	return err
}

// Run answers until ctx ends, a client stops the server, or the server has been
// idle for long enough. It returns after the last client's work has ended. Clients that have
// stopped the server wait for the end of this process.
func (s *Server) Run(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Folder.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("files of servers that have ended", "error", err)
		}
	})
	running.Go(func() {
		for {
			c, err := s.listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				running.Go(func() { s.handle(ctx, newConn(c)) })
				continue
			}
			s.Logger.Warn("accept", "error", err) // too many open files, perhaps
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	if s.Serve == nil {
		<-ctx.Done()
	}
	for next := s.Idle; next > 0 && ctx.Err() == nil; next = s.rest() {
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
	s.mu.Lock()
	s.until = time.Time{}
	s.mu.Unlock()
	// Nobody starts another server while this one has the socket, so it is still its own.
	err := remove(s.Folder.socket(s.Name), s.Folder.identity(s.Name))
	err = errors.Join(err, s.listener.Close())
	s.stop()
	running.Wait()
	return err
}

// rest returns for how long the server goes on until it looks again whether it has to end: when it has been
// idle for long enough, or when its socket is no longer where clients look for it, such as after the home
// was removed, and no client is connected. What still works then waits for nobody. 0 means that it has to, and
// serves no new client.
func (s *Server) rest() time.Duration {
	now, err := os.Lstat(filepath.Join(s.Folder.path, s.Name+".sock"))
	gone := errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, s.socket)
	s.mu.Lock()
	defer s.mu.Unlock()
	left := time.Until(s.until)
	switch {
	case gone && len(s.clients) == 0:
		s.Logger.Warn("the server ends: its folder has gone, so no client can find it")
		s.until = time.Time{}
		return 0
	case s.served > 0 || left > s.Idle:
		return s.Idle
	case left <= 0:
		s.until = time.Time{}
		return 0
	}
	return left
}

func (s *Server) status() *Status {
	status := s.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	status.PID, status.Began, status.Clients = os.Getpid(), s.began, slices.Clone(s.clients)
	return &status
}

// handle serves one connection.
func (s *Server) handle(ctx context.Context, c *Conn) {
	over := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer over()
	h, err := c.greet(s.Folder.Patience)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, io.EOF) { // the client has left after the greeting
			s.Logger.Warn("a connection is refused", "error", err)
		}
		_ = c.Close()
		return
	}
	r := &frame{Status: s.status()}
	switch {
	case h.Want == Link && s.Link != nil:
		r.Status.Link = s.Link()
	case h.Want == Look, h.Want == Link: // there may be no page
	case h.Want == serve && s.Serve != nil:
		s.serve(ctx, c, h.From, over)
		return
	case h.Want == Stop && s.Serve != nil:
		s.Logger.Warn("a client stops the server")
		_ = c.send(r)
		over()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stoppers = append(s.stoppers, c)
		s.stop()
		return
	default:
		r = &frame{Refused: "this process does not do that"}
	}
	_ = c.send(r)
	_ = c.Close()
}

// greet checks who connects, and reads its hello.
func (c *Conn) greet(limit time.Duration) (hello frame, err error) {
	if err = c.SetDeadline(time.Now().Add(limit)); err != nil {
		return hello, err
	}
	greeting := &frame{Server: serverName, Frame: frameVersion}
	if c.pid, err = admit(c.UnixConn); err != nil {
		greeting.Refused = err.Error()
	}
	if err = errors.Join(err, c.send(greeting)); err != nil {
		return hello, err
	}
	return c.receive()
}

// serve serves a client. Calling over makes the end of ctx no longer end its connection.
func (s *Server) serve(ctx context.Context, c *Conn, from engine.Origin, over func() bool) {
	client := Client{PID: c.pid, Folder: from.Folder, Since: time.Now()}
	s.mu.Lock()
	ended := s.until.IsZero()
	if !ended {
		s.clients = append(s.clients, client)
		s.served++
	}
	s.mu.Unlock()
	if ended {
		_ = c.Close()
		return
	}
	left := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clients = slices.DeleteFunc(s.clients, func(one Client) bool { return one == client })
	}
	defer func() {
		left()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.served--
		if !s.until.IsZero() {
			s.until = time.Now().Add(s.Idle)
		}
	}()
	err := c.send(&frame{})
	if err == nil && over() {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil || ctx.Err() != nil {
		_ = c.Close()
		return
	}
	s.Serve(ctx, c, from, left)
}
