package shared

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// OpenPages returns the folder of the sockets of processes with an approvals page. It is in the
// folder of [Open], and protected in the same way.
func OpenPages(home string) (*Folder, error) {
	return open(home, pageLimit, "codex-mcp", "run", "pages")
}

// pageLimit is how long a process may take to answer. It has nothing to do first, but may be
// stopped, as with Ctrl-Z.
const pageLimit = 3 * time.Second

// Links gives links to the approvals page of this process to the user's other processes, on a socket
// in a folder of [OpenPages]. Like a [Server] it refuses its own commands.
type Links struct {
	// Version is the version of this program.
	Version string
	// Status describes this process and its page, and New returns a new link.
	Status func() *Status
	New    func() string
	// Logger logs refused connections. It must be set.
	Logger *slog.Logger

	folder   *Folder
	name     string
	listener *net.UnixListener
	end      context.CancelFunc
	running  sync.WaitGroup
}

// Offer begins to answer. l must be closed before the folder.
func (f *Folder) Offer(l *Links) error {
	if err := Adopt(); err != nil {
		return err
	}
	l.folder, l.name = f, rand.Text()
	path := f.socket(l.name)
	if len(path) > maxSocket {
		return errors.New("the path of the socket is too long: " + path)
	}
	if err := f.claim(l.name); err != nil { // before anybody can connect
		return err
	}
	var err error
	if l.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return errors.Join(err, os.Remove(f.identity(l.name)))
	}
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	l.running.Go(func() {
		if err := f.Sweep(ctx); err != nil && ctx.Err() == nil {
			l.Logger.Warn("files of pages that have gone", "error", err)
		}
	})
	l.running.Go(func() {
		accept(ctx, l.listener, l.Logger, func(c *net.UnixConn) { l.running.Go(func() { l.answer(ctx, c) }) })
	})
	return nil
}

// Close ends the answers, and removes the socket.
func (l *Links) Close() error {
	l.end()
	err := l.listener.Close() // which removes it
	l.running.Wait()
	if failed := os.Remove(l.folder.identity(l.name)); !errors.Is(failed, fs.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	return err
}

// answer answers one connection.
func (l *Links) answer(ctx context.Context, raw *net.UnixConn) {
	defer raw.Close()
	over := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer over()
	h, err := greet(&Conn{UnixConn: raw, in: bufio.NewReader(raw)}, l.Version)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, io.EOF) { // it has left after the greeting
			l.Logger.Warn("who asks for a link to the page is refused", "error", err)
		}
		return
	}
	r := &reply{Refused: "unknown frame"}
	switch h.Want {
	case wantStatus:
		r = &reply{Status: l.Status()}
	case wantLink:
		r = &reply{Link: l.New()}
	}
	_ = writeFrame(raw, r)
}

// Link returns a new link to the page of the process of a name. Who has it can decide in the user's
// place. The error is [ErrAbsent] if the process has ended.
func (f *Folder) Link(ctx context.Context, name string) (string, error) {
	c, r, err := f.request(ctx, name, wantLink)
	if err != nil {
		return "", err
	}
	if r.Link == "" {
		err = errors.New("the process has given no link")
	}
	return r.Link, errors.Join(err, c.Close())
}
