package thread

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/go-json-experiment/json"
)

// An engine that is an [engine.Resolver] finds a folder by its name for each command. Where commands of another
// conversation can write the folder above, they can put a link in its place. So a turn is asked about if its folders and
// those of another one that runs lie in each other. One conversation alone is not: see SECURITY.md.

// occupied are the folders in which commands of a thread can write, without links.
type occupied struct {
	Thread string   `json:"thread"`
	Own    []string `json:"own"` // the working folder, then those that the call chose
	All    []string `json:"all"` // also those that the configuration gives
	// Resolved is true if the engine finds them by name for each command.
	Resolved bool `json:"resolved,omitzero"`
}

// overlap returns a folder of o and one of another thread of which one lies in the other so that commands can replace it,
// or "". One of the two belongs to a call: what the configuration gives to both is no reason.
func (o *occupied) overlap(other *occupied) (ours, theirs string) {
	if o.Thread == other.Thread {
		return "", ""
	}
	for _, ours := range o.All {
		for _, theirs := range other.All {
			chosen := slices.Contains(o.Own, ours) || slices.Contains(other.Own, theirs)
			if chosen && (o.replaces(theirs, ours, other) || other.replaces(ours, theirs, o)) {
				return ours, theirs
			}
		}
	}
	return "", ""
}

// replaces reports whether commands of o, which can write above, can replace a folder of another thread there. They need
// not if that one can: if the folder lies in its working folder, or if above is for both, such as /tmp, and o works there, too.
func (o *occupied) replaces(folder, above string, of *occupied) bool {
	in := func(path, folder string) bool { return path != folder && paths.Below(path, folder) }
	return of.Resolved && in(folder, above) && !in(folder, of.Own[0]) &&
		!(in(o.Own[0], above) && slices.Contains(of.All, above))
}

// field has the folders of the running turns, and of programs that turns have left.
type field struct {
	dir string // has a file for each of them, of all servers, locked while it counts; "" for this server alone

	mu   sync.Mutex
	here map[string]*occupied // of this server, by file
}

// enter adds folders until leave is called, and returns the others that are there by then. Of two servers that add
// folders at the same moment, at least one sees those of the other.
func (f *field) enter(o *occupied) (others []*occupied, leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, gone := filePrefix+rand.Text(), func() {}
	if f.dir != "" {
		if others, gone, err = f.note(name, o); err != nil {
			return nil, nil, err
		}
	}
	for _, other := range f.here {
		others = append(others, other)
	}
	if f.here == nil {
		f.here = map[string]*occupied{}
	}
	f.here[name] = o
	return others, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.here, name)
		gone()
	}), nil
}

const filePrefix = "turn-"

// note makes the file of folders, and returns those of other servers. Those of dead servers are removed.
func (f *field) note(name string, o *occupied) (others []*occupied, gone func(), err error) {
	data, err := json.Marshal(o)
	if err = errors.Join(err, os.MkdirAll(f.dir, 0o700)); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	file, err := claim.New(root, name, string(data))
	if err != nil {
		return nil, nil, err
	}
	gone = func() {
		_ = os.Remove(filepath.Join(f.dir, name)) // without its lock it does not count either
		_ = file.Close()
	}
	files, err := fs.ReadDir(root.FS(), ".")
	for _, file := range files {
		other := file.Name()
		if err == nil && strings.HasPrefix(other, filePrefix) && other != name && f.here[other] == nil {
			others, err = appendLiving(others, root, other)
		}
	}
	if err != nil {
		gone()
	}
	return others, gone, err
}

// appendLiving appends the folders in a file, if its server lives. No command writes there, so the content is that of a server.
func appendLiving(all []*occupied, root *os.Root, name string) ([]*occupied, error) {
	lives, err := claim.Lives(root, name)
	if err != nil {
		return nil, err
	}
	if !lives {
		_ = root.Remove(name) // or it was removed meanwhile
		return all, nil
	}
	data, err := root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) { // it ended meanwhile
		return all, nil
	}
	other := &occupied{}
	if err == nil {
		err = json.Unmarshal(data, other)
	}
	if err == nil && len(other.Own) == 0 {
		err = errors.New(name + " names no folder")
	}
	return append(all, other), err
}

// pair are two threads that a person lets work beside each other.
type pair struct{ principal, a, b string }

// enter adds the folders in which the thread can write to those of running turns, until leave is called and no program
// that the turn left runs. It returns those of others beside which the thread may not work without an approval.
func (t *Thread) enter() (beside []protocol.Overlap, with []pair, leave func(), err error) {
	leave = func() {}
	if len(t.folders) == 0 {
		return nil, nil, leave, nil
	}
	o := &occupied{Thread: t.ID(), Own: t.folders, All: append(slices.Clip(t.folders), t.Info().WritableRoots...)}
	resolver, resolves := t.conversation.(engine.Resolver)
	if o.Resolved = resolves; resolves {
		o.All = resolver.Writes()
	}
	others, gone, err := t.table.field.enter(o)
	switch {
	case err != nil && resolves:
		return nil, nil, nil, err
	case err != nil: // it holds its folders
		t.table.log.Warn("the folders of a turn are not noted", "thread", t.ID(), "error", err)
	case resolves:
		leave = func() { resolver.Rest(gone) }
	default:
		leave = gone
	}
	for _, other := range others {
		ours, theirs := o.overlap(other)
		a, b := CanonicalID(t.ID()), CanonicalID(other.Thread)
		p := pair{t.about.Principal, min(a, b), max(a, b)}
		_, approved := t.table.grants.Load(p)
		if ours != "" && !approved && t.full != setting.FullAccessAllow && !slices.Contains(with, p) {
			beside, with = append(beside, protocol.Overlap{Folder: ours, Other: theirs}), append(with, p)
		}
	}
	return beside, with, leave, nil
}
