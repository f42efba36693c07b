//go:build amd64 || arm64

package box

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"golang.org/x/sys/unix"
)

// layered says how the launcher lays layers.
type layered struct {
	folder string   // of the conversation
	free   int64    // bytes of its file system when it was made
	limit  int64    // bytes that may be in it
	caches []string // folders that get a layer
}

// available returns how many bytes the file system of a folder has left for this user.
func available(folder string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// covered returns which caches get a layer for a command in cwd: those that are there, that hold no folder which the
// command changes, and no mount, whose files a layer would hide. Outer ones stand for those in them.
func (o *Layers) covered(roots []string, cwd string, env []string) (all []string) {
	names := o.Caches
	if names == nil {
		names = Caches(env)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	apart := slices.Concat(roots, []string{cwd, o.Folder}, mountPoints(string(mounts)))
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "~/"); ok && filepath.IsAbs(run.Value(env, "HOME")) {
			name = filepath.Join(run.Value(env, "HOME"), rest)
		}
		if path := paths.Real(filepath.Clean(name)); filepath.IsAbs(name) && isFolder(path) {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	kept := all[:0]
	for _, path := range all {
		within := func(folder string) bool { return paths.Below(path, folder) }
		holds := func(folder string) bool { return paths.Below(folder, path) && folder != path }
		known := slices.ContainsFunc(kept, within) || slices.ContainsFunc(roots, within) || path == cwd
		if !known && !slices.ContainsFunc(apart, holds) {
			kept = append(kept, path)
		}
	}
	return kept
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// layered returns the layers of a command in cwd. There are none where they cannot be made.
func (s *Sandbox) layered(roots []string, cwd string, env []string) (l layered) {
	o, made := &s.options.Layers, &s.layers
	made.mu.Lock()
	defer made.mu.Unlock()
	if made.folder == nil {
		folder, err := newLayers(o.Folder)
		if err != nil {
			return l
		}
		made.folder, made.free = folder, available(o.Folder)
	}
	const usual = 10 << 30
	return layered{made.folder.Name(), made.free, cmp.Or(o.Limit, usual), o.covered(roots, cwd, env)}
}

// newLayers makes a locked folder below parent, and removes those without a lock. It waits for no lock, since a command
// can hold each. A folder that somebody removes before it is locked is made again.
func newLayers(parent string) (folder *os.File, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if left, err := os.Open(filepath.Join(parent, e.Name())); err == nil {
			if safefile.Lock(left) == nil {
				_ = removeLayers(left.Name()) // or the next server does
			}
			left.Close()
		}
	}
	for range 10 {
		name, failed := os.MkdirTemp(parent, "")
		if failed != nil {
			return nil, failed
		}
		if folder, err = os.Open(name); err == nil {
			if err = safefile.Lock(folder); err == nil {
				_, err = os.Lstat(name)
			}
			if err == nil {
				return folder, nil
			}
			folder.Close()
		}
	}
	return nil, err
}

// full is in a set of layers that is to begin empty.
const full = "full"

// lockFD is locked by the first process in the rooms while it uses a set of layers. The launcher has it until then: when
// the server hears that a command has ended, the next one gets the same set.
const lockFD = 65

// take returns the first set of layers of the conversation that no command uses, and locks it.
func (l *layered) take() (set string, err error) {
	const most = 64
	for n := range most {
		set := filepath.Join(l.folder, strconv.Itoa(n))
		if err := os.Mkdir(set, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		fd, err := unix.Open(set, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Dup3(fd, lockFD, unix.O_CLOEXEC), unix.Close(fd))
		}
		if err == nil {
			err = unix.Flock(lockFD, unix.LOCK_EX|unix.LOCK_NB)
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if _, failed := os.Lstat(filepath.Join(set, full)); err == nil && failed == nil {
			err = emptied(set)
		}
		return set, err
	}
	return "", errors.New("too many commands at a time have layers")
}

// emptied removes what is in a set of layers, the mark last.
func emptied(set string) error {
	entries, err := os.ReadDir(set)
	for _, e := range entries {
		if e.Name() != full {
			err = errors.Join(err, removeLayers(filepath.Join(set, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(set, full))
}

// layers lays a layer over each cache. Where the system has none, the folder is read-only, as it is without.
func (f *furnisher) layers() {
	if len(f.layered.caches) == 0 {
		return
	}
	set, err := f.layered.take()
	if err != nil {
		return
	}
	for _, cache := range f.layered.caches {
		sum := sha256.Sum256([]byte(cache))
		layer := filepath.Join(set, hex.EncodeToString(sum[:8]))
		if errors.Join(os.MkdirAll(layer+"/up", 0o700), os.MkdirAll(layer+"/work", 0o700)) == nil {
			f.layer(cache, layer)
		}
	}
}

// layer makes an overlay of a folder and what the layer has, allows to write in it, and puts it over the folder. The
// descriptors say which, whatever becomes of the names meanwhile.
func (f *furnisher) layer(cache, layer string) {
	const fsFD, overFD = 63, 64
	below := func(fd int, path string) string { return fmt.Sprintf("/proc/self/fd/%d%s", fd, path) }
	begin, name := len(f.steps), "layer over "+cache
	open := func(path string, fd int) {
		f.add(name, unix.SYS_OPENAT, atCwd, path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		f.keep(name, fd)
	}
	open(cache, pathFD)
	open(layer, treeFD)
	f.add(name, unix.SYS_FSOPEN, "overlay", unix.FSOPEN_CLOEXEC)
	f.keep(name, fsFD)
	set := func(key, value string) { f.add(name, unix.SYS_FSCONFIG, fsFD, unix.FSCONFIG_SET_STRING, key, value, 0) }
	set("lowerdir", below(pathFD, ""))
	set("upperdir", below(treeFD, "/up"))
	set("workdir", below(treeFD, "/work"))
	if os.Getuid() != 0 { // whose overlay may not use the attributes of the machine's root
		f.add(name, unix.SYS_FSCONFIG, fsFD, unix.FSCONFIG_SET_FLAG, "userxattr", 0, 0)
	}
	f.add(name, unix.SYS_FSCONFIG, fsFD, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	f.add(name, unix.SYS_FSMOUNT, fsFD, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	f.keep(name, overFD)
	f.rule(name, overFD, handledBy(landlockABI())&^deviceNodes)
	f.add(name, unix.SYS_MOVE_MOUNT, overFD, "", pathFD, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	for i := begin; i < len(f.steps); i++ {
		f.steps[i].Optional = len(f.steps) - i
	}
}

// grown returns why a command must end whose layers are larger than the limit. It looks only if the file system has
// lost half as much since there are layers, and an eighth since it looked. Last is what was free then.
func (l *layered) grown(last *int64) string {
	now := available(l.folder)
	if len(l.caches) == 0 || l.free-now < l.limit/2 || *last != 0 && *last-now < l.limit/8 {
		return ""
	}
	*last = now
	var used int64
	_ = filepath.WalkDir(l.folder, func(path string, e os.DirEntry, _ error) error {
		var s unix.Stat_t
		if unix.Lstat(path, &s) == nil {
			used += s.Blocks * 512
		}
		return nil
	})
	if used <= l.limit {
		return ""
	}
	sets, _ := filepath.Glob(filepath.Join(escaped(l.folder), "*"))
	for _, set := range sets {
		_ = os.WriteFile(filepath.Join(set, full), nil, 0o600)
	}
	return fmt.Sprintf("its copies of caches grew over %d MiB, and it was ended; they begin empty again", l.limit>>20)
}
