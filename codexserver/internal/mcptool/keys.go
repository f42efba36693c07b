package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A client that does not know whether its call of codex arrived may call again with the same
// idempotency key. Each principal has a file with the conversations that its keys began. It is
// written before the turn begins, so that no crash leads to two turns.

// MetaKey is the member of the _meta of a call with its idempotency key.
const MetaKey = "io.github.codexmcp/idempotencyKey"

const (
	keyPath    = "params/_meta/io.github.codexmcp~1idempotencyKey"
	keyLife    = 24 * time.Hour
	maxKeys    = 500 // of a principal; the oldest make room
	maxKeyFile = 1 << 20
	keyLock    = "lock"
)

// IsKey reports whether a text can be an idempotency key: 1 to 128 visible ASCII characters.
func IsKey(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// keys has the idempotency keys of all principals.
type keys struct {
	dir    string // "" without a home
	mirror *store.Mirror

	held    sync.Map      // a *keyed, whose turn has not begun, by keyName
	writing chan struct{} // has an element while this process writes
}

// keyName names the key of a principal.
type keyName struct{ file, key string }

// begun is an entry of a file: the conversation that a call began.
type begun struct {
	Key       string    `json:"key"`       // a digest of it
	Arguments string    `json:"arguments"` // a digest of them
	Thread    string    `json:"thread"`
	At        time.Time `json:"at"`
}

// keyed is a call with a key whose conversation has not begun. The methods of nil do nothing.
type keyed struct {
	keys  *keys
	path  string
	entry begun
	over  chan struct{}
	end   sync.Once // closes over
}

func newKeys(home string, m *store.Mirror) *keys {
	ks := &keys{mirror: m, writing: make(chan struct{}, 1)}
	if home != "" {
		ks.dir = filepath.Join(home, "codex-mcp", "idempotency")
	}
	return ks
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// hold returns the id of the thread that a call with the same key and arguments began. If there is
// none, it returns "", and others with the key wait until this call begins its turn or leaves.
func (c *call) hold(ctx context.Context, arguments stdjson.RawMessage) (began string, err error) {
	ks := c.table.keys
	if ks.dir == "" {
		return "", errors.New(keyPath + ": this server has no folder to keep keys in, so nothing was started")
	}
	canonical := jsontext.Value(arguments).Clone()
	if len(canonical) > 0 {
		if err := canonical.Canonicalize(); err != nil { // RFC 8785
			return "", fmt.Errorf("params/arguments: %w", err)
		}
	}
	k := &keyed{
		keys: ks, path: filepath.Join(ks.dir, digestOf(c.Threads.Principal())+".json"), over: make(chan struct{}),
		entry: begun{Key: digestOf(c.Key), Arguments: digestOf(string(canonical))},
	}
	ctx, stop := c.until(ctx)
	defer stop()
	for {
		before, entry, err := ks.hold(k)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: the keys of earlier calls cannot be read, so nothing was started: %w", keyPath, err)
		case entry != nil && entry.Arguments != k.entry.Arguments:
			return "", errors.New(keyPath + ": a call with this key had other arguments, so nothing was started")
		case entry != nil:
			return entry.Thread, nil
		case before == nil:
			c.held.key = k
			return "", nil
		}
		select {
		case <-before.over:
		case <-ctx.Done():
			return "", errors.New(keyPath + ": another call with this key is still starting; call again")
		}
	}
}

// hold makes k the holder of its key, unless another call is, or the key has an entry.
func (ks *keys) hold(k *keyed) (before *keyed, entry *begun, err error) {
	if other, loaded := ks.held.LoadOrStore(keyName{k.path, k.entry.Key}, k); loaded {
		return other.(*keyed), nil, nil
	}
	all, err := ks.read(k.path)
	i := find(all, k.entry.Key)
	if i >= 0 {
		entry = &all[i]
	}
	if err != nil || i >= 0 {
		k.begin()
	}
	return nil, entry, err
}

// keep writes which thread the call begins. If it fails, the thread is closed.
func (c *call) keep(ctx context.Context, t *thread.Thread) error {
	k := c.held.key
	if k == nil {
		return nil
	}
	k.entry.Thread, k.entry.At = thread.CanonicalID(t.ID()), time.Now().UTC().Round(0)
	err := k.keys.change(k.path, func(all []begun) ([]begun, error) {
		if find(all, k.entry.Key) >= 0 {
			return nil, errors.New("another server has a call with this key; call again")
		}
		return append(all, k.entry), nil
	})
	if err != nil {
		err = fmt.Errorf("%s: it cannot be kept, so nothing was started: %w", keyPath, err)
		err = errors.Join(err, c.Threads.End(context.WithoutCancel(ctx), t.ID()))
	}
	return err
}

// begin lets other calls have the key: the turn, if it begins one, now is a job that they find.
func (k *keyed) begin() {
	if k != nil {
		k.end.Do(k.release)
	}
}

// leave frees the key if no turn has begun.
func (k *keyed) leave() {
	k.end.Do(func() {
		defer k.release()
		if k.entry.Thread != "" { // else the next call would find a thread without a turn
			_ = k.keys.change(k.path, func(all []begun) ([]begun, error) {
				return slices.DeleteFunc(all, func(b begun) bool { return b.Key == k.entry.Key && b.Thread == k.entry.Thread }), nil
			})
		}
	})
}

func (k *keyed) release() {
	k.keys.held.Delete(keyName{k.path, k.entry.Key})
	close(k.over)
}

// find returns the index of a key that is not too old, or -1.
func find(all []begun, key string) int {
	return slices.IndexFunc(all, func(b begun) bool { return b.Key == key && time.Since(b.At) < keyLife })
}

// record returns that with the keys of a principal.
func (ks *keys) record(path string) record.Record {
	return record.Record{Path: path, Lock: keyLock, Limit: maxKeyFile, Mirror: ks.mirror}
}

// read returns the entries of a file.
func (ks *keys) read(path string) (all []begun, err error) {
	data, err := ks.record(path).Read()
	if err == nil {
		all, err = entries(path, data)
	}
	return all, err
}

// entries returns those in the content of a file.
func entries(path string, data []byte) (all []begun, err error) {
	if data == nil {
		return nil, nil
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// change changes a file while no other process does. When it returns nil, the change survives a
// crash.
func (ks *keys) change(path string, edit func([]begun) ([]begun, error)) error {
	ks.writing <- struct{}{}
	defer func() { <-ks.writing }()
	return ks.record(path).Change(func(before []byte) ([]byte, error) {
		all, err := entries(path, before)
		if err == nil {
			all, err = edit(slices.DeleteFunc(all, func(b begun) bool { return time.Since(b.At) >= keyLife }))
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(all[max(0, len(all)-maxKeys):])
	})
}

// sweep removes the files of principals without a call for so long that no key counts.
func (ks *keys) sweep() error {
	files, err := os.ReadDir(ks.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return ks.record(filepath.Join(ks.dir, keyLock)).Alone(func() (failed error) {
		for _, f := range files {
			path := filepath.Join(ks.dir, f.Name())
			info, err := os.Lstat(path)
			if err != nil || f.Name() == keyLock || time.Since(info.ModTime()) < keyLife {
				continue
			}
			if filepath.Ext(path) == ".json" {
				err = ks.mirror.Delete(path)
			}
			if err == nil {
				err = os.Remove(path)
			}
			failed = errors.Join(failed, err)
		}
		return failed
	})
}

// again answers a call whose key has begun a thread. It starts nothing: it waits for that turn as
// codex-wait does, and returns its result.
func (c *call) again(ctx context.Context, id string) *mcptypes.CallToolResult {
	ctx, stop := c.until(ctx)
	defer stop()
	most := (&waitArguments{}).wait()
	j := c.Jobs.first(id)
	if j == nil && c.took(ctx, most) {
		j = c.Jobs.first(id)
	}
	if j == nil {
		return failure(id, "An earlier call with this idempotency key began this conversation, and the result of its turn is not here. "+c.rest(ctx, id).Content)
	}
	if c.joined = true; c.Begun != nil {
		c.Begun(j)
	}
	defer c.visit(j, c.newWaiter())()
	var late <-chan time.Time
	if j.InBackground() {
		late = time.After(most)
	}
	select {
	case <-j.done:
		c.read = append(c.read, j)
		return j.end.result
	case <-late:
	case <-ctx.Done():
	}
	return j.Interim("This turn was begun by an earlier call with this idempotency key. Call again with the key for its result.")
}

// Joined reports whether another call has begun the turn of the call, with the same idempotency key.
// It is set before Begun is called.
func (c *Call) Joined() bool { return c.joined }
