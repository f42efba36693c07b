package rollout

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

const (
	// lockFolder is below the configuration's home.
	lockFolder = "codex-mcp-locks"
	// guardFile is locked while claims change.
	guardFile = "guard"
	// serverPrefix begins the name of a server's file, claimPrefix of a claim.
	serverPrefix, claimPrefix = "server-", "rollout-"
	// guardWait bounds the wait for another process that is changing claims.
	guardWait = 2 * time.Second
	// maxClaim bounds the file of a claim.
	maxClaim = 64 << 10
)

// Locks lets one server at a time write to a rollout. It is safe for concurrent use.
//
// To claim a rollout, the server gives its own file of package claim another name, which takes no
// space and, unlike a file, costs no search of the disk. Where a file has one name, a copy of it is
// made. The claim counts as long as the server lives.
type Locks struct {
	dir     string
	program string

	mu     sync.Mutex
	server *claim.Owner          // nil before the first claim
	own    *content              // of its file
	held   map[string]*HeldError // the errors for further claims, by the claim's name
	closed bool
}

// NewLocks returns the locks of the rollouts of home. Program names this server in the
// errors of other servers.
func NewLocks(home, program string) *Locks {
	return &Locks{dir: filepath.Join(home, lockFolder), program: program, held: map[string]*HeldError{}}
}

// HeldError reports a rollout that another server has claimed, or another conversation of
// this server.
type HeldError struct {
	// Path is the rollout.
	Path string
	// Program, PID and Host identify the server.
	Program string
	PID     int
	Host    string
	// Own is true for a claim of the same [Locks].
	Own bool
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s (process %d on %s) is running a turn of this conversation; it can continue here when that turn has ended",
		e.Program, e.PID, e.Host)
}

// content is that of a server's file, and of a claim.
type content struct {
	Server  string `json:"server"` // the name of the server's file
	Program string `json:"program"`
	PID     int    `json:"pid"`
	Host    string `json:"host"`
}

// error returns that of a rollout which the server has claimed.
func (c *content) error(path string) *HeldError {
	return &HeldError{Path: path, Program: c.Program, PID: c.PID, Host: c.Host}
}

// Acquire claims the rollout at path until release is called. It fails with a [*HeldError]
// when the rollout is claimed already. Any other error means that claims do not work, such
// as in a folder that cannot be written.
func (l *Locks) Acquire(path string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, os.ErrClosed
	}
	name := claimName(path)
	if held := l.held[name]; held != nil {
		return nil, held
	}
	root, unguard, err := l.guard()
	if err != nil {
		return nil, fmt.Errorf("locking the conversation: %w", err)
	}
	defer unguard()
	if l.server == nil {
		if err := l.join(root); err != nil {
			return nil, fmt.Errorf("locking the conversation: %w", err)
		}
	}
	other, err := l.read(name)
	if err != nil {
		return nil, fmt.Errorf("locking the conversation: %w", err)
	}
	if other != nil && other.Server != l.own.Server && l.alive(root, other.Server) {
		return nil, other.error(path)
	}
	if err := l.put(root, name); err != nil {
		return nil, fmt.Errorf("locking the conversation: %w", err)
	}
	held := l.own.error(path)
	held.Own = true
	l.held[name] = held
	return func() { l.release(name) }, nil
}

// Holder returns who has claimed the rollout at path, as [Locks.Acquire] reports it, or nil.
func (l *Locks) Holder(path string) *HeldError {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := claimName(path)
	if held := l.held[name]; held != nil {
		return held
	}
	if _, err := os.Lstat(filepath.Join(l.dir, name)); err != nil || l.closed {
		return nil
	}
	root, unguard, err := l.guard()
	if err != nil {
		return nil
	}
	defer unguard()
	other, err := l.read(name)
	if err != nil || other == nil || !l.alive(root, other.Server) {
		return nil
	}
	return other.error(path)
}

// put makes the file of a claim.
func (l *Locks) put(root *os.Root, name string) error {
	// Windows does not remove a name of a file that is open.
	if runtime.GOOS != "windows" && root.Link(l.own.Server, name) == nil {
		return nil
	}
	// The name of a dead server's file may be there, which must not become ours.
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows" {
		return err
	}
	text, err := json.Marshal(l.own)
	if err == nil {
		err = root.WriteFile(name, text, 0o600)
	}
	if err != nil {
		return errors.Join(err, os.Remove(filepath.Join(l.dir, name)))
	}
	return nil
}

func (l *Locks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] == nil {
		return
	}
	delete(l.held, name)
	path := filepath.Join(l.dir, name)
	if os.Remove(path) != nil && runtime.GOOS == "windows" {
		_ = os.Truncate(path, 0) // another server reads the file; an empty claim does not count
	}
}

// claimName returns the name of the claim's file. It is the same for all paths that lead
// to a rollout.
func claimName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // a file that was removed
		path = filepath.Join(folder, filepath.Base(path))
	}
	sum := sha256.Sum256([]byte(path))
	return claimPrefix + hex.EncodeToString(sum[:16])
}

// guard waits until no other server changes claims, and keeps them out until unguard is
// called, which closes the folder.
func (l *Locks) guard() (root *os.Root, unguard func(), err error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, nil, err
	}
	if root, err = os.OpenRoot(l.dir); err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(guardFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	ctx, stop := context.WithTimeout(context.Background(), guardWait)
	defer stop()
	if err := claim.Wait(ctx, f); err != nil {
		return nil, nil, errors.Join(err, f.Close(), root.Close())
	}
	return root, func() { _ = errors.Join(f.Close(), root.Close()) }, nil // Close unlocks it
}

// join makes this server's file, and removes the files of dead servers.
func (l *Locks) join(root *os.Root) error {
	l.sweep(root)
	host, _ := os.Hostname() // "" is acceptable in a message
	l.own = &content{Server: serverPrefix + rand.Text(), Program: l.program, PID: os.Getpid(), Host: host}
	text, err := json.Marshal(l.own)
	if err == nil {
		l.server, err = claim.New(root, l.own.Server, string(text))
	}
	return err
}

func (l *Locks) sweep(root *os.Root) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, claimPrefix) {
			continue
		}
		if c, err := l.read(name); err == nil && (c == nil || !l.alive(root, c.Server)) {
			_ = root.Remove(name) // the next server tries again
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), serverPrefix) {
			l.alive(root, e.Name())
		}
	}
}

// read returns a claim, nil when there is none. A claim that does not parse does not count:
// its server died while it wrote it.
func (l *Locks) read(name string) (*content, error) {
	text, err := safefile.Read(filepath.Join(l.dir, name), maxClaim)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &content{}
	if json.Unmarshal(text, c) != nil || !strings.HasPrefix(c.Server, serverPrefix) || filepath.Base(c.Server) != c.Server {
		return nil, nil
	}
	return c, nil
}

// alive reports whether the server with this file is running, and in doubt reports that it
// is. It removes the file of a dead server.
func (l *Locks) alive(root *os.Root, server string) bool {
	lives, err := claim.Lives(root, server)
	if !lives && err == nil {
		_ = root.Remove(server) // the next server tries again
	}
	return lives || err != nil
}

// Close ends all claims.
func (l *Locks) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for name := range l.held {
		_ = os.Remove(filepath.Join(l.dir, name)) // a claim of a dead server does not count
	}
	clear(l.held)
	if l.server == nil {
		return nil
	}
	err := errors.Join(l.server.Close(), os.Remove(filepath.Join(l.dir, l.server.Name())))
	l.server = nil
	return err
}
