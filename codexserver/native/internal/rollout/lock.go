package rollout

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

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
	// maxClaim bounds the file of a claim.
	maxClaim = 64 << 10
)

// Locks lets one server at a time write to a rollout. It is safe for concurrent use.
//
// A claim is a file that names the file of its server, and counts as long as that server lives, as package
// claim has it. So a server needs one descriptor for all its turns.
type Locks struct {
	dir     string
	program string

	mu     sync.Mutex
	server *claim.Owner    // nil before the first claim
	own    content         // of this server's claims
	held   map[string]bool // the names of the claims
	closed bool
}

// NewLocks returns the locks of the rollouts of home. Program names this server in the
// errors of other servers.
func NewLocks(home, program string) *Locks {
	return &Locks{dir: filepath.Join(home, lockFolder), program: program, held: map[string]bool{}}
}

// HeldError reports a rollout that another server has claimed, or another conversation of
// this server.
type HeldError struct {
	// Program, PID and Host identify the server.
	Program string `json:"program"`
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	// Own is true for a claim of the same [Locks].
	Own bool `json:"-"`
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s (process %d on %s) is running a turn of this conversation; it can continue here when that turn has ended",
		e.Program, e.PID, e.Host)
}

// content is that of a claim.
type content struct {
	Server string `json:"server"` // the name of the server's file
	HeldError
}

// Acquire claims the rollout at path until release is called. It fails with a [*HeldError]
// when the rollout is claimed already. Any other error means that claims do not work, such
// as in a folder that cannot be written.
func (l *Locks) Acquire(path string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := claimName(path)
	switch {
	case l.closed:
		return nil, os.ErrClosed
	case l.held[name]:
		return nil, &l.own.HeldError
	}
	var other *HeldError
	err = l.alone(func(root *os.Root) error {
		err := l.join(root)
		if err == nil {
			other, err = l.other(root, name)
		}
		if other != nil || err != nil {
			return err
		}
		text, err := json.Marshal(l.own)
		if err == nil {
			err = root.WriteFile(name, text, 0o600)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("locking the conversation: %w", err)
	case other != nil:
		return nil, other
	}
	l.held[name] = true
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.held[name] { // Close has not ended it
			l.release(name)
		}
	}), nil
}

// release ends a claim of this server.
func (l *Locks) release(name string) {
	delete(l.held, name)
	path := filepath.Join(l.dir, name)
	if os.Remove(path) != nil { // on Windows another server may read it
		_ = os.Truncate(path, 0) // an empty claim does not count
	}
}

// Holder returns who has claimed the rollout at path, as [Locks.Acquire] reports it, or nil.
func (l *Locks) Holder(path string) (other *HeldError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := claimName(path)
	switch {
	case l.closed:
		return nil
	case l.held[name]:
		return &l.own.HeldError
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	other, _ = l.other(root, name)
	return other
}

// alone runs f while no other server changes claims.
func (l *Locks) alone(f func(root *os.Root) error) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return claim.Alone(filepath.Join(l.dir, guardFile), func() error { return f(root) })
}

// join makes this server's file before its first claim, and removes what dead servers left.
func (l *Locks) join(root *os.Root) (err error) {
	if l.server != nil {
		return nil
	}
	entries, _ := os.ReadDir(l.dir) // the next server tries again
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, serverPrefix):
			l.alive(root, name)
		case strings.HasPrefix(name, claimPrefix):
			if other, err := l.other(root, name); other == nil && err == nil {
				_ = root.Remove(name)
			}
		}
	}
	host, _ := os.Hostname() // "" is acceptable in a message
	l.own = content{Server: serverPrefix + rand.Text(), HeldError: HeldError{Program: l.program, PID: os.Getpid(), Host: host, Own: true}}
	l.server, err = claim.New(root, l.own.Server, "")
	return err
}

// other returns the other server that has a claim, nil for none. A claim that does not parse does not count:
// its server died while it wrote it.
func (l *Locks) other(root *os.Root, name string) (*HeldError, error) {
	text, err := safefile.Read(filepath.Join(l.dir, name), maxClaim)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c := &content{}
	if json.Unmarshal(text, c) != nil || !strings.HasPrefix(c.Server, serverPrefix) || filepath.Base(c.Server) != c.Server ||
		c.Server == l.own.Server || !l.alive(root, c.Server) {
		return nil, nil
	}
	return &c.HeldError, nil
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

// Close ends all claims.
func (l *Locks) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for name := range l.held {
		l.release(name)
	}
	if l.server == nil {
		return nil
	}
	err := errors.Join(l.server.Close(), os.Remove(filepath.Join(l.dir, l.server.Name())))
	l.server = nil
	return err
}
